"""What /proc tells of the processes on a card."""

from pathlib import Path

from casaba.model.gpu_process import ContainerMounts
from casaba.node.gpu_processes import ProcessReader, container_mounts

UID = "11111111-2222-3333-4444-555555555555"
POD = "99999999-2222-3333-4444-555555555555"
TENANT = f"""\
1 0 0:52 / / rw,relatime - overlay overlay rw
2 1 8:1 /var/lib/kubelet/pods/{POD}/containers/main/0a1b2c3d /dev/termination-log rw - ext4 /dev/x rw
3 1 0:25 /casaba/claims/{UID}/gpu/policy /run/casaba/claims/{UID}/gpu/policy ro - tmpfs tmpfs rw
4 1 0:25 /casaba/claims/{UID}/gpu/region /run/casaba/claims/{UID}/gpu/region rw - tmpfs tmpfs rw
5 1 0:25 /casaba/claims/{UID}/big/policy /run/casaba/claims/{UID}/big/policy ro - tmpfs tmpfs rw
"""  # noqa: E501
HOST = "1 0 8:1 / / rw - ext4 /dev/x rw\nnonsense\n"


def add_process(root: Path, pid: int, mountinfo: str, *, inner: int, started: int = 5) -> None:
    folder = root / str(pid)
    folder.mkdir(exist_ok=True)
    before = " ".join(["0"] * 18)
    (folder / "stat").write_text(f"{pid} (a) b) S {before} {started} 0 0\n")
    (folder / "mountinfo").write_text(mountinfo)
    (folder / "ns").mkdir(exist_ok=True)
    (folder / "ns" / "pid").unlink(missing_ok=True)
    (folder / "ns" / "pid").symlink_to(f"pid:[{4026530000 + pid}]")
    (folder / "status").write_text(f"Name:\ta\nNSpid:\t{pid}\t{inner}\n")


def test_mounts_tell_the_containers_name_and_budgets() -> None:
    assert container_mounts(TENANT) == ContainerMounts(
        pod_uid=POD, container="main", budgets=frozenset({(UID, "gpu"), (UID, "big")})
    )
    assert container_mounts(HOST) is None


def test_processes_are_read_once_and_a_pid_that_comes_again_anew(tmp_path: Path) -> None:
    add_process(tmp_path, 40, TENANT, inner=7)
    add_process(tmp_path, 41, HOST, inner=41)
    reader = ProcessReader(tmp_path)
    tenant, other = reader.processes([41, 40, 40, 99])
    assert (tenant.pid, tenant.inner_pid, tenant.pid_namespace) == (40, 7, 4026530040)
    assert tenant.mounts is not None
    assert other.mounts is None
    (tmp_path / "40" / "mountinfo").unlink()
    assert reader.processes([40]) == (tenant,)
    add_process(tmp_path, 40, HOST, inner=40, started=6)
    assert [one.mounts for one in reader.processes([40])] == [None]


def test_a_process_whose_namespace_cant_be_read_is_a_process_all_the_same(tmp_path: Path) -> None:
    add_process(tmp_path, 40, TENANT, inner=7)
    (tmp_path / "40" / "ns" / "pid").unlink()
    (tenant,) = ProcessReader(tmp_path).processes([40])
    assert (tenant.inner_pid, tenant.pid_namespace) == (7, 0)


def test_containers_are_found_without_a_process_on_a_card(tmp_path: Path) -> None:
    add_process(tmp_path, 40, TENANT, inner=7)
    add_process(tmp_path, 41, HOST, inner=41)
    (tmp_path / "self").mkdir()
    (tmp_path / "42").mkdir()
    assert [one.container for one in ProcessReader(tmp_path).all_containers()] == ["main"]
