"""Objects that are refused: code, reason and fields are those of the real server."""

import pytest

from tests.conformance.api_server.bad_object import BadObject
from tests.conformance.api_server.bad_objects import BAD_OBJECTS, VERDICTS, Verdict, verdict
from tests.conformance.api_server.door import ApiDoor

PLURALS = sorted({bad.plural for bad in BAD_OBJECTS})


async def _told(api: ApiDoor, bad: BadObject) -> Verdict:
    """Nothing is stored, should the server take it after all."""
    path = f"{bad.collection(api.namespace)}?dryRun=All"
    return verdict((await api.post(path, bad.object)).json)


@pytest.mark.parametrize("plural", PLURALS)
async def test_bad_objects_are_refused_as_they_should(api: ApiDoor, plural: str) -> None:
    others = {}
    for bad in BAD_OBJECTS:
        if bad.plural == plural:
            told = await _told(api, bad)
            if told != VERDICTS[bad.name]:
                others[bad.name] = (told, VERDICTS[bad.name])
    assert others == {}


def test_every_bad_object_has_a_recorded_refusal() -> None:
    names = [bad.name for bad in BAD_OBJECTS]
    assert len(names) == len(set(names))
    assert set(names) <= set(VERDICTS)
    assert not [name for name in names if VERDICTS[name][0] < 400]
