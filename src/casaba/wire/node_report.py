"""What a node agent tells its operator: one JSON document, for `casaba smi` and others.

`{"version": 1, "release": …, "guard": …, "registered": …, "problems": […], "use": {…}}`
"""

from dataclasses import dataclass

import msgspec

from casaba.errors import InvalidInput
from casaba.model.node_use import NodeUse
from casaba.model.problem import Problem

VERSION = 1


@dataclass(frozen=True, kw_only=True)
class NodeReport:
    """A node agent and its cards at one moment."""

    release: str
    guard: str
    """Version of the guard that new claims get."""
    registered: bool
    """Whether the kubelet has registered the driver."""
    problems: tuple[Problem, ...]
    use: NodeUse
    version: int = VERSION


_decode = msgspec.json.Decoder(NodeReport).decode


def build_report(report: NodeReport) -> bytes:
    """The document."""
    return msgspec.json.encode(report)


def parse_report(content: bytes) -> NodeReport:
    """Read a document; raises InvalidInput when it is another release's or none at all."""
    try:
        report = _decode(content)
    except msgspec.MsgspecError as error:
        raise InvalidInput(f"the agent's answer is not understood: {error}") from error
    if report.version != VERSION:
        raise InvalidInput(
            f"the agent's answer has version {report.version}, this release reads {VERSION}; "
            "use the casaba of the agent's release"
        )
    return report
