"""Each image has the libraries of its own part: neither side may load the other's."""

from __future__ import annotations

import subprocess
import sys

import pytest

from casaba.cli.doctor import main

CLUSTER = ("casaba.services.doctor.main", {"cryptography", "cel_expr_python"})
HOST = ("casaba.services.doctor.host", {"grpclib", "google.protobuf"})


@pytest.mark.parametrize(("module", "absent"), [(CLUSTER[0], HOST[1]), (HOST[0], CLUSTER[1])])
def test_what_is_loaded(module: str, absent: set[str]) -> None:
    script = f"import sys, casaba.cli.doctor, {module}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert not absent & set(done.stdout.split())


def test_a_library_that_is_not_there_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "casaba.services.doctor.host", raising=False)
    monkeypatch.delitem(sys.modules, "casaba.net.pod_resources", raising=False)
    monkeypatch.setitem(sys.modules, "grpclib.client", None)
    assert main(["--node"]) == 3
    told = capsys.readouterr().err
    assert "is not installed here, which examining a node needs" in told
