"""The pod on trial: the webhook converts it however it is set, with no card to be seen."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from casaba.policy.convert import ClusterFacts, convert_pod
from casaba.policy.diagnosis.cluster.canary import classic_pod
from casaba.settings.conversion import CORE_POLICIES, ConversionSettings

NAMES = st.permutations([f"example.com/{name}" for name in "abcdefg"])


@given(
    names=NAMES,
    memory_mib=st.integers(0, 1 << 20),
    cores=st.integers(0, 100),
    count=st.integers(0, 8),
    factor=st.integers(1, 1024),
    policy=st.sampled_from(CORE_POLICIES),
    flags=st.tuples(st.booleans(), st.booleans()),
)
def test_it_gets_a_claim_under_every_default(
    names: list[str],
    memory_mib: int,
    cores: int,
    count: int,
    factor: int,
    policy: str,
    flags: tuple[bool, bool],
) -> None:
    settings = ConversionSettings(
        count_resource=names[0],
        memory_resource=names[1],
        percentage_resource=names[2],
        cores_resource=names[3],
        priority_resource=names[4],
        default_count=count,
        default_memory_mib=memory_mib,
        default_cores_percent=cores,
        memory_factor=factor,
        core_policy=policy,
        refuse_oversized=flags[0],
        policies_as_constraints=flags[1],
    )
    conversion = convert_pod(classic_pod(names[0]), ClusterFacts(), settings)
    assert len(conversion.templates) == 1
