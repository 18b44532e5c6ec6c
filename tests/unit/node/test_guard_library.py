"""Guards on the host: one folder per content, all of them on offer."""

import json
import os
from pathlib import Path

from casaba.node.guard_library import guard_spec, install_guard


def install(source: Path, content: bytes, state_dir: Path) -> str:
    source.write_bytes(content)
    return install_guard(source, state_dir, "0.1.0")


def test_an_upgrade_leaves_the_guard_of_running_pods_alone(tmp_path: Path) -> None:
    source, state = tmp_path / "guard.so", tmp_path / "state"
    old = install(source, b"old", state)
    before = (state / "guard" / old / "libcasaba_guard.so").stat()
    new = install(source, b"new", state)
    assert install(source, b"old", state) == old
    after = (state / "guard" / old / "libcasaba_guard.so").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    names = {device["name"] for device in json.loads(guard_spec(state))["devices"]}
    assert names == {old, new}


def test_the_preload_file_names_the_library_where_containers_see_it(tmp_path: Path) -> None:
    version = install(tmp_path / "guard.so", b"guard", tmp_path / "state")
    folder = tmp_path / "state" / "guard" / version
    library = f"/var/lib/casaba/guard/{version}/libcasaba_guard.so"
    assert (folder / "ld.so.preload").read_text() == f"{library}\n"
    (device,) = json.loads(guard_spec(tmp_path / "state"))["devices"]
    mounts = {
        mount["containerPath"]: (mount["hostPath"], mount["options"][0])
        for mount in device["containerEdits"]["mounts"]
    }
    assert mounts == {
        library: (str(folder / "libcasaba_guard.so"), "ro"),
        "/etc/ld.so.preload": (str(folder / "ld.so.preload"), "ro"),
    }


def test_one_that_was_never_finished_is_not_offered(tmp_path: Path) -> None:
    version = install(tmp_path / "guard.so", b"guard", tmp_path / "state")
    (tmp_path / "state" / "guard" / "0.1.0-unfinished").mkdir()
    names = [device["name"] for device in json.loads(guard_spec(tmp_path / "state"))["devices"]]
    assert names == [version]


def test_what_a_killed_installer_left_goes_and_a_running_ones_stays(tmp_path: Path) -> None:
    source, state = tmp_path / "guard.so", tmp_path / "state"
    folder = state / "guard" / install(source, b"guard", state)
    left, running = folder / ".libcasaba_guard.so.left", folder / ".ld.so.preload.running"
    for path in (left, running):
        path.write_bytes(b"half")
    os.utime(left, (0, 0))
    install(source, b"guard", state)
    assert (left.exists(), running.exists()) == (False, True)
