"""What can go wrong with the API server, translated once, here.

KubeError                      what was asked of which server, what came back, what to do
├── KubeConfigError            a kubeconfig or service account that can't be used
├── Unreachable                no answer: refused, timed out, reset, name not found
│   └── Untrusted              the server's certificate or ours was not accepted
├── Undecodable                an answer that is not what this version of casaba understands
└── Refused                    the server answered with a status
    ├── Invalid                400, 422
    ├── Unauthorized           401
    ├── Forbidden              403
    ├── NotFound               404
    ├── Conflict               409, or a precondition that did not hold
    │   └── AlreadyExists
    ├── Gone                   410, or a version that the server does not have (yet)
    ├── TooManyRequests        429, `retry_after_s`
    └── ServerError            5xx, `retry_after_s` where the server says so
"""

import msgspec

from casaba.errors import CasabaError, InvalidInput
from casaba.wire.kubernetes import Status

_MAX_MESSAGE_CHARS = 1000
_decode_status = msgspec.json.Decoder(Status).decode


class KubeError(CasabaError):
    """Something asked of the API server did not work."""

    exit_code = 4


class KubeConfigError(InvalidInput, KubeError):
    """A kubeconfig or service account that can't be used."""


class Unreachable(KubeError):
    """No answer. For a write that means: it may have been done."""


class Untrusted(Unreachable):
    """The TLS handshake failed; trying again won't help before somebody acts."""


class Undecodable(KubeError):
    """An answer that is not what this version of casaba understands."""


class Refused(KubeError):
    """The server answered with a status instead of what was asked for."""

    advice = ""

    def __init__(self, asked: str, status: Status, retry_after_s: float | None = None) -> None:
        text = status.message or "the server gave no reason"
        if len(text) > _MAX_MESSAGE_CHARS:
            text = text[:_MAX_MESSAGE_CHARS] + "…"
        reason = f" {status.reason}" if status.reason else ""
        advice = f"; {self.advice}" if self.advice else ""
        super().__init__(f"{asked}: {text} ({status.code}{reason}){advice}")
        self.status = status
        self.code = status.code
        self.reason = status.reason
        self.retry_after_s = retry_after_s


class Invalid(Refused):
    """The request itself is wrong."""


class Unauthorized(Refused):
    """The server does not know who we are."""

    advice = "check that the token or client certificate is the server's own and not expired"


class Forbidden(Refused):
    """The server knows us, and we may not."""

    advice = "grant it with RBAC"


class NotFound(Refused):
    """No such object, or no such resource on this server."""


class Conflict(Refused):
    """Somebody was faster, or a precondition did not hold: read again and decide anew."""


class AlreadyExists(Conflict):
    """An object of this name exists."""


class Gone(Refused):
    """The version asked for is not there: list again."""


class TooManyRequests(Refused):
    """The server is protecting itself."""


class ServerError(Refused):
    """The server failed."""


_BY_CODE: dict[int, type[Refused]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}
_BY_REASON: dict[str, type[Refused]] = {"AlreadyExists": AlreadyExists, "Expired": Gone}
_BY_CAUSE: dict[str, type[Refused]] = {"ResourceVersionTooLarge": Gone}
_BY_CAUSE_FIELD: dict[str, type[Refused]] = {"metadata.uid": Conflict}
"""A patch whose precondition on the UID fails comes back as 422, not 409."""


def refusal(asked: str, status: Status, retry_after_s: float | None = None) -> Refused:
    """The error for a status; `asked` names verb and path, such as `get /api/v1/nodes/a`."""
    causes = status.details.causes if status.details else ()
    if retry_after_s is None and status.details and status.details.retry_after_seconds:
        retry_after_s = float(status.details.retry_after_seconds)
    found = (
        next((_BY_CAUSE[cause.reason] for cause in causes if cause.reason in _BY_CAUSE), None)
        or next((_BY_CAUSE_FIELD[c.field] for c in causes if c.field in _BY_CAUSE_FIELD), None)
        or _BY_REASON.get(status.reason)
        or _BY_CODE.get(status.code)
        or (ServerError if status.code >= 500 else Refused)
    )
    return found(asked, status, retry_after_s)


def refusal_of_answer(asked: str, code: int, body: bytes, retry_after: str | None) -> Refused:
    """The error for an HTTP answer; a body that is no Status (of a proxy, say) is not shown."""
    try:
        status = _decode_status(body)
        if status.code != code:
            status = msgspec.structs.replace(status, code=code)
    except msgspec.DecodeError:
        text = f"an answer of {len(body)} bytes that is no Kubernetes Status; is it a proxy's?"
        status = Status(code=code, message=text)
    seconds = float(retry_after) if retry_after and retry_after.isdecimal() else None
    return refusal(asked, status, seconds)
