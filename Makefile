# make demo    the main job, here and now, without a GPU, a cluster or root
# make check   everything that needs no cluster
# make e2e     the cluster tests, on a real Kubernetes built once into ~/.cache/casaba (root)
PYTHON3      ?= python3
VENV         := .venv
PY           := $(VENV)/bin/python
PIP          := $(PY) -m pip install --quiet --disable-pip-version-check
PYTEST       := $(PY) -m pytest
NODES        ?= 2
# More than there are cores: many of these tests wait. What measures time runs by itself, afterwards.
WORKERS      ?= 3
SIDE_BY_SIDE := tests/native/limit tests/model tests/meta tests/unit tests/component tests/conformance tests/chart
# The conformance suites of what has a real counterpart in the cluster.
ON_REAL      := $(addprefix tests/conformance/,api_server allocator scheduling kubelet client)

.PHONY: setup native demo check lint test e2e programs bench cluster-up cluster-down clean generate

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
	$(MAKE) --no-print-directory lint
	$(MAKE) --no-print-directory test

lint: setup
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/lint-imports
	$(VENV)/bin/mypy
	$(PY) tools/gen_contracts.py --check
	$(PY) tools/gen_proto.py --check
	$(PY) tools/driver_names.py --check

test: native
	$(MAKE) --no-print-directory -s -C native PYTHON=$(abspath $(PY)) sanitize
	$(PY) -c "from tests.cluster.helm import helm; helm()"
	$(PYTEST) --numprocesses=$(WORKERS) --dist=loadfile $(SIDE_BY_SIDE)
	$(PYTEST) tests/native --ignore=tests/native/limit

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
