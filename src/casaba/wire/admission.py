"""AdmissionReview of admission.k8s.io/v1: the API server's question to a webhook, and the answer.

What is asked about stays the bytes that came until somebody wants it. Sources: Kubernetes
documentation, "Dynamic Admission Control"; k8s.io/api/admission/v1 and, for the limits of
warnings, apiserver's pkg/endpoints/filters/warning.go.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct

from casaba.errors import InvalidInput
from casaba.wire.pod_outline import outlined

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"

JSON_PATCH = "JSONPatch"

WARNING_CHARS = 256
"""The API server may cut each warning to so many characters; the documents ask for 120."""

WARNINGS_CHARS = 4096
"""The API server may drop what goes beyond this in all."""

_MESSAGE_CHARS = 4000
_QUOTED_CHARS = 80

_REASONS = {
    400: "BadRequest",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    413: "RequestEntityTooLarge",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}

_OPENING_BYTES = 4096
_OPENING = re.compile(rb'"request"\s*:\s*\{\s*"uid"\s*:\s*"([^"\\\x00-\x1f]{1,128})"')
"""Where Go's encoder puts the uid."""


class BadReview(InvalidInput):
    """A body that is no review that can be answered, or asks about something else than it says."""

    def __init__(self, message: str, *, uid: str = "", code: int = 400) -> None:
        super().__init__(message)
        self.uid = uid
        """The review's, empty if it could not be read."""
        self.code = code
        """What the client is told, as an HTTP status."""


class _Received(Struct, frozen=True, gc=False, rename="camel"):
    """Fields that we do not know are no error."""


class KindName(_Received, frozen=True):
    """Group, version and kind."""

    group: str = ""
    version: str = ""
    kind: str = ""

    def __str__(self) -> str:
        group = f"{self.group}/" if self.group else ""
        return f"{group}{self.version} {self.kind}"


class AdmissionRequest(_Received, frozen=True):
    """What a review asks about; as far as casaba looks at it."""

    uid: str
    kind: KindName = KindName()
    sub_resource: str = ""
    name: str = ""
    """Empty where `generateName` is to make one."""
    namespace: str = ""
    """The object's own may be empty still; this one is right."""
    operation: str = ""
    object: Raw = Raw(b"null")
    old_object: Raw = Raw(b"null")
    dry_run: bool | None = None

    def new(self) -> dict[str, Any]:
        """The object as it is to be; raises BadReview if it is none."""
        return _object(self.uid, "object", self.object)

    def old(self) -> dict[str, Any]:
        """The object as it is; raises BadReview if there is none."""
        return _object(self.uid, "oldObject", self.old_object)

    def new_pod(self) -> dict[str, Any]:
        """As `new`, of a pod only what `outlined` reads, unless it is malformed."""
        return _pod(self.uid, "object", self.object)

    def old_pod(self) -> dict[str, Any]:
        """As `new_pod`, of the object as it is."""
        return _pod(self.uid, "oldObject", self.old_object)


class _Heading(_Received, frozen=True):
    api_version: str = ""
    kind: str = ""


class _Review(_Heading, frozen=True, kw_only=True):
    request: AdmissionRequest


class _Named(_Received, frozen=True):
    uid: str = ""


class _NamedReview(_Received, frozen=True):
    request: _Named = _Named()


_decode_review = msgspec.json.Decoder(_Review).decode
_decode_heading = msgspec.json.Decoder(_Heading).decode
_decode_names = msgspec.json.Decoder(_NamedReview).decode


