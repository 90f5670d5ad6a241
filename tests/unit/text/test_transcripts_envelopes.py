"""What hosts wrap around words comes off, the words stay, and the time it takes grows with the text
and no faster.
"""

from __future__ import annotations

import pytest

from clawmark.text.transcripts.envelopes import (
    strip_channel,
    strip_machine,
    strip_thinking,
    without_tags,
)

METADATA = (
    "Conversation info (untrusted "
    'metadata):\n```json\n{"message_id": "5", "sender": "Ann"}\n```\n\n'
)
SENDER = 'Sender (untrusted metadata):\n```json\n{"name": "Ann"}\n```\n\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (METADATA + SENDER + "Where is the key?", "Where is the key?"),
        ('Replied message (untrusted, for context):\n```json\n{"body": "x"}\n```\n\nyes', "yes"),
        ("[WhatsApp +1555 2026-02-23 16:05] hello", "hello"),
        ("[Telegram Ann id:42 Mon 2026-02-23 16:05 UTC] Ann: hello", "Ann: hello"),
        ("[Mon 2026-02-23 16:05 UTC] hello", "hello"),
        ("hello\n[message_id: 1234]", "hello"),
        (
            "System: [2026-03-20 17:32:32 GMT+7] Exec failed\nSystem: [2026-03-20 17:33] "
            "again\n\nhello",
            "hello",
        ),
        (
            "[Chat messages since your last reply - for context]\nBob: hi\n\n[Current message - "
            "respond to this]\nAnn: yes?",
            "Ann: yes?",
        ),
        ("[2026-02-23 16:05] my own note", "[2026-02-23 16:05] my own note"),
        (
            "[Meeting with Ann 2026-02-23 16:05] we chose X",
            "[Meeting with Ann 2026-02-23 16:05] we chose X",
        ),
        ("[x] a task and a [link](y)", "[x] a task and a [link](y)"),
        (
            "The heading (untrusted metadata): is no fence",
            "The heading (untrusted metadata): is no fence",
        ),
        ("plain", "plain"),
    ],
)
def test_what_a_channel_adds_comes_off(text: str, expected: str) -> None:
    assert strip_channel(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<command-name>/x</command-name>please", "please"),
        (
            "<command-name>/x</command-name><command-args>all of it</command-args> please",
            "/x all of it\n please",
        ),
        ("about <command-args>a</command-args>", "about "),
        ("before <bash-stdout>out</bash-stdout> after", "before  after"),
        ("<environment_context>\n<cwd>/w</cwd></environment_context>", ""),
        ("<first-part a='1'>x</first-part>\n<second_part>y</second_part>", ""),
        (
            "<my-widget>1</my-widget> why does this fail?",
            "<my-widget>1</my-widget> why does this fail?",
        ),
        ("<div>plain HTML</div>", "<div>plain HTML</div>"),
        ("<bash-stdout>never closed", "<bash-stdout>never closed"),
        (
            "# Context from my IDE setup:\n\n## Active file: a.py\n\n## My request for "
            "Codex:\nrename it",
            "\nrename it",
        ),
    ],
)
def test_what_a_program_writes_into_a_message_comes_out(text: str, expected: str) -> None:
    assert strip_machine(text) == expected


def test_thoughts_are_not_answers() -> None:
    assert strip_thinking("<think>hm</think>Yes.") == "Yes."
    assert strip_thinking("<thinking>a</thinking><think>b</think> Yes.") == "Yes."
    assert strip_thinking("NO_REPLY") == ""
    assert strip_thinking("I think <thinkers> are fine") == "I think <thinkers> are fine"


def test_tag_with_a_common_prefix_is_a_different_tag() -> None:
    assert (
        without_tags("<think>a</think><thinker>b</thinker>", ("think",)) == "<thinker>b</thinker>"
    )


@pytest.mark.parametrize(
    "part",
    [
        "<think",
        "<think>",
        "<a-b></a-b>",
        "<a-b>",
        "System: [x\n",
        "x (untrusted metadata):\n```json\n",
        "[",
        "[A 2026-01-01 00:00",
        "\n ",
    ],
)
def test_the_work_grows_with_the_text_and_no_faster(part: str) -> None:
    """Counted, not timed: a text of a million characters that made one step quadratic would not end
    here.
    """
    text = part * (1_000_000 // len(part))
    for step in (strip_channel, strip_machine, strip_thinking):
        assert len(step(text)) <= len(text)
