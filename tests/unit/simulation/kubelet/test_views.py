"""What leads a process without a namespace to what would be mounted."""

from pathlib import Path

from casaba.simulation.kubelet.cdi_devices import Mount
from casaba.simulation.kubelet.views import make_view, view_variables


def mount(source: Path, target: str) -> Mount:
    return Mount(source=str(source), target=target, read_only=True)


def test_links_stand_where_mounts_would(tmp_path: Path) -> None:
    (tmp_path / "policy").write_text("limits")
    mounts = [mount(tmp_path / "policy", "/run/casaba/claims/u/r/policy")]
    for _ in range(2):  # a container that is started again
        make_view(tmp_path / "view", mounts)
    assert (tmp_path / "view/run/casaba/claims/u/r/policy").read_text() == "limits"


def test_variables_lead_to_guard_driver_and_budgets(tmp_path: Path) -> None:
    (tmp_path / "preload").write_text("/var/lib/casaba/guard.so\n")
    view = tmp_path / "view"
    mounts = [
        mount(tmp_path / "preload", "/etc/ld.so.preload"),
        mount(tmp_path / "guard", "/var/lib/casaba/guard.so"),
        mount(tmp_path / "cuda", "/usr/lib/x/libcuda.so.1"),
        mount(tmp_path / "smi", "/usr/bin/nvidia-smi"),
        mount(tmp_path / "policy", "/run/casaba/claims/u/r/policy"),
    ]
    assert view_variables(view, mounts, {"PATH": "/bin", "X": "y"}) == {
        "X": "y",
        "LD_PRELOAD": str(tmp_path / "guard"),
        "LD_LIBRARY_PATH": str(view / "usr/lib/x"),
        "PATH": f"{view}/usr/bin:/bin",
        "CASABA_RUN_DIR": str(view / "run/casaba"),
    }


def test_without_mounts_the_environment_stays(tmp_path: Path) -> None:
    assert view_variables(tmp_path, [], {"PATH": "/bin"}) == {"PATH": "/bin"}
