"""The table of checks of a machine, in the order in which one would look; pure."""

from casaba.policy.diagnosis.finding import Check, Finding, findings
from casaba.policy.diagnosis.host import agent, driver, machine, runtime
from casaba.policy.diagnosis.host.observations import HostObservations

HOST_CHECKS: tuple[Check[HostObservations], ...] = (
    driver.DRIVER,
    driver.CARDS,
    driver.TOOLKIT,
    runtime.CDI_SPECS,
    runtime.RUNTIME,
    runtime.KUBELET,
    agent.AGENT,
    agent.GUARDS,
    agent.GUARD_FILES,
    agent.CHECKPOINT,
    machine.RUN_FILESYSTEM,
    machine.CLOCK,
    machine.LEFTOVERS,
    machine.ROOM,
)


def diagnose_host(seen: HostObservations) -> tuple[Finding, ...]:
    """The machine itself."""
    return findings(HOST_CHECKS, seen)
