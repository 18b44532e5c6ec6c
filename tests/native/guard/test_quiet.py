"""A program that does not use the GPU never notices the guard."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.native.guard.machine import CARDS, MIB, Machine

Compile = Callable[..., Path]
COMMANDS = (
    ["bash", "-c", "for i in 1 2 3; do echo $i; done | sort -r | (read x; echo $x)"],
    [sys.executable, "-c", "import ctypes, ssl, sqlite3, threading; print(ssl.OPENSSL_VERSION)"],
    ["perl", "-MPOSIX", "-e", "print POSIX::floor(3.7), fork() // 'x' ? '' : '', \"\\n\""],
    ["git", "--version"],
)


def run(command: list[str], environment: Mapping[str, str]) -> tuple[int, str, str]:
    """Exit code and output."""
    done = subprocess.run(command, env=dict(environment), capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: Path(command[0]).name)
def test_programs_run_as_without_it(machine: Machine, command: list[str]) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    plain = run(command, machine.environment(guarded=False))
    assert plain[0] == 0
    assert run(command, machine.environment()) == plain


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_a_program_without_the_gpu_does_no_file_input_or_output(
    machine: Machine, compile_c: Compile
) -> None:
    machine.budget({CARDS[0]: MIB}, announce=True)
    empty = compile_c("empty.c", "-shared", "-fPIC")

    def asked_of_the_kernel(preload: Path) -> list[str]:
        """What a program with this preload does with files, sockets and descriptors."""
        command = ["strace", "-f", "-e", "trace=%file,%network,write,ioctl,fcntl"]
        command += [f"-ELD_PRELOAD={preload}", f"-ECASABA_RUN_DIR={machine.run_folder}"]
        code, _, trace = run([*command, "/bin/cat", "/dev/null"], {"PATH": os.environ["PATH"]})
        assert code == 0
        calls = re.sub(r"0x[0-9a-f]+|\d+", "", trace.replace(str(preload), "PRELOAD"))
        return [call for call in calls.splitlines() if not call.startswith("execve")]

    assert asked_of_the_kernel(machine.guard) == asked_of_the_kernel(empty)


@pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root")
def test_a_root_folder_with_the_c_library_and_nothing_else(
    machine: Machine, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    linked = subprocess.run(["ldd", "/bin/cat"], capture_output=True, text=True, check=True)
    needed = [Path(path) for path in re.findall(r"(/\S+)", linked.stdout)]
    assert {path.name.split(".")[0] for path in needed} <= {
        "libc",
        "ld-linux-x86-64",
        "ld-linux-aarch64",
    }
    for source in (*needed, Path("/bin/cat"), machine.guard):
        target = root / source.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    (root / "etc").mkdir()
    (root / "etc" / "ld.so.preload").write_text(f"{machine.guard}\n")
    done = run(
        ["chroot", str(root), "/bin/cat", "/proc/self/maps", "/etc/ld.so.preload"],
        {"PATH": os.environ["PATH"]},
    )
    assert done == (
        1,
        f"{machine.guard}\n",
        "/bin/cat: /proc/self/maps: No such file or directory\n",
    )


PRIVATE_ROOM = """
set -e
mount --make-rprivate /
mount -t tmpfs none /run
mkdir -p {work}/upper {work}/work /run/casaba
mount -t overlay overlay -o lowerdir=/etc,upperdir={work}/upper,workdir={work}/work /etc
echo {guard} > /etc/ld.so.preload
cp -r {claims} /run/casaba/claims
exec {program} {bytes}
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
def test_the_environment_has_no_say_where_the_preload_file_names_the_guard(
    machine: Machine, compile_c: Compile, driver: Path, tmp_path: Path
) -> None:
    machine.budget({CARDS[0]: MIB})
    generous = Machine(tmp_path / "generous", machine.driver, machine.guard)
    generous.budget({CARDS[0]: 64 * MIB})
    program = compile_c("linked.c", driver / "libcuda.so.1")
    room = tmp_path / "room"
    room.mkdir()
    mounted = run(["unshare", "-m", "mount", "-t", "tmpfs", "none", str(room)], os.environ)
    if mounted[0] != 0:
        pytest.skip(f"no private mounts here: {mounted[2].strip()}")
    script = PRIVATE_ROOM.format(
        work="/run/etc",
        guard=machine.guard,
        claims=machine.run_folder / "claims",
        program=program,
        bytes=MIB,
    )
    environment = machine.environment(guarded=False)
    environment["CASABA_RUN_DIR"] = str(generous.run_folder)
    done = run(["unshare", "-m", "sh", "-c", script], environment)
    assert done == (0, "2 0\n", "")
