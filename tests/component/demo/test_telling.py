"""What the story's lines look like."""

import pytest

from casaba.cli.demo_telling import Teller


def test_words_in_brackets_are_told_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    teller = Teller(as_json=False, fast=True)
    teller.title("A [bold] title")
    teller.command("kubectl get pods -o jsonpath={.items[0]}")
    teller.changed("pod/a", "[red]Failed[/] :warning:")
    assert capsys.readouterr().out.splitlines() == [
        "",
        "1. A [bold] title",
        "$ kubectl get pods -o jsonpath={.items[0]}",
        "  pod/a  [red]Failed[/] :warning:",
    ]


def test_a_long_line_stays_one_where_no_person_reads(capsys: pytest.CaptureFixture[str]) -> None:
    Teller(as_json=False, fast=True).changed("pod/a", "word " * 60)
    (line,) = capsys.readouterr().out.splitlines()
    assert len(line) > 300


def test_a_long_line_is_broken_between_words_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "40")
    Teller(as_json=False, fast=True).changed("pod/a", "word " * 20)
    object_, *told = capsys.readouterr().out.splitlines()
    assert "pod/a" in object_
    assert len(told) > 2
    assert all(len(line) <= 40 and line.startswith("      word") for line in told)
