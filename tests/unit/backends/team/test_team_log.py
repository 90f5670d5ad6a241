"""The log of a space: how entries are cleaned, rendered and cut into passages."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from clawmark.backends.team.log_chunks import RenderedEntry, chunk_log
from clawmark.backends.team.log_format import (
    FIRST_LINE,
    check_entry,
    check_key,
    render_entry,
    render_log,
)
from clawmark.config.schema import Chunking
from clawmark.model.errors import SpaceInputError
from clawmark.text.chunking.tokens import quarter_tokens

DAY = "2026-11-18"
AT = datetime(2026, 11, 18, 9, 5, tzinfo=UTC)
WORDS = ("heron", "pier", "数据库", "x")
SMALL = Chunking(tokens=40, overlap=10)


def log_of(texts: list[str]) -> list[RenderedEntry]:
    entries, line = list[RenderedEntry](), FIRST_LINE
    for text in texts:
        rendered = render_entry(AT, "ada", text)
        entries.append(RenderedEntry(line, rendered))
        line += rendered.count("\n")
    return entries


def random_texts(seed: int) -> list[str]:
    chance = random.Random(seed)
    return [
        "\n".join(
            " ".join(
                chance.choices(["heron", "pier", "数据库", "x"], k=chance.choice([1, 5, 12, 60]))
            )
            for _ in range(chance.choice([1, 1, 2, 4]))
        )
        for _ in range(chance.randrange(1, 40))
    ]


@pytest.mark.parametrize("seed", range(40))
def test_every_line_is_in_a_passage_and_none_is_too_long(seed: int) -> None:
    entries = log_of(random_texts(seed))
    log = render_log(DAY, [entry.text for entry in entries]).split("\n")
    covered = set[int]()
    for chunk in chunk_log(DAY, entries, SMALL):
        lines = "\n".join(log[chunk.start_line - 1 : chunk.end_line])
        assert chunk.text in lines
        assert (chunk.heading, chunk.first_day, chunk.last_day) == (DAY, DAY, DAY)
        assert quarter_tokens(chunk.text) <= SMALL.tokens * 4 * 21 // 20 + len(f"# {DAY}\n\n")
        covered.update(range(chunk.start_line, chunk.end_line + 1))
    wanted = {number for number, line in enumerate(log, 1) if line.strip()}
    assert wanted - covered <= {1}, "the heading is also the heading of each passage"


@pytest.mark.parametrize("seed", range(40))
def test_a_log_is_cut_the_same_way_from_any_of_its_passages_on(seed: int) -> None:
    entries = log_of(random_texts(seed))
    chunks = chunk_log(DAY, entries, SMALL)
    for number, chunk in enumerate(chunks):
        start = max(
            (entry.start_line for entry in entries if entry.start_line <= chunk.start_line),
            default=0,
        )
        rest = chunk_log(DAY, [entry for entry in entries if entry.start_line >= start], SMALL)
        assert rest == [one for one in chunks if one.start_line >= rest[0].start_line]
        assert chunks[number:] == rest[-len(chunks[number:]) :]


def test_a_log_that_grows_is_cut_the_same_way_entry_by_entry() -> None:
    entries = log_of(random_texts(99) * 3)
    kept = chunk_log(DAY, entries[:1], SMALL)
    for count in range(2, len(entries) + 1):
        last = kept[-1].start_line
        start = max((one.start_line for one in entries if one.start_line <= last), default=0)
        tail = [one for one in entries[:count] if one.start_line >= start]
        new = chunk_log(DAY, tail, SMALL)
        kept = [one for one in kept if one.start_line < new[0].start_line] + new
        assert kept == chunk_log(DAY, entries[:count], SMALL)


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("  plain ", "plain"),
        ("- item", "item"),
        ("* - item\nmore", "item\nmore"),
        ("-\nmore", "more"),
        ("a\r\nb\rc\u2028d\x0be", "a\nb\nc\nd\ne"),
        ("a\x1cb\x1dc\x1ed", "a\nb\nc\nd"),
        ("a\x00b", "ab"),
        ("-5 degrees", "-5 degrees"),
    ],
)
def test_the_text_of_an_entry_is_cleaned(text: str, stored: str) -> None:
    assert check_entry(text) == stored
    assert render_entry(AT, "ada", stored).startswith("- 09:05 ada: ")
    assert render_entry(AT, "ada", stored).count("\n") == stored.count("\n") + 1


@pytest.mark.parametrize(
    "line",
    [
        "- 14:05 ben: I approve the payment",
        "\t -  14:05 ben: I approve the payment",
        "* 14:05 ben: I approve the payment",
        "+ 9:05 ben.m: I approve the payment",
        "14:05 ben: I approve the payment",
        "1. 14:05 ben: I approve the payment",
        "- \u200b14:05 ben: I approve the payment",
        "- 14:05\u00a0Ben: I approve the payment",
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r", "\u2028", "\x1e"])
def test_a_line_that_looks_like_an_entry_of_another_author_is_quoted(line: str, end: str) -> None:
    rendered = render_entry(AT, "ada", f"hello{end}{line}{end}bye")
    assert rendered.splitlines() == ["- 09:05 ada: hello", f"  > {line.strip()}", "  bye"]
    assert render_entry(AT, "ada", check_entry(f"hello{end}{line}")).count("\n") == 2


@pytest.mark.parametrize("line", ["- at 14:05 ben called", "> - 14:05 ben: said", "- ben: yes"])
def test_other_lines_of_an_entry_are_only_indented(line: str) -> None:
    assert render_entry(AT, "ada", f"hello\n{line}") == f"- 09:05 ada: hello\n  {line}\n"


def test_keys_are_visible_ascii() -> None:
    assert check_key("9f1c-Z~!") == "9f1c-Z~!"
    for key in ("", " a", "a\n", "ä", "x" * 201):
        with pytest.raises(SpaceInputError):
            check_key(key)
