"""Answers become objects, or an error that says which answer and what was wrong in it."""

from typing import TypeVar

import msgspec

from casaba.kube.errors import Undecodable

T = TypeVar("T")


def decoded(body: bytes | msgspec.Raw, form: type[T], asked: str) -> T:
    """JSON as `form`; `asked` names verb and path. Raises Undecodable."""
    try:
        return msgspec.json.decode(body, type=form)
    except msgspec.DecodeError as error:
        raise Undecodable(f"{asked}: the answer is not understood: {error}") from error
