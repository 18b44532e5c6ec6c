"""The HTTPS side of reviews: bodies in, answers out, whatever comes.

Each body is answered with HTTP 200 and an AdmissionReview, refusals too: of another answer the
API server shows no word to the user, and `failurePolicy` could let the pod pass unlimited.
"""

import asyncio
import functools
import logging
import re
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field

from aiohttp import web

from casaba.services.webhook.answers import TRY_AGAIN, Answer, Judge, ReviewRefused
from casaba.services.webhook.metrics import WebhookMetrics
from casaba.wire.admission import (
    AdmissionRequest,
    BadReview,
    allowing,
    read_request,
    refusing,
    uid_of,
)

log = logging.getLogger(__name__)

_TOLD_LIMIT = re.compile(r"(?:^|&)timeout=([0-9]{1,4}(?:\.[0-9]{1,3})?)s(?:&|$)")
"""The API server tells its own limit as `?timeout=10s`."""

_ROUND_TRIP_S = 1.0
"""What is left of that limit for the way back; at most half of it."""

_UNKNOWN = "unknown"
_OPERATIONS = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})

_OUTCOMES = {400: "invalid", 413: "invalid", 429: "unavailable", 500: "failed"}
_LOWEST_UNAVAILABLE = 501


@dataclass(frozen=True, kw_only=True)
class ReviewLimits:
    """What one review may take."""

    time_s: float
    body_bytes: int


@dataclass(kw_only=True)
class _Review:
    """What is known of a review so far."""

    began_s: float = field(default_factory=time.monotonic)
    limit_s: float
    uid: str = ""
    operation: str = _UNKNOWN


class ReviewDoor:
    """An aiohttp application with a judge behind each path."""

    def __init__(
        self, judges: Mapping[str, Judge], limits: ReviewLimits, metrics: WebhookMetrics
    ) -> None:
        self._limits = limits
        self._metrics = metrics
        self.says_farewell = False
        """Set at the end: each answer then ends its connection, so that none is cut by us."""
        self.app = web.Application()
        for path, judge in judges.items():
            metrics.serves(path)
            self.app.router.add_post(path, functools.partial(self._post, path, judge))

    async def _post(self, path: str, judge: Judge, http: web.Request) -> web.Response:
        review = _Review(limit_s=self._limit_s(http))
        outcome, body = await self._outcome(judge, http, review)
        seconds = time.monotonic() - review.began_s
        self._metrics.reviewed(path, review.operation, outcome, seconds)
        answer = web.Response(body=body, content_type="application/json")
        if self.says_farewell:
            answer.force_close()
        return answer

    def _limit_s(self, http: web.Request) -> float:
        told = _TOLD_LIMIT.search(http.rel_url.raw_query_string)
        if told is None:
            return self._limits.time_s
        told_s = float(told[1])
        return min(self._limits.time_s, max(told_s - _ROUND_TRIP_S, told_s / 2))

    async def _outcome(self, judge: Judge, http: web.Request, review: _Review) -> tuple[str, bytes]:
        """A word for the metrics, and the answer."""
        try:
            async with asyncio.timeout(review.limit_s):
                answer = await judge(await self._read(http, review))
        except BadReview as bad:
            return _refused(review, bad.code, str(bad))
        except ReviewRefused as refusal:
            return _refused(review, refusal.code, str(refusal), refusal.warnings)
        except TimeoutError:
            late = f"the webhook did not come to an end within {review.limit_s:g} s; {TRY_AGAIN}"
            return _refused(review, 504, late)
        except Exception as error:
            return _failed(review, error)
        return "changed" if answer.patch else "allowed", _allowed(review, answer)

    async def _read(self, http: web.Request, review: _Review) -> AdmissionRequest:
        try:
            request = read_request(await self._body(http))
        except BadReview as bad:
            review.uid = bad.uid
            raise
        review.uid = request.uid
        if request.operation in _OPERATIONS:
            review.operation = request.operation
        return request

    async def _body(self, http: web.Request) -> bytes:
        """The whole body; of one that is too large only as much as is allowed is ever held."""
        body, limit = bytearray(), self._limits.body_bytes
        try:
            while not http.content.at_eof():
                body += await http.content.readany()
                if len(body) > limit:
                    raise BadReview(_too_large(limit), uid=uid_of(bytes(body)), code=413)
        except web.RequestPayloadError:
            raise BadReview("the body ended early", uid=uid_of(bytes(body))) from None
        return bytes(body)


def _too_large(limit: int) -> str:
    return (
        f"the object is too large: its review has more than {limit} bytes; "
        "make the object smaller, or set the webhook's --body-limit"
    )


def _allowed(review: _Review, answer: Answer) -> bytes:
    return allowing(
        review.uid,
        patch=answer.patch,
        warnings=answer.warnings,
        audit_annotations=answer.audit_annotations,
    )


def _refused(
    review: _Review, code: int, message: str, warnings: tuple[str, ...] = ()
) -> tuple[str, bytes]:
    """The log does not repeat the message, which speaks of what is in the object."""
    outcome = _OUTCOMES.get(code, "refused" if code < _LOWEST_UNAVAILABLE else "unavailable")
    log.info(
        "review.refused",
        extra={"uid": review.uid, "operation": review.operation, "code": code, "outcome": outcome},
    )
    return outcome, refusing(review.uid, code=code, message=message, warnings=warnings)


def _failed(review: _Review, error: Exception) -> tuple[str, bytes]:
    """A fault of ours. Where it was is logged, but not its text, which may quote the object."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
    kind = type(error).__name__
    log.error("review.failed", extra={"uid": review.uid, "error": kind, "at": places})
    message = (
        f"the webhook failed ({kind}), which is a fault of casaba's; the object was refused so "
        f"that nothing runs without its limits: report it with review {review.uid or 'unknown'}"
    )
    return "failed", refusing(review.uid, code=500, message=message)
