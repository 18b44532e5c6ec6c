"""Label selectors of webhook configurations: the same as what the API server makes of them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from casaba.policy.diagnosis.label_selectors import selects
from casaba.simulation.api_server.label_selectors import parsed_label_selector

KEYS = st.sampled_from(["kubernetes.io/metadata.name", "hami.io/webhook", "team"])
VALUES = st.sampled_from(["default", "ignore", "a"])
LABELS = st.dictionaries(KEYS, VALUES)
SOME = st.lists(VALUES, min_size=1, max_size=2)
CONDITIONS = st.builds(
    lambda key, operator, values: {"key": key, "operator": operator, "values": values},
    KEYS,
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
    SOME,
)
_WRITTEN = {"In": "{} in ({})", "NotIn": "{} notin ({})", "Exists": "{}", "DoesNotExist": "!{}"}


def written(selector: dict[str, Any]) -> str:
    """As a query parameter."""
    equal = [f"{key}={value}" for key, value in selector["matchLabels"].items()]
    others = [
        _WRITTEN[one["operator"]].format(one["key"], ",".join(one["values"]))
        for one in selector["matchExpressions"]
    ]
    return ",".join(equal + others)


@given(
    st.fixed_dictionaries(
        {"matchLabels": LABELS, "matchExpressions": st.lists(CONDITIONS, max_size=3)}
    ),
    LABELS,
)
def test_a_selector_selects_what_the_api_server_would(
    selector: dict[str, Any], labels: dict[str, str]
) -> None:
    assert selects(selector, labels) == parsed_label_selector(written(selector))(labels)


def test_an_empty_selector_selects_all() -> None:
    assert selects({}, {})
    assert selects({}, {"team": "a"})


def test_what_is_odd_selects_nothing_and_does_no_harm() -> None:
    for condition in ({}, {"operator": "Near"}, {"key": 5, "operator": "In", "values": 7}):
        assert not selects({"matchExpressions": [condition]}, {"team": "a"})
