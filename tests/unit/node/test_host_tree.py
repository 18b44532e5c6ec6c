"""A host's root at a folder: links stay in it, and nothing outside is touched."""

import os
from contextlib import suppress
from pathlib import Path, PurePath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casaba.errors import HostError
from casaba.node.host_tree import HostTree


@pytest.fixture
def host(tmp_path: Path) -> Path:
    root = tmp_path / "host"
    (root / "run" / "casaba" / "claims").mkdir(parents=True)
    (root / "run" / "casaba" / "claims" / "policy").write_text("limits")
    (root / "var").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept").write_text("kept")
    return root


@pytest.fixture
def outside(host: Path) -> Path:
    return host.parent / "outside"


@pytest.mark.parametrize("target", ["/run", "../run", "/var/../run", "../../../../run"])
def test_links_are_the_hosts(host: Path, target: str) -> None:
    (host / "var" / "run").symlink_to(target)
    tree = HostTree(host)
    assert tree.names(PurePath("/var/run/casaba")) == ("claims",)
    assert not tree.leads_out(PurePath("/var/run/casaba"))
    assert not tree.leads_out(PurePath("/var/run/cdi"))
    assert tree.remove_folder(PurePath("/var/run/casaba"))
    assert not (host / "run" / "casaba").exists()


def test_a_link_to_what_is_not_here(host: Path, outside: Path) -> None:
    (host / "var" / "lib").symlink_to(outside)
    tree = HostTree(host)
    assert tree.names(PurePath("/var/lib")) == ()
    assert tree.leads_out(PurePath("/var/lib/casaba"))
    assert not tree.remove_file(PurePath("/var/lib/kept"))
    assert (outside / "kept").exists()


def test_of_a_link_the_link_goes(host: Path, outside: Path) -> None:
    (host / "run" / "casaba" / "out").symlink_to(outside)
    (host / "run" / "also").symlink_to(outside)
    tree = HostTree(host)
    assert tree.remove_folder(PurePath("/run/casaba"))
    assert tree.remove_folder(PurePath("/run/also"))
    assert os.listdir(host / "run") == []  # noqa: PTH208
    assert (outside / "kept").exists()


def test_what_is_gone_is_gone(host: Path) -> None:
    tree = HostTree(host)
    assert tree.names(PurePath("/nowhere/casaba")) == ()
    assert not tree.leads_out(PurePath("/nowhere/casaba"))
    assert not tree.remove_file(PurePath("/nowhere/file"))
    assert not tree.remove_file(PurePath("/run/file"))
    assert not tree.remove_folder(PurePath("/nowhere/casaba"))
    assert tree.remove_folder(PurePath("/run/casaba"))
    assert not tree.remove_folder(PurePath("/run/casaba"))


def test_a_circle_of_links(host: Path) -> None:
    (host / "var" / "a").symlink_to("b")
    (host / "var" / "b").symlink_to("a")
    with pytest.raises(HostError, match=r"can't read .*/var/a/cdi: .*links"):
        HostTree(host).names(PurePath("/var/a/cdi"))


def test_a_file_in_the_way(host: Path) -> None:
    (host / "var" / "lib").write_text("")
    with pytest.raises(HostError, match="lib is no folder"):
        HostTree(host).names(PurePath("/var/lib/casaba"))


def test_a_root_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"can't read .*/host/run: No such file"):
        HostTree(tmp_path / "host").names(PurePath("/run"))


_NAMES = st.sampled_from(["a", "b", "c"])
_TARGETS = st.lists(st.sampled_from(["a", "b", "c", "..", "."]), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(
    links=st.dictionaries(_NAMES, st.tuples(st.booleans(), _TARGETS), max_size=3),
    asked=st.lists(_NAMES, min_size=1, max_size=4),
)
def test_no_link_leads_out(
    tmp_path_factory: pytest.TempPathFactory,
    links: dict[str, tuple[bool, list[str]]],
    asked: list[str],
) -> None:
    above = tmp_path_factory.mktemp("links")
    for name in ("a", "b", "c"):
        (above / name).write_text("not of the host")
    root = above / "host"
    (root / "d").mkdir(parents=True)
    for name, (from_root, parts) in links.items():
        (root / name).symlink_to(("/" if from_root else "") + "/".join(parts))
    path = PurePath("/", *asked)
    for attempt in (HostTree(root).names, HostTree(root).remove_file, HostTree(root).remove_folder):
        with suppress(HostError):  # links in a circle
            attempt(path)
    assert sorted(entry.name for entry in above.iterdir()) == ["a", "b", "c", "host"]
    assert (root / "d").is_dir()
