"""Builds the cluster's programs from their Go modules, once, into a cache outside the tree.

One family is one `programs/<family>/go.mod`; its `tool` lines name the main packages. The result
lies in `<cache>/programs/<family>-<key>`, where the key covers everything that decides what the
compiler makes, so a later run with the same modules finds it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.errors import BedError

MODULES = Path(__file__).parent / "programs"
_SHARED_FLAGS = ("-trimpath", "-buildvcs=false")
_STRIP = "-s -w"


@dataclass(frozen=True)
class Step:
    """One `go build` of a family.

    Attributes:
        packages: what to build; `tool` stands for all `tool` lines of the go.mod.
        output: name of the program where it is not the last part of the package's path.
        link: extra words for `-ldflags`.
        tags: build tags.
        cgo: whether cgo is on.
    """

    packages: str
    output: str = ""
    link: str = ""
    tags: tuple[str, ...] = ()
    cgo: bool = False


@dataclass(frozen=True)
class Family:
    """The programs that share one go.mod.

    Attributes:
        programs: names of the programs that must be there after the steps.
        module: module whose version is stamped into them.
        stamps: linker variables to set; `{version}`, `{major}` and `{minor}` are filled in.
        sources: folder of its go.mod, where it is not called like the family.
    """

    name: str
    programs: tuple[str, ...]
    steps: tuple[Step, ...]
    module: str = ""
    stamps: Mapping[str, str] = field(default_factory=dict)
    sources: str = field(default="", repr=False)  # keys are over what repr tells

    @property
    def modules(self) -> Path:
        """The folder of its go.mod."""
        return MODULES / (self.sources or self.name)


def _kubernetes_stamps(
    version: str = "{version}", major: str = "{major}", minor: str = "{minor}"
) -> dict[str, str]:
    # Unstamped binaries call themselves v0.0.0-master and fail every client's version check.
    values = {
        "gitVersion": f"v{version}",
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
    }
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return {f"{package}.{name}": value for package in packages for name, value in values.items()}


OLD_KUBERNETES = "1.33.9"
"""The last minor release without resource.k8s.io/v1."""


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family("etcd", ("etcd",), (Step("go.etcd.io/etcd/server/v3", output="etcd"),)),
        Family(
            "containerd",
            ("containerd", "containerd-shim-runc-v2", "ctr"),
            (Step("tool", tags=("no_btrfs", "no_devmapper", "no_zfs")),),
            module="github.com/containerd/containerd/v2",
            stamps={"github.com/containerd/containerd/v2/version.Version": "v{version}"},
        ),
        Family(
            "toolkit",
            ("nvidia-ctk", "nvidia-cdi-hook"),
            (
                # Lazy binding: the NVML symbols are looked up only once the library is loaded.
                Step(
                    "github.com/NVIDIA/nvidia-container-toolkit/cmd/nvidia-ctk",
                    link='-extldflags "-Wl,-z,lazy"',
                    cgo=True,
                ),
                # The runtime runs the hook on the host, whatever libc that has.
                Step(
                    "github.com/NVIDIA/nvidia-container-toolkit/cmd/nvidia-cdi-hook",
                    link='-extldflags "-static"',
                    tags=("netgo", "osusergo"),
                    cgo=True,
                ),
            ),
            module="github.com/NVIDIA/nvidia-container-toolkit",
            stamps={
                "github.com/NVIDIA/nvidia-container-toolkit/internal/info.version": "{version}"
            },
        ),
        Family(
            "prometheus",
            ("prometheus", "promtool"),
            # Of the ways to find what to scrape, only files and the API server; the pages for
            # people need a JavaScript build, and nobody looks at them here.
            (Step("tool", tags=("remove_all_sd", "enable_kubernetes_sd")),),
            module="github.com/prometheus/prometheus",
            stamps={"github.com/prometheus/common/version.Version": "{version}"},
        ),
        Family(
            "kubernetes",
            ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kubelet"),
            (Step("tool"),),
            module="k8s.io/kubernetes",
            stamps=_kubernetes_stamps(),
        ),
    )
}

OF_A_BED = tuple(name for name in FAMILIES if name != "prometheus")
"""The families that a bed needs to start."""


_OLD_API_SERVER = Family(
    "kubernetes-old",
    ("kube-apiserver",),
    (Step("k8s.io/kubernetes/cmd/kube-apiserver"),),
    module="k8s.io/kubernetes",
    stamps=_kubernetes_stamps(OLD_KUBERNETES, "1", "33"),
    sources="kubernetes",
)


@dataclass(frozen=True)
class Programs:
    """Where each built program lies."""

    paths: Mapping[str, Path]

    def __getitem__(self, program: str) -> str:
        return str(self.paths[program])

    def folder(self, program: str) -> Path:
        """The folder that holds the program and the rest of its family."""
        return self.paths[program].parent


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/casaba`, by default `~/.cache/casaba`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "casaba"


def build(names: Sequence[str] = tuple(FAMILIES)) -> Programs:
    """Build the families that are not in the cache, one after the other, and find them all.

    One at a time, because two linkers of Kubernetes' size at once need more memory than a small
    machine has.

    Raises:
        BedError: a family is unknown, Go is missing, or a build failed.
    """
    if unknown := sorted(set(names) - set(FAMILIES)):
        raise BedError(f"no such program family: {', '.join(unknown)}; have {', '.join(FAMILIES)}")
    paths: dict[str, Path] = {}
    for name in names:
        folder = _built(FAMILIES[name])
        paths |= {program: folder / program for program in FAMILIES[name].programs}
    return Programs(paths)


def old_api_server() -> Path:
    """An API server that takes itself for `OLD_KUBERNETES` and serves what that one did.

    Kubernetes derives the APIs and gates that it has from the version that is linked in, so this
    is the bed's own API server, linked anew.

    Raises:
        BedError: Go is missing, or the build failed.
    """
    return _built(_OLD_API_SERVER) / "kube-apiserver"


def family_key(family: Family, go_version: str) -> str:
    """12 hex digits over all that decides what the build of `family` makes."""
    told = repr((family, _SHARED_FLAGS, _STRIP, go_version)).encode()
    content = [(family.modules / file).read_bytes() for file in ("go.mod", "go.sum")]
    return hashlib.sha256(b"\0".join([told, *content])).hexdigest()[:12]


def _built(family: Family) -> Path:
    programs = cache_folder() / "programs"
    folder = programs / f"{family.name}-{family_key(family, _go_version())}"
    if folder.is_dir():
        return folder
    programs.mkdir(parents=True, exist_ok=True)
    with locked(programs / f"{family.name}.lock"):
        if not folder.is_dir():
            _build_into(family, folder)
    return folder


def _build_into(family: Family, folder: Path) -> None:
    started = time.monotonic()
    print(f"building {family.name}: {', '.join(family.programs)} (into {folder})", flush=True)
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    for step in family.steps:
        _go_build(family, step, unfinished)
    if absent := [name for name in family.programs if not (unfinished / name).is_file()]:
        raise BedError(f"the build of {family.name} made no {', '.join(absent)}")
    unfinished.rename(folder)
    print(f"built {family.name} in {time.monotonic() - started:.0f} s", flush=True)


def _go_build(family: Family, step: Step, folder: Path) -> None:
    link = " ".join(part for part in (_STRIP, _stamp_flags(family), step.link) if part)
    command = ["go", "build", *_SHARED_FLAGS, "-ldflags", link]
    if step.tags:
        command += ["-tags", ",".join(step.tags)]
    command += ["-o", str(folder / step.output) if step.output else f"{folder}/", step.packages]
    done = subprocess.run(command, cwd=family.modules, env=_go_environment(step.cgo), check=False)
    if done.returncode:
        raise BedError(
            f"building {family.name} failed (go build exited {done.returncode}); its messages are"
            f" above, the module is {family.modules}"
        )


def _go_environment(cgo: bool) -> dict[str, str]:
    # A person's own GOFLAGS, GOWORK or GOOS would change what is built behind the key's back.
    kept = {name: value for name, value in os.environ.items() if name not in _STEERING_VARIABLES}
    return kept | {"GOFLAGS": "", "GOWORK": "off", "CGO_ENABLED": "1" if cgo else "0"}


_STEERING_VARIABLES = frozenset(
    {"GOFLAGS", "GOWORK", "GOOS", "GOARCH", "GOAMD64", "GOEXPERIMENT", "GODEBUG"}
    | {"CGO_CFLAGS", "CGO_LDFLAGS", "CC", "CXX"}
)


def _stamp_flags(family: Family) -> str:
    if not family.stamps:
        return ""
    version = _module_version(family)
    major, minor = version.split(".")[:2]
    filled = {
        variable: template.format(version=version, major=major, minor=minor)
        for variable, template in family.stamps.items()
    }
    return " ".join(f"-X {variable}={value}" for variable, value in filled.items())


def _module_version(family: Family) -> str:
    """The version of the family's module in its go.mod, without the leading v."""
    text = (family.modules / "go.mod").read_text()
    found = re.search(rf"^\s*{re.escape(family.module)} v(\S+)", text, re.MULTILINE)
    if found is None:
        raise BedError(f"{family.modules / 'go.mod'} does not require {family.module}")
    return found.group(1)


def _go_version() -> str:
    try:
        done = subprocess.run(
            ["go", "env", "GOVERSION"], cwd="/", capture_output=True, text=True, check=True
        )
    except FileNotFoundError:
        raise BedError("no `go` on PATH; install Go 1.26 or newer") from None
    return done.stdout.strip()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a file's lock; other processes wait for it."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
