"""Which names an image may have, and what is said of one."""

import pytest

from casaba.simulation.kubelet.image_names import InvalidImageName, check_image_name, image_told


@pytest.mark.parametrize(
    "name",
    [
        "busybox",
        "busybox:1.36",
        "registry.example/gpushare-sample:benchmark",
        "localhost:5000/a/b_c/d--e.f:V1",
        "[::1]:5000/a",
        "Registry.Example/a",
        f"a@sha256:{'0' * 64}",
        f"a/b:tag@sha256:{'0' * 64}",
    ],
)
def test_a_good_name_passes(name: str) -> None:
    check_image_name(name)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("BusyBox", "repository name must be lowercase"),
        ("busybox:", "invalid reference format"),
        ("NOT valid::", "invalid reference format"),
        ("http://registry.example/a", "invalid reference format"),
        ("a:b:c", "invalid reference format"),
        ("a/", "invalid reference format"),
        (f"a@sha256:{'0' * 31}", "invalid reference format"),
        ("a:" + "t" * 129, "invalid reference format"),
    ],
)
def test_a_bad_name_is_refused_with_the_name_and_the_reason(name: str, why: str) -> None:
    with pytest.raises(InvalidImageName) as refused:
        check_image_name(name)
    assert f'"{name}"' in str(refused.value)
    assert why in str(refused.value)


def test_an_image_that_is_not_known_is_not_said_to_be_there() -> None:
    assert "already present" in image_told("a:1", {"a:1"})
    assert "programs of this machine" in image_told("a:2", {"a:1"})
