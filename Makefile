# make demo    the main job, here and now, without a GPU, a cluster or root
# make check   everything that needs no cluster
# make e2e     the cluster tests, on a real Kubernetes built once into ~/.cache/casaba (root)
PYTHON3      ?= python3
VENV         := .venv
PY           := $(VENV)/bin/python
PIP          := $(PY) -m pip install --quiet --disable-pip-version-check
PYTEST       := $(PY) -m pytest
NODES        ?= 2
# More than there are cores: many of these tests wait.
WORKERS      ?= 3
# The files that take longest come first, so that no worker is left alone with one at the end.
LONG         := tests/native/limit $(addprefix tests/component/,demo node_agent doctor controllers) tests/model
SIDE_BY_SIDE := $(LONG) tests/native tests/meta tests/unit tests/component tests/conformance tests/chart
# What measures time runs by itself, afterwards.
ALONE        := $(addprefix tests/native/,compute/test_pacing.py compute/test_share.py simulated_driver/test_simulated_time.py)
# The conformance suites of what has a real counterpart in the cluster.
ON_REAL      := $(addprefix tests/conformance/,api_server allocator scheduling kubelet client)

# Some images set it; each of the thousands of processes of the tests would compile our sources anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup native demo check lint test side-by-side alone e2e programs bench cluster-up cluster-down clean generate

setup: $(VENV)/.ready
$(VENV)/.ready: pyproject.toml requirements.txt
	@echo "making $(VENV) (once; two minutes)"
	$(PYTHON3) -m venv $(VENV)
	$(PIP) -r requirements.txt
	$(PIP) --no-build-isolation --no-deps -e .
	touch $@

native: setup
	$(MAKE) --no-print-directory -s -C native PYTHON=$(abspath $(PY)) all

demo: native
	$(VENV)/bin/casaba demo

check: native
	$(MAKE) --no-print-directory --jobs=2 lint side-by-side
	$(MAKE) --no-print-directory alone

lint: setup
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/lint-imports
	$(VENV)/bin/mypy
	$(PY) tools/gen_contracts.py --check
	$(PY) tools/gen_proto.py --check
	$(PY) tools/driver_names.py --check

test: native
	$(MAKE) --no-print-directory side-by-side
	$(MAKE) --no-print-directory alone

side-by-side: native
	$(MAKE) --no-print-directory -s -C native PYTHON=$(abspath $(PY)) sanitize
	$(PY) -c "from tests.cluster.helm import helm; helm()"
	$(PYTEST) --numprocesses=$(WORKERS) --dist=loadfile --no-loadscope-reorder \
		$(addprefix --ignore=,$(ALONE)) $(SIDE_BY_SIDE)

alone: native
	$(PYTEST) $(ALONE)

programs: setup
	$(PY) -m tests.cluster build

e2e: native programs
	$(PYTEST) --real tests/e2e $(ON_REAL)

cluster-up: native programs
	$(PY) -m tests.cluster up --nodes $(NODES) --agent

cluster-down: setup
	$(PY) -m tests.cluster down

bench: native programs
	$(PY) -m tests.bench

bench-%: native programs
	$(PY) -m tests.bench $*

generate: setup
	$(PY) tools/gen_contracts.py
	$(PY) tools/gen_proto.py

clean:
	rm -rf build src/casaba/_native
