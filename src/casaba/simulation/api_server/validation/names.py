"""The forms of names in Kubernetes: labels, subdomains, qualified names, identifiers.

Each function gives the sentences that are wrong about a text, none if it is well-formed.
"""

import re
from collections.abc import Iterator

LABEL_BYTES = 63
SUBDOMAIN_BYTES = 253
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_SAID = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_SUBDOMAIN_SAID = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character"
)
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_KEY_SAID = (
    "must consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)
_VALUE_SAID = f"a valid label must be an empty string or {_KEY_SAID.removeprefix('must ')}"
_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_IDENTIFIER_SAID = (
    "a valid C identifier must start with alphabetic character or '_', "
    "followed by a string of alphanumeric characters or '_'"
)
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_CONFIG_KEY_SAID = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_SAID = (
    "a condition reason must start with alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'"
)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


def _matches(form: str, text: str) -> bool:
    return re.fullmatch(form, text, re.ASCII) is not None


def _by_form(said: str, form: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{said} (e.g. {shown}regex used for validation is '{form}')"


def _at_most(limit: int, unit: str) -> str:
    return f"must be no more than {limit} {unit}"


def label(text: str) -> Iterator[str]:
    """RFC 1123 label."""
    if len(text) > LABEL_BYTES:
        yield _at_most(LABEL_BYTES, "characters")
    if not _matches(_LABEL, text):
        if _matches(_SUBDOMAIN, text):
            yield "must not contain dots"
        else:
            yield _by_form(_LABEL_SAID, _LABEL, "my-name", "123-abc")


def subdomain(text: str) -> Iterator[str]:
    """RFC 1123 subdomain, the form of most objects' names."""
    if len(text) > SUBDOMAIN_BYTES:
        yield _at_most(SUBDOMAIN_BYTES, "characters")
    if not _matches(_SUBDOMAIN, text):
        yield _by_form(_SUBDOMAIN_SAID, _SUBDOMAIN, "example.com")


def qualified(text: str) -> Iterator[str]:
    """The key of a label or annotation: a name, with or without `prefix/`."""
    *prefixes, name = text.split("/")
    if len(prefixes) > 1:
        form = _by_form(_KEY_SAID, _KEY, "MyName", "my.name", "123-abc")
        yield (
            f"a valid label key {form} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')"
        )
        return
    for prefix in prefixes:
        told = subdomain(prefix) if prefix else iter(("must be non-empty",))
        yield from (f"prefix part {sentence}" for sentence in told)
    if not name:
        yield "name part must be non-empty"
    elif len(name) > LABEL_BYTES:
        yield f"name part {_at_most(LABEL_BYTES, 'bytes')}"
    if not _matches(_KEY, name):
        yield f"name part {_by_form(_KEY_SAID, _KEY, 'MyName', 'my.name', '123-abc')}"


def label_value(text: str) -> Iterator[str]:
    """The value of a label, empty or like a name."""
    if len(text) > LABEL_BYTES:
        yield _at_most(LABEL_BYTES, "bytes")
    if text and not _matches(_KEY, text):
        yield _by_form(_VALUE_SAID, f"({_KEY})?", "MyValue", "my_value", "12345")


def identifier(text: str) -> Iterator[str]:
    """A C identifier, the form of attributes and capacities."""
    if not _matches(_IDENTIFIER, text):
        yield _by_form(_IDENTIFIER_SAID, _IDENTIFIER, "my_name", "MY_NAME", "MyName")


def path_segment(text: str) -> Iterator[str]:
    """Anything that can stand in a URL's path, the form of RBAC's names."""
    if text in (".", ".."):
        yield f"may not be '{text}'"
        return
    for illegal in "/%":
        if illegal in text:
            yield f"may not contain '{illegal}'"


def config_key(text: str) -> Iterator[str]:
    """A key of a ConfigMap or Secret."""
    if len(text) > SUBDOMAIN_BYTES:
        yield _at_most(SUBDOMAIN_BYTES, "characters")
    if not _matches(_CONFIG_KEY, text):
        yield _by_form(_CONFIG_KEY_SAID, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name")
    elif text in (".", "..") or text.startswith(".."):
        yield f"must not be '{text}'" if text in (".", "..") else "must not start with '..'"


def environment_variable(text: str) -> Iterator[str]:
    """The name of a variable: printable ASCII but the equals sign."""
    if not text or any(not " " <= character <= "~" or character == "=" for character in text):
        yield (
            "a valid environment variable name must consist only of printable ASCII characters "
            "other than '='"
        )


def condition_reason(text: str) -> Iterator[str]:
    """The reason of a condition."""
    if not _matches(_REASON, text):
        examples = ("my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB")
        yield _by_form(_REASON_SAID, _REASON, *examples)


def uuid(text: str) -> Iterator[str]:
    """A UUID in small letters, with dashes."""
    if _UUID.fullmatch(text) is None:
        if _UUID.fullmatch(text.lower()) is None:
            yield f"error validating uid: invalid UUID length: {len(text)}"
        else:
            yield (
                "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` "
                "with lowercase hexadecimal characters"
            )
