"""The real cluster that tests may ask for, and on which side the conformance suites run."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import hypothesis
import pytest

from tests.cluster import audit, build, chart_images, control_plane, helm, packages
from tests.cluster.bed import Bed, gpu_node, in_use, plain_node, up
from tests.cluster.settings import BedSettings, NodeSettings, default_state

# Another name than a person's own bed (`make cluster-up`), so that both live side by side.
_DEFAULT_NAME = "casabatest"
_NAME = "CASABA_TEST_BED_NAME"
# The state folder of a bed that already runs, with this bed's nodes; it is left running.
_REUSED = "CASABA_TEST_BED"
_REUSED_BARE = "CASABA_TEST_BARE_BED"
# Kubernetes' own 50 s only make the tests of cut links slower.
_NODE_MONITOR_GRACE_S = 20

# What measures the time of examples measures the machine.
hypothesis.settings.register_profile(
    "casaba", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("casaba")

BareBeds = Callable[[str, str, tuple[NodeSettings, ...]], AbstractContextManager[Bed]]
"""From the end of a bed's name, the variable that names a running one, and its nodes."""

_beds_in_use = pytest.StashKey[list[Bed]]()
_calls = pytest.StashKey[set[audit.Call]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--real`: run the conformance suites on the real programs instead of the stand-ins."""
    parser.addoption(
        "--real", action="store_true", help="conformance suites: on the real cluster (root)"
    )


@pytest.fixture(scope="session")
def on_real(request: pytest.FixtureRequest) -> bool:
    """Whether the conformance suites run on the real programs."""
    return bool(request.config.getoption("--real"))


@pytest.fixture(scope="session")
def bed(request: pytest.FixtureRequest) -> Iterator[Bed]:
    """Two GPU nodes edge-1 and edge-2 with agents, and edge-3 without `gpu=on`."""
    with _running(request, os.environ.get(_REUSED), _settings(_name())) as running:
        yield running


@pytest.fixture(scope="session")
def bare_bed_of(request: pytest.FixtureRequest) -> BareBeds:
    """Runs a bed that has the chart's images, and nothing else of casaba."""

    @contextmanager
    def run(suffix: str, variable: str, nodes: tuple[NodeSettings, ...]) -> Iterator[Bed]:
        name = f"{_name()}{suffix}"
        wanted = BedSettings(
            name=name,
            state=default_state(name),
            nodes=nodes,
            node_monitor_grace_s=_NODE_MONITOR_GRACE_S,
            bare=True,
        )
        with _running(request, os.environ.get(variable), wanted) as running:
            running.load_images(chart_images.archives())
            yield running

    return run


@pytest.fixture(scope="module")
def bare_bed(bare_bed_of: BareBeds) -> Iterator[Bed]:
    """Two GPU nodes edge-1 and edge-2 that have the chart's images, and nothing else of casaba."""
    with bare_bed_of("bare", _REUSED_BARE, (gpu_node(1, "edge-1"), gpu_node(2, "edge-2"))) as bed:
        yield bed


@pytest.fixture
def recorded_calls(request: pytest.FixtureRequest) -> frozenset[audit.Call]:
    """What service accounts asked of the API servers of all beds that have ended."""
    return frozenset(request.config.stash.get(_calls, ()))


@pytest.fixture(scope="session")
def old_api_server() -> Path:
    """An API server of a Kubernetes that is too old."""
    return build.old_api_server()


@contextmanager
def _running(
    request: pytest.FixtureRequest, reused: str | None, wanted: BedSettings
) -> Iterator[Bed]:
    """A bed of our own, or the one that runs already; its logs get into reports meanwhile."""
    if os.geteuid():
        pytest.fail("the real cluster makes namespaces and mounts: run it as root")
    with contextlib.ExitStack() as ending:
        if reused:
            running = Bed.open(Path(reused))
        else:
            ending.enter_context(in_use(wanted.name))
            ending.enter_context(_ending_on_sigterm())
            running = up(wanted)
            ending.callback(running.down)
        ending.enter_context(_recording(request.config, running))
        in_reports = request.config.stash.setdefault(_beds_in_use, [])
        in_reports.append(running)
        ending.callback(in_reports.remove, running)
        yield running


@contextmanager
def _recording(config: pytest.Config, running: Bed) -> Iterator[None]:
    """Keep what service accounts ask meanwhile; the log ends with the bed."""
    log = control_plane.audit_log(running.settings)
    start = audit.size(log)
    yield
    config.stash.setdefault(_calls, set()).update(audit.calls(log, start))


@contextmanager
def _ending_on_sigterm() -> Iterator[None]:
    """SIGTERM takes the same way out as Ctrl-C: through the teardown."""
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what is missing before any test's clock runs, where a person can follow it."""
    if session.config.option.collectonly or os.geteuid() or not _wants_bed(session):
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        packages.install_missing()
        build.build()
        helm.helm()
        if _wants(session, "bare_bed_of"):
            chart_images.archives()
        if _wants(session, "old_api_server"):
            build.old_api_server()


def _wants_bed(session: pytest.Session) -> bool:
    asks = _wants(session, "bed") or _wants(session, "bare_bed_of")
    return asks or bool(session.items and session.config.getoption("--real"))


def _wants(session: pytest.Session, fixture: str) -> bool:
    return any(fixture in getattr(item, "fixturenames", ()) for item in session.items)


def _name() -> str:
    return os.environ.get(_NAME, _DEFAULT_NAME)


def _settings(name: str) -> BedSettings:
    return BedSettings(
        name=name,
        state=default_state(name),
        nodes=(gpu_node(1, "edge-1"), gpu_node(2, "edge-2"), plain_node(3, "edge-3")),
        node_monitor_grace_s=_NODE_MONITOR_GRACE_S,
        agent=True,
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the ends of the daemons' logs to the report of a failed test."""
    report = yield
    for running in item.config.stash.get(_beds_in_use, []) if report.failed else []:
        name = running.settings.name
        report.sections.append((f"logs of the bed {name}", running.log_tails()))
    return report
