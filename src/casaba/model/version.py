"""Version numbers as ResourceSlice attributes want them (semver 2.0.0)."""

import re
from dataclasses import dataclass

from casaba.errors import InvalidInput

_NUMBER = r"(0|[1-9][0-9]*)"
_PRE_PART = r"(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
_SEMVER = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}"
    rf"(?:-(?P<pre>{_PRE_PART}(?:\.{_PRE_PART})*))?"
    r"(?:\+(?P<build>[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?",
    re.ASCII,
)


@dataclass(frozen=True)
class Version:
    """A semantic version; the build part does not count in comparisons."""

    major: int
    minor: int
    patch: int
    pre: tuple[str, ...] = ()

    def compare(self, other: "Version") -> int:
        """-1, 0 or 1 by precedence (semver.org, item 11): a pre-release comes before."""
        mine, theirs = self._key(), other._key()
        return (mine > theirs) - (mine < theirs)

    def _key(self) -> tuple[int, int, int, bool, tuple[tuple[int, int, str], ...]]:
        """Numbers before words, and every pre-release before none."""
        parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in self.pre)
        return self.major, self.minor, self.patch, not self.pre, parts


def parsed_version(text: str) -> Version:
    """The parts of a strict semver 2.0.0 text; raises InvalidInput."""
    match = _SEMVER.fullmatch(text)
    if match is None:
        raise InvalidInput(f"{text!r} is not a semantic version: write one such as 1.2.3")
    pre = tuple(match["pre"].split(".")) if match["pre"] else ()
    return Version(int(match[1]), int(match[2]), int(match[3]), pre)


def semver(text: str) -> str:
    """`580.126.09` as `580.126.9`, `440.33` as `440.33.0`; raises InvalidInput.

    Semver allows no leading zeros and needs exactly three numbers.
    """
    numbers = re.findall(r"[0-9]+", text)
    if not 1 <= len(numbers) <= 3 or not re.fullmatch(r"[0-9]+(\.[0-9]+)*", text):
        raise InvalidInput(f"driver version {text!r} is not of the form 580.126.09")
    return ".".join(str(int(number)) for number in (*numbers, "0", "0")[:3])


def cuda_version(number: int) -> str:
    """NVML's 13000 as `13.0.0`, 12080 as `12.8.0`."""
    return f"{number // 1000}.{number % 1000 // 10}.0"
