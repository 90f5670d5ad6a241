"""Entries that are forgotten are removed from files and masked in transcripts."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawmark.text.forgetting import (
    content_of,
    line_strings,
    mask_line,
    remove_entries,
    sentences_of,
    units_of,
    words_of,
)

LABEL = "<!-- clawmark: origin=agent session=agent:main:main -->"


def has_heron(content: str) -> bool:
    return "heron" in content


@pytest.mark.parametrize(
    "entry",
    [
        "- The heron nests here.",
        "* 14:05 the HERON   nests\n  here",
        f"- 09:00 The heron nests here {LABEL}",
        "> The heron nests here.",
        "> > The heron\n> nests here!",
        "1. The heron nests here",
        "The heron nests here",
    ],
)
def test_the_same_statement_has_the_same_content_in_every_form(entry: str) -> None:
    assert content_of(entry) == "the heron nests here"


def test_an_entry_is_removed_with_its_lines_and_one_blank_line_stays() -> None:
    text = "# Day\n\nBefore.\n\nThe heron\nnests.\n\n- One\n- 14:05 A heron\n  flew\n- Two\n"
    assert remove_entries(text, has_heron) == "# Day\n\nBefore.\n\n- One\n- Two\n"


def test_a_text_without_forgotten_entries_stays_byte_for_byte_the_same() -> None:
    text = "\n\n# A\r\n- b  \n\n\n\nc"
    assert remove_entries(text, has_heron) == text


def test_a_text_of_forgotten_entries_alone_becomes_empty() -> None:
    assert remove_entries("\n- The heron\n\nheron\n", has_heron) == ""


@given(st.text(alphabet="ab -\n#>*.", max_size=60))
def test_what_is_removed_is_gone_and_the_rest_stays(text: str) -> None:
    def is_gone(content: str) -> bool:
        return "b" in content

    left = remove_entries(text, is_gone)
    assert not [unit for unit in units_of(left) if "b" in unit.content]
    before = [unit.content for unit in units_of(text) if "b" not in unit.content]
    assert [unit.content for unit in units_of(left)] == before


def test_a_line_of_a_transcript_keeps_its_structure() -> None:
    arguments = json.dumps({"text": "the heron", "to": "log"})
    message = {
        "type": "heron",
        "id": "heron-1",
        "message": {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Yes.\n\nThe heron nests.\n\nNo."},
                {"type": "toolCall", "name": "heron", "arguments": arguments},
                {"type": "toolResult", "output": {"lines": ["a heron", "a duck"]}},
            ],
        },
    }
    masked = json.loads(mask_line(json.dumps(message), has_heron))
    content = masked["message"]["content"]
    assert (masked["type"], masked["id"], content[1]["name"]) == ("heron", "heron-1", "heron")
    assert content[0]["text"] == "Yes.\n\n[forgotten]\n\nNo."
    assert json.loads(content[1]["arguments"]) == {"text": "[forgotten]", "to": "log"}
    assert content[2]["output"]["lines"] == ["[forgotten]", "a duck"]


@pytest.mark.parametrize("line", ["", "{", '{"a": "b"}', "[1, 2]", "null", '{"text": "duck"}'])
def test_other_lines_stay_as_they_are(line: str) -> None:
    assert mask_line(line, has_heron) == line


def test_a_line_that_is_not_json_is_masked_as_a_whole() -> None:
    assert mask_line('{"text": "the heron', has_heron) == "[forgotten]"


def test_json_that_is_nested_too_deeply_does_no_harm() -> None:
    deep = "[" * 100_000
    assert line_strings(deep) == [deep]
    nested = json.dumps({"text": "heron"})
    for _ in range(80):
        nested = json.dumps([json.loads(nested)])
    assert mask_line(nested, has_heron) == "[forgotten]"


def test_sentences_and_words_are_found_in_any_wrapping() -> None:
    text = "> The heron nests here now. Yes! It came back\n> from the far south"
    assert list(sentences_of(text)) == ["the heron nests here now", "from the far south"]
    assert words_of('- 14:05 "The heron," she said.') == ["the", "heron", "she", "said"]
