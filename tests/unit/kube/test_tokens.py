"""A token from a file stays fresh, and outlives the file's short absences."""

import os
from pathlib import Path

import pytest

from casaba.kube import KubeConfig, KubeConfigError
from casaba.kube.tokens import TokenSource


class Clock:
    """Time as the test wants it."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def written(path: Path, token: str, modified_ns: int) -> None:
    path.write_text(token)
    os.utime(path, ns=(modified_ns, modified_ns))


def source(path: Path, clock: Clock) -> TokenSource:
    config = KubeConfig(origin="test", server="https://h", token_file=path)
    return TokenSource(config, clock=clock)


def test_a_changed_file_is_read_at_once_and_any_file_each_minute(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "token"
    written(path, "one\n", 1)
    tokens = source(path, clock)
    written(path, "two", 1)
    assert tokens.current() == "one"
    clock.now_s = 60
    assert tokens.current() == "two"
    written(path, "three", 2)
    assert tokens.current() == "three"


def test_the_last_token_is_kept_while_the_file_is_away_or_empty(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "token"
    written(path, "one", 1)
    tokens = source(path, clock)
    written(path, "", 2)
    assert tokens.current() == "one"
    path.unlink()
    clock.now_s = 120
    assert tokens.current() == "one"
    assert not tokens.refused()


def test_without_a_first_token_there_is_no_start(tmp_path: Path) -> None:
    with pytest.raises(
        KubeConfigError, match=r"test: token file .*token is empty or can't be read"
    ):
        source(tmp_path / "token", Clock())


def test_a_token_that_is_given_never_changes() -> None:
    tokens = TokenSource(KubeConfig(origin="test", server="https://h", token="t"))
    assert tokens.current() == "t"
    assert not tokens.refused()
