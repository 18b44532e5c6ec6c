"""The one series that all of HAMi's processes tell: which build runs."""

from casaba.wire.exposition import Family

ZONE = "vGPU"
"""Value of the label `zone`, which all series of HAMi's scheduler and vGPUmonitor have."""

LABELS = ("zone", "version", "revision", "build_date", "go_version", "compiler", "platform")

_NOT_KNOWN, _NOT_GO = "unknown", "none"
"""Never empty: for Prometheus an empty label is none."""

_GO_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def build_family(version: str, *, python: str, system: str, machine: str) -> Family:
    """`python` is the version of the interpreter; system and machine are as uname says them."""
    platform = f"{system.lower()}/{_GO_MACHINES.get(machine, machine)}"
    compiler = f"cpython {python}"
    values = (ZONE, version, _NOT_KNOWN, _NOT_KNOWN, _NOT_GO, compiler, platform)
    return Family(
        name="hami_build_info",
        kind="gauge",
        help="The release that runs; what only a program in Go has says so.",
        labels=LABELS,
        samples=[(values, 1)],
    )
