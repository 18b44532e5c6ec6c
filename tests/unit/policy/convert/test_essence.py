"""What of a pod its conversion depends on."""

import json
from typing import Any

import pytest
from hypothesis import given, settings

from casaba.policy.convert import PodRefused, convert_pod, essence
from casaba.simulation.api_server.requests import Object
from tests.unit.policy.convert.case import Case
from tests.unit.policy.convert.cases import CASES
from tests.unit.policy.convert.pods import gpu, pod
from tests.unit.policy.convert.test_any_pod import spoilt_pods
from tests.unit.policy.convert.test_cases import by_name


def outcome(document: Any, case: Case) -> object:
    try:
        return convert_pod(document, case.facts, case.settings)
    except PodRefused as refusal:
        return refusal.code, str(refusal)


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_a_pod_is_converted_by_its_essence(case: Case) -> None:
    assert outcome(essence(case.pod), case) == outcome(case.pod, case)


@settings(max_examples=300, deadline=None)
@given(spoilt_pods())
def test_so_is_a_spoilt_one(spoilt: tuple[Object, Case]) -> None:
    document, case = spoilt
    before = json.dumps(document)
    assert outcome(essence(document), case) == outcome(document, case)
    assert json.dumps(document) == before


def test_pods_of_one_controller_have_it_in_common() -> None:
    first, second = (pod(main=gpu(1, mem=1024)) for _ in range(2))
    for number, one in enumerate((first, second)):
        one["metadata"] |= {"name": f"worker-{number}", "labels": {"index": f"{number}"}}
        one["metadata"]["annotations"] = {"example.com/rank": f"{number}"}
        one["spec"]["volumes"] = [{"name": f"data-{number}", "emptyDir": {}}]
        one["spec"]["containers"][0]["env"] = [{"name": "RANK", "value": f"{number}"}]
    assert essence(first) == essence(second)
