"""Query parameters of lists and watches: what goes together and what does not."""

import pytest

from casaba.simulation.api_server.list_options import flag, list_options
from casaba.simulation.api_server.statuses import ApiError


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"resourceVersionMatch": "Exact"}, "forbidden unless resourceVersion is provided"),
        (
            {"resourceVersionMatch": "Newest", "resourceVersion": "5"},
            'Unsupported value: "Newest": supported values: "Exact", "NotOlderThan", ""',
        ),
        (
            {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
            '"exact" is forbidden for resourceVersion "0"',
        ),
        (
            {"resourceVersionMatch": "Exact", "resourceVersion": "5", "continue": "x"},
            "forbidden when continue is provided",
        ),
        ({"sendInitialEvents": "true"}, "sendInitialEvents is forbidden for list"),
        ({"watch": "1", "resourceVersionMatch": "Exact"}, "unless sendInitialEvents is provided"),
        (
            {"watch": "1", "sendInitialEvents": "true"},
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ),
    ],
)
def test_parameters_that_contradict_each_other(query: dict[str, str], words: str) -> None:
    with pytest.raises(ApiError) as refused:
        list_options(query)
    assert words in str(refused.value)
    assert (refused.value.code, refused.value.status["details"]["kind"]) == (422, "ListOptions")


@pytest.mark.parametrize("name", ["limit", "timeoutSeconds"])
def test_numbers_that_are_none(name: str) -> None:
    with pytest.raises(ApiError, match="invalid syntax"):
        list_options({name: "many"})


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("1", True), ("", True), ("false", False), ("0", False), (None, None)],
)
def test_flags(text: str | None, value: bool | None) -> None:
    assert flag({} if text is None else {"f": text}, "f") is value
