"""Lines come out whole, however the network has cut them."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casaba.wire.kubernetes import WatchEvent
from casaba.wire.watch_stream import MAX_EVENT_BYTES, BrokenStream, WatchStream

TEXTS = st.lists(st.text(max_size=50), max_size=8)


@given(texts=TEXTS, cuts=st.lists(st.integers(0, 500)), empty_line=st.booleans())
def test_any_cut_gives_the_same_events(texts: list[str], cuts: list[int], empty_line: bool) -> None:
    lines = [json.dumps({"type": "ADDED", "object": {"x": text}}).encode() for text in texts]
    stream_bytes = b"".join(line + b"\n" + b"\r\n" * empty_line for line in lines)
    stream = WatchStream()
    got: list[WatchEvent] = []
    edges = sorted({0, len(stream_bytes), *(c for c in cuts if c < len(stream_bytes))})
    for start, end in pairwise(edges):
        got += stream.feed(stream_bytes[start:end])
    assert [json.loads(bytes(event.object))["x"] for event in got] == texts


def test_a_line_without_end_is_no_event() -> None:
    assert WatchStream().feed(b'{"type":"ADDED","object":{}}') == ()


@pytest.mark.parametrize("line", [b"<html>\n", b"{}\n", b'{"type":1,"object":{}}\n', b"\xff\n"])
def test_what_is_no_event_is_refused(line: bytes) -> None:
    with pytest.raises(BrokenStream, match="is not a watch event"):
        WatchStream().feed(line)


def test_a_line_that_never_ends_is_refused() -> None:
    stream = WatchStream()
    assert stream.feed(b"x" * MAX_EVENT_BYTES) == ()
    with pytest.raises(BrokenStream, match="larger than"):
        stream.feed(b"x")
