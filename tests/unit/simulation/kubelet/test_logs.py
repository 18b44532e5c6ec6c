"""Logs of containers: whole whatever the pieces, bounded, readable in parts."""

import asyncio
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casaba.errors import InvalidInput
from casaba.simulation.kubelet.container_states import ContainerState, Running, Waiting
from casaba.simulation.kubelet.log_options import check_has_log, log_options
from casaba.simulation.kubelet.logs import LINE_PIECE_BYTES, ContainerLog, LogOptions

MANY_BYTES = 1 << 20


async def read(log: ContainerLog, **options: int | bool | str) -> bytes:
    texts = [text async for text in log.read(LogOptions(**options))]  # type: ignore[arg-type]
    return b"".join(texts)


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_pieces_come_out_as_the_whole(pieces: list[bytes]) -> None:
    async def fed() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            log = ContainerLog(Path(folder) / "0.log", MANY_BYTES)
            for piece in pieces:
                log.feed("stdout", piece)
            log.finish()
            return await read(log)

    assert asyncio.run(fed()) == b"".join(pieces)


async def test_a_line_without_end_is_stored_in_pieces(tmp_path: Path) -> None:
    log = ContainerLog(tmp_path / "0.log", MANY_BYTES)
    text = b"x" * (3 * LINE_PIECE_BYTES) + b"\n"
    for start in range(0, len(text), 1000):
        log.feed("stdout", text[start : start + 1000])
    log.finish()
    assert await read(log) == text
    assert max(map(len, log.path.read_bytes().splitlines())) < LINE_PIECE_BYTES + 100


async def test_files_stay_bounded(tmp_path: Path) -> None:
    log = ContainerLog(tmp_path / "0.log", 1000)
    for number in range(1000):
        log.feed("stdout", b"line %d\n" % number)
    log.finish()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 3000
    assert (await read(log, tail_lines=2)) == b"line 998\nline 999\n"


async def test_a_follower_gets_what_comes_also_across_files(tmp_path: Path) -> None:
    log = ContainerLog(tmp_path / "0.log", 200)
    log.feed("stdout", b"first\n")
    async with asyncio.TaskGroup() as group:
        following = group.create_task(read(log, follow=True))
        for number in range(20):
            await asyncio.sleep(0)
            log.feed("stdout", b"%d\n" % number)
            await asyncio.sleep(0)
        log.finish()
    numbers = b"".join(b"%d\n" % number for number in range(20))
    assert following.result() == b"first\n" + numbers


async def test_streams_and_times_can_be_chosen(tmp_path: Path) -> None:
    log = ContainerLog(tmp_path / "0.log", MANY_BYTES)
    log.feed("stdout", b"out\n")
    log.feed("stderr", b"err\n")
    between_ns = time.time_ns() + 10_000
    while time.time_ns() <= between_ns:
        pass
    log.feed("stdout", b"late\n")
    log.finish()
    assert await read(log, stream="stderr") == b"err\n"
    assert await read(log, since_ns=between_ns) == b"late\n"
    stamped = await read(log, timestamps=True, tail_lines=1)
    assert stamped.endswith(b"Z late\n")


@pytest.mark.parametrize(
    "query",
    [
        {"tailLines": "-1"},
        {"tailLines": "x"},
        {"limitBytes": "0"},
        {"sinceSeconds": "0"},
        {"sinceTime": "yesterday"},
        {"sinceTime": "2026-01-31T12:00:00"},
    ],
)
def test_options_that_make_no_sense_are_named(query: dict[str, str]) -> None:
    (name,) = query
    with pytest.raises(InvalidInput, match=f"{name}={query[name]}"):
        log_options(query, 0)


def test_options_are_understood() -> None:
    query = {"follow": "true", "tailLines": "5", "sinceSeconds": "2", "stream": "Stderr"}
    assert log_options(query, 5_000_000_000) == LogOptions(
        follow=True, tail_lines=5, since_ns=3_000_000_000, stream="stderr"
    )


def test_a_log_that_is_not_there_is_explained() -> None:
    waiting = ContainerState(name="c", image="i", state=Waiting(reason="PodInitializing"))
    with pytest.raises(InvalidInput) as refused:
        check_has_log("p", waiting, previous=False)
    assert str(refused.value) == 'container "c" in pod "p" is waiting to start: PodInitializing'
    running = waiting.now(Running(started_at="", container_id=""))
    check_has_log("p", running, previous=False)
    with pytest.raises(InvalidInput, match='previous terminated container "c" in pod "p" not'):
        check_has_log("p", running, previous=True)
