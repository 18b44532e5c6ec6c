"""Names of requests and pod claims: DNS labels, each once."""

import re
from collections import Counter
from collections.abc import Collection, Sequence

DNS_LABEL_CHARACTERS = 63

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def is_label(text: str) -> bool:
    """Whether a text is a DNS label (RFC 1123)."""
    return _DNS_LABEL.fullmatch(text) is not None


def request_names(owners: Sequence[str]) -> list[str]:
    """A name for each request: its container's, with a number where that has several.

    The owners are DNS labels.
    """
    if len(set(owners)) == len(owners):
        return list(owners)
    totals, seen = Counter(owners), Counter[str]()
    taken = {owner for owner, total in totals.items() if total == 1}
    names = []
    for owner in owners:
        if totals[owner] == 1:
            names.append(owner)
            continue
        names.append(_numbered(owner, seen[owner], taken))
        taken.add(names[-1])
        seen[owner] += 1
    return names


def free_name(wanted: str, taken: Collection[str]) -> str:
    """The wanted name, or with the first number that makes it another than those taken."""
    name, number = wanted, 2
    while name in taken:
        name, number = _suffixed(wanted, f"-{number}"), number + 1
    return name


def _numbered(owner: str, number: int, taken: Collection[str]) -> str:
    return free_name(_suffixed(owner, f"-{number}"), taken)


def _suffixed(name: str, suffix: str) -> str:
    return name[: DNS_LABEL_CHARACTERS - len(suffix)].rstrip("-") + suffix
