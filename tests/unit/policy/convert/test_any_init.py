"""Whatever containers, init containers and sidecars ask for: each has it, and no more is asked
of a card than what runs at one time."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from casaba.model.quantity import MIB, parse
from casaba.policy.allocation import Refused
from casaba.policy.convert import Conversion, convert_pod
from casaba.settings.conversion import ConversionSettings
from casaba.simulation.api_server.requests import Object
from tests.unit.policy.convert.clusters import Cluster, gpus, shares
from tests.unit.policy.convert.pods import gpu, patched, pod, sidecar, uses

SETTINGS = ConversionSettings()
CARD_MIB = 24576


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What one container asks for, in the order of the pod's init list."""

    name: str
    amounts: dict[str, Any]

    @property
    def kind(self) -> str:
        return self.name.partition("-")[0]

    @property
    def count(self) -> int:
        return int(self.amounts.get("count", 1))

    @property
    def is_whole(self) -> bool:
        return bool(self.amounts.get("percent", 0 if "mem" in self.amounts else 100) == 100)

    @property
    def memory_mib(self) -> int:
        """Of a card of CARD_MIB."""
        percent = self.amounts.get("percent", 100)
        return int(self.amounts.get("mem") or max(1, CARD_MIB * percent // 100))

    @property
    def cores(self) -> int:
        return int(self.amounts.get("cores", 100 if self.is_whole else 0))


def amounts(counts: st.SearchStrategy[int], most_mib: int) -> st.SearchStrategy[dict[str, Any]]:
    """MiB, percentages or whole cards."""
    cores = {"cores": st.integers(0, 100)}
    return st.one_of(
        st.fixed_dictionaries({"count": counts, "mem": st.integers(1, most_mib)}, optional=cores),
        st.fixed_dictionaries({"count": counts, "percent": st.integers(1, 100)}, optional=cores),
        st.fixed_dictionaries({"count": counts}),
    )


@st.composite
def asked_of(draw: st.DrawFn, one: st.SearchStrategy[dict[str, Any]]) -> list[Asked]:
    """Containers, then init containers and sidecars in any order."""
    apps = [Asked(name=f"app-{n}", amounts=draw(one)) for n in range(draw(st.integers(0, 3)))]
    kinds = draw(st.lists(st.sampled_from(["init", "side"]), max_size=4))
    inits = [Asked(name=f"{kind}-{n}", amounts=draw(one)) for n, kind in enumerate(kinds)]
    return [*apps, *inits] or [Asked(name="app-0", amounts=draw(one))]


def pod_of(wanted: Iterable[Asked]) -> Object:
    made = {one.name: (sidecar if one.kind == "side" else gpu)(**one.amounts) for one in wanted}
    apps = [{"name": name, **one} for name, one in made.items() if name.startswith("app")]
    init = {name: one for name, one in made.items() if not name.startswith("app")}
    return pod(init=init, spec={"containers": apps} if apps else None)


def most_at_one_time(wanted: Iterable[Asked], amount: Mapping[str, int]) -> int:
    """What HAMi counts: the containers or the largest init container, with sidecars that run."""
    running = largest = 0
    for one in wanted:
        if one.kind == "init":
            largest = max(largest, running + amount[one.name])
        if one.kind == "side":
            running += amount[one.name]
    apps = sum(amount[one.name] for one in wanted if one.kind == "app")
    return max(apps + running, largest)


def requests(conversion: Conversion) -> list[Object]:
    (template,) = conversion.templates
    found: list[Object] = template.spec["spec"]["devices"]["requests"]
    return found


def placed(wanted: Iterable[Asked]) -> tuple[Conversion, Mapping[str, list[tuple[str, int, int]]]]:
    """A pod on a node of many cards, and what each of its containers has of them."""
    one, cluster = pod_of(wanted), Cluster(node=gpus(*[CARD_MIB] * 24))
    conversion = convert_pod(one, cluster.facts, SETTINGS)
    result = cluster.place(conversion, "node")
    assert not isinstance(result, Refused), result.why
    return conversion, shares(patched(one, conversion), result)


several_cards = asked_of(amounts(st.integers(1, 3), CARD_MIB))
one_card = asked_of(amounts(st.just(1), CARD_MIB // 3))


@settings(max_examples=200, deadline=None)
@given(several_cards)
def test_every_container_gets_what_it_asked_for(wanted: list[Asked]) -> None:
    _, given_ = placed(wanted)
    for asked in wanted:
        memory = Counter[str]()
        for device, mib, _ in given_[asked.name]:
            memory[device] += mib
        assert len(memory) == asked.count
        assert min(memory.values()) >= asked.memory_mib
        for device in memory:
            cores = [cores for name, _, cores in given_[asked.name] if name == device]
            assert sum(cores) >= asked.cores or (asked.kind == "init" and 0 in cores)


@settings(max_examples=200, deadline=None)
@given(several_cards)
def test_no_container_gets_a_cap_that_it_did_not_ask_for(wanted: list[Asked]) -> None:
    _, given_ = placed(wanted)
    for asked in wanted:
        if asked.kind == "init":
            continue
        for _, _, cores in given_[asked.name]:
            assert cores >= asked.cores
            assert asked.cores or not cores


@settings(max_examples=200, deadline=None)
@given(several_cards)
def test_a_cap_that_an_init_container_gets_or_loses_is_told(wanted: list[Asked]) -> None:
    conversion, given_ = placed(wanted)
    for asked in (one for one in wanted if one.kind == "init"):
        for device in {device for device, _, _ in given_[asked.name]}:
            cores = [cores for name, _, cores in given_[asked.name] if name == device]
            capped = 0 not in cores and sum(cores) < 100
            told = f"init container {asked.name} is {'' if capped else 'not '}capped at"
            assert capped == (0 < asked.cores < 100) or any(
                told in warning or "more warnings" in warning for warning in conversion.warnings
            )


@settings(max_examples=200, deadline=None)
@given(several_cards)
def test_a_pod_has_no_more_requests_than_cards_at_one_time(wanted: list[Asked]) -> None:
    conversion = convert_pod(pod_of(wanted), Cluster(node=gpus(*[CARD_MIB] * 24)).facts, SETTINGS)
    most = most_at_one_time(wanted, {one.name: one.count for one in wanted})
    assert len(requests(conversion)) == most


@settings(max_examples=500, deadline=None)
@given(one_card)
def test_what_fits_on_a_card_for_hami_fits_here(wanted: list[Asked]) -> None:
    """And asks no more of it than that."""
    memory = most_at_one_time(wanted, {one.name: one.memory_mib for one in wanted})
    cores = most_at_one_time(wanted, {one.name: one.cores for one in wanted})
    assume(memory <= CARD_MIB and cores <= 100)
    kinds = {one.kind for one in wanted}
    if "side" in kinds and any(one.cores for one in wanted if one.kind == "init"):
        return  # such a pod may ask for more cores than HAMi counts: see docs/classic-pods.md
    one, cluster = pod_of(wanted), Cluster(node=gpus(CARD_MIB))
    conversion = convert_pod(one, cluster.facts, SETTINGS)
    result = cluster.place(conversion, "node")
    assert not isinstance(result, Refused), result.why
    used = uses(patched(one, conversion)).values()
    event(f"several requests of a card: {any(' ' in names for names in used)}")
    given_ = [one.consumed_capacity for one in result.devices.results]
    assert sum(parse(one["memory"]) // MIB for one in given_) <= memory
    assert sum(int(one["cores"]) for one in given_) <= cores
