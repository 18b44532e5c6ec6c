"""The Accept header: which of the shapes of an answer a client wants (RFC 9110, 12.5.1)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from casaba.simulation.api_server.statuses import ApiError

_JSON = frozenset({"application/json", "application/*", "*/*"})


@dataclass(frozen=True, kw_only=True)
class MediaType:
    """One clause, such as `application/json;as=Table;v=v1;g=meta.k8s.io`."""

    type: str
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_json(self) -> bool:
        """Whether JSON will do."""
        return self.type in _JSON

    @property
    def form(self) -> tuple[str, str, str]:
        """What the object is to be turned into: `as`, group and version; empty for itself."""
        as_, group, version = (self.parameters.get(key, "") for key in ("as", "g", "v"))
        return as_, group, version

    @property
    def weight(self) -> float:
        """How much it is wanted, 0 to 1."""
        try:
            return float(self.parameters.get("q", 1))
        except ValueError:
            return 0.0


def accepted_types(header: str) -> tuple[MediaType, ...]:
    """The clauses of an Accept header, the best first; a missing header accepts all."""
    clauses = [_clause(part) for part in (header or "*/*").split(",") if part.strip()]
    return tuple(sorted(clauses, key=lambda clause: -clause.weight))


def _clause(part: str) -> MediaType:
    type_, *parameters = (piece.strip() for piece in part.split(";"))
    pairs = (piece.partition("=") for piece in parameters)
    return MediaType(
        type=type_.lower(),
        parameters={key.strip(): value.strip().strip('"') for key, _, value in pairs},
    )


def not_acceptable(*types: str) -> ApiError:
    """406; `types` are those that would do."""
    message = f"only the following media types are accepted: {', '.join(types)}"
    return ApiError(406, "NotAcceptable", message)
