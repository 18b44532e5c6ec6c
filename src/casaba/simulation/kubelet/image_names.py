"""Names of container images, and what they stand for here. Pure.

Source of the grammar: the distribution project's reference grammar, as runtimes read it.
"""

import re
from collections.abc import Container

from casaba.errors import CasabaError

_PATH_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_DOMAIN = r"(?:[A-Za-z0-9](?:[-.A-Za-z0-9]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]+)?"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_REFERENCE = re.compile(
    rf"(?:{_DOMAIN}/)?{_PATH_PART}(?:/{_PATH_PART})*(?::{_TAG})?(?:@{_DIGEST})?"
)


class InvalidImageName(CasabaError):
    """A name that is no image's."""


def check_image_name(name: str) -> None:
    """Raises InvalidImageName, in the kubelet's words."""
    if _REFERENCE.fullmatch(name):
        return
    why = "invalid reference format"
    if _REFERENCE.fullmatch(name.lower()):
        why += ": repository name must be lowercase"
    raise InvalidImageName(
        f'Failed to apply default image tag "{name}": couldn\'t parse image name "{name}": {why}'
    )


def image_told(name: str, known: Container[str]) -> str:
    """What is said of an image before its container is made."""
    if name in known:
        return f'Container image "{name}" already present on machine and can be accessed by the pod'
    return (
        f"Image \"{name}\" is not one of this simulated node's: the container's command runs "
        "with the programs of this machine"
    )
