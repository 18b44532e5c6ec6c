"""A pod is read as far as conversion needs it."""

import json
from typing import Any

import pytest
from msgspec import Raw

from casaba.policy.convert import ClusterFacts, PodRefused, convert_pod
from casaba.settings.conversion import ConversionSettings
from casaba.wire.pod_outline import outlined
from tests.unit.policy.convert.case import Case
from tests.unit.policy.convert.cases import CASES
from tests.unit.policy.convert.test_cases import by_name


def outline(document: Any) -> Any:
    return outlined(Raw(json.dumps(document).encode()))


def outcome(document: Any, case: Case) -> object:
    try:
        return convert_pod(document, case.facts, case.settings)
    except PodRefused as refusal:
        return refusal.code, str(refusal)


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_pods_of_the_table_are_converted_by_their_outline(case: Case) -> None:
    try:
        found = outline(case.pod)
    except RecursionError:
        return
    assert found is None or outcome(found, case) == outcome(case.pod, case)


def test_what_nobody_reads_is_left_out() -> None:
    document = {
        "metadata": {"name": "main", "labels": None, "managedFields": [{"fieldsV1": {}}]},
        "spec": {"containers": [{"name": "main", "env": 1}], "volumes": [], "nodeName": 7},
        "status": {},
    }
    assert outline(document) == {
        "metadata": {"labels": None},
        "spec": {"containers": [{"name": "main", "env": 1}], "nodeName": 7},
    }


@pytest.mark.parametrize("document", [None, 1, [], {"spec": "x"}, {"metadata": []}])
def test_of_what_is_malformed_there_is_none(document: Any) -> None:
    assert outline(document) is None


def test_text_that_is_skipped_must_be_utf_8_too() -> None:
    assert outlined(Raw(b'{"metadata":{"name":"\xff"},"spec":{}}')) is None


def test_an_empty_object_has_an_empty_outline() -> None:
    assert outline({}) == {}
    assert convert_pod({}, ClusterFacts(), ConversionSettings()).patch == ()
