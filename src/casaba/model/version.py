"""Driver version numbers in the form that ResourceSlice attributes want (semver 2.0.0)."""

import re

from casaba.errors import InvalidInput


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
