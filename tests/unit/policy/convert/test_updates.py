"""Updates of converted pods."""

import json
from typing import Any

import pytest

from casaba.policy.convert import Conversion, PodRefused, convert_pod, strip_update
from casaba.settings.conversion import ConversionSettings
from casaba.simulation.api_server.requests import Object, copied
from tests.unit.policy.convert.pods import PLAIN, TWO_A10, gpu, patched, pod

SETTINGS = ConversionSettings()
RECORD = "casaba.dev/converted-resources"
ORIGINAL = pod(main=gpu(1, mem=10240, cores=50), other=PLAIN)
STORED = patched(ORIGINAL, convert_pod(ORIGINAL, TWO_A10, SETTINGS))


def applied(container: int = 0, **limits: Any) -> Object:
    """The stored pod with limits added, as a merge of the original manifest does."""
    new: Object = copied(STORED)
    named = {f"nvidia.com/{name}": value for name, value in limits.items()}
    new["spec"]["containers"][container].setdefault("resources", {})["limits"] = named
    return new


def test_an_update_of_something_else_is_left_alone() -> None:
    new = copied(STORED)
    new["metadata"]["labels"]["app"] = "a"
    assert strip_update(STORED, new, SETTINGS) == Conversion()


def test_the_same_amounts_in_another_form_are_taken_away() -> None:
    new = applied(gpu="1", gpumem="10.24k", gpucores=50)
    assert patched(new, strip_update(STORED, new, SETTINGS)) == STORED


def test_changed_amounts_are_refused() -> None:
    with pytest.raises(PodRefused, match="20480 is asked for, but the pod was made with 10240"):
        strip_update(STORED, applied(gpu=1, gpumem=20480), SETTINGS)


def test_amounts_that_were_not_asked_for_before_are_refused() -> None:
    new = applied(gpu=1, gpumem=10240, gpucores=50, priority=0)
    with pytest.raises(PodRefused, match="priority: 0 is asked for, but the pod was made without"):
        strip_update(STORED, new, SETTINGS)


def test_amounts_that_are_not_named_again_are_no_change() -> None:
    """A patch may name but one of them, and what it leaves out is not there to be seen."""
    new = applied(gpumem=10240)
    assert patched(new, strip_update(STORED, new, SETTINGS)) == STORED


def test_claims_of_the_users_own_are_not_given_back() -> None:
    """Only the list as a whole comes from the manifest, and what is not ours is theirs."""
    main = gpu(1, mem=1024)
    main["resources"]["claims"] = [{"name": "one"}, {"name": "two"}]
    own = [{"name": name, "resourceClaimName": name} for name in ("one", "two")]
    original = pod(main=main, spec={"resourceClaims": own})
    stored = patched(original, convert_pod(original, TWO_A10, SETTINGS))
    new = copied(stored)
    new["spec"]["containers"][0]["resources"] = copied(main["resources"])
    assert patched(new, strip_update(stored, new, SETTINGS)) == stored
    del new["spec"]["containers"][0]["resources"]["claims"][0]
    (container,) = patched(new, strip_update(stored, new, SETTINGS))["spec"]["containers"]
    assert [claim["name"] for claim in container["resources"]["claims"]] == ["two", "casaba-gpus"]


def test_amounts_that_make_no_sense_are_refused() -> None:
    with pytest.raises(PodRefused, match="is not a quantity"):
        strip_update(STORED, applied(gpu="one"), SETTINGS)


@pytest.mark.parametrize(
    "record",
    [
        *("", "null", "[]", "{", '{"main": 1}', '{"main": {"a": 1}}', "[" * 5000),
        '{"main": {"nvidia.com/gpumem": "x"}}',
    ],
)
def test_a_spoilt_record_says_nothing(record: str) -> None:
    old = copied(STORED)
    old["metadata"]["annotations"][RECORD] = record
    assert strip_update(old, applied(gpu=1, gpumem=20480), SETTINGS).patch


def test_pods_that_were_not_converted_are_left_alone() -> None:
    assert strip_update(ORIGINAL, ORIGINAL, SETTINGS) == Conversion()


def test_a_container_that_always_had_its_resources_keeps_them() -> None:
    old, new = applied(container=1, gpu=1), applied(container=1, gpu=1)
    assert strip_update(old, new, SETTINGS) == Conversion()


def test_a_pod_that_hami_converted() -> None:
    old = copied(STORED)
    del old["metadata"]["annotations"][RECORD]
    assert strip_update(old, applied(gpu=3), SETTINGS).patch


def test_a_container_that_another_webhook_adds_after_conversion() -> None:
    """Reinvocation: the pod has a claim of ours already and gets a second one."""
    again = copied(STORED)
    again["spec"]["containers"].append({"name": "added", **gpu(1, mem=1024)})
    conversion = convert_pod(again, TWO_A10, SETTINGS)
    changed = patched(again, conversion)
    entries = [claim["name"] for claim in changed["spec"]["resourceClaims"]]
    assert entries == ["casaba-gpus", "casaba-gpus-2"]
    added = changed["spec"]["containers"][2]["resources"]
    assert added == {"claims": [{"name": "casaba-gpus-2", "request": "added"}]}
    record = json.loads(changed["metadata"]["annotations"][RECORD])
    assert record["main"]["nvidia.com/gpumem"] == "10240"
    assert record["added"]["nvidia.com/gpumem"] == "1024"