def read_request(body: bytes) -> AdmissionRequest:
    """The request of a review; raises BadReview."""
    try:
        review = _decode_review(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadReview(_unreadable(body, error), uid=uid_of(body)) from None
    if not _is_ours(review):
        raise BadReview(_other_version(review), uid=review.request.uid)
    if not review.request.uid:
        raise BadReview(f"the {KIND}'s request.uid is empty")
    return review.request


def uid_of(body: bytes) -> str:
    """The uid of a review of which nothing else needs to be right; empty if it can't be found.

    Of a body that is cut it is found where Kubernetes writes it, at the beginning.
    """
    try:
        return _decode_names(body).request.uid
    except (msgspec.DecodeError, RecursionError):
        found = _OPENING.search(body, 0, _OPENING_BYTES)
    return found.group(1).decode("utf-8", "replace") if found else ""


def allowing(
    uid: str,
    *,
    patch: Sequence[Mapping[str, Any]] = (),
    warnings: Iterable[str] = (),
    audit_annotations: Mapping[str, str] | None = None,
) -> bytes:
    """The answer that lets a request pass, changed by a JSON Patch (RFC 6902) unless it is empty.

    The API server puts the webhook's name before the keys of the annotations in its audit log.
    """
    response: dict[str, Any] = {"uid": uid, "allowed": True}
    if patch:
        response["patchType"] = JSON_PATCH
        response["patch"] = msgspec.json.encode(patch)  # bytes become base64
    if audit_annotations:
        response["auditAnnotations"] = dict(audit_annotations)
    return _answer(response, warnings)


def refusing(uid: str, *, code: int, message: str, warnings: Iterable[str] = ()) -> bytes:
    """The answer that refuses a request; the client gets code and message."""
    status = {
        "status": "Failure",
        "code": code,
        "reason": _REASONS.get(code, ""),
        "message": _cut(message, _MESSAGE_CHARS),
    }
    return _answer({"uid": uid, "allowed": False, "status": status}, warnings)


def fitting_warnings(warnings: Iterable[str]) -> tuple[str, ...]:
    """Each once, on one line, and so long that the API server drops none of them.

    The API server drops one with a control character in it altogether.
    """
    told: list[str] = []
    room = WARNINGS_CHARS
    for text in dict.fromkeys(map(_on_one_line, warnings)):
        short = _cut(text, WARNING_CHARS)
        if short and len(short) <= room:
            told.append(short)
            room -= len(short)
    return tuple(told)


def _answer(response: dict[str, Any], warnings: Iterable[str]) -> bytes:
    if told := fitting_warnings(warnings):
        response["warnings"] = told
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def _pod(uid: str, name: str, raw: Raw) -> dict[str, Any]:
    outline = outlined(raw)
    return _object(uid, name, raw) if outline is None else outline


def _object(uid: str, name: str, raw: Raw) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadReview(f"the {KIND}'s request.{name} is wrong: {error}", uid=uid) from None
    if not isinstance(found, dict):
        raise BadReview(f"the {KIND}'s request.{name} is not a JSON object", uid=uid)
    return found


def _is_ours(heading: _Heading) -> bool:
    return (heading.api_version, heading.kind) == (API_VERSION, KIND)


def _unreadable(body: bytes, error: Exception) -> str:
    """Of a review of another version, that is said first."""
    try:
        heading = _decode_heading(body)
    except (msgspec.DecodeError, RecursionError):
        heading = _Heading(API_VERSION, KIND)
    if not _is_ours(heading):
        return _other_version(heading)
    return f"the body is no {KIND} that can be read: {error}"


def _other_version(heading: _Heading) -> str:
    version, kind = (_quoted(text) for text in (heading.api_version, heading.kind))
    return (
        f"a {kind} of {version} was sent, this webhook answers an {KIND!r} of {API_VERSION!r}: "
        "set admissionReviewVersions: [v1] in the webhook configuration"
    )


def _quoted(text: str) -> str:
    return repr(_cut(text, _QUOTED_CHARS))


def _on_one_line(text: str) -> str:
    return " ".join("".join(_printable(text)).split())


def _printable(text: str) -> Iterator[str]:
    for char in text:
        yield char if char.isprintable() else " "


def _cut(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[: chars - 1] + "…"
