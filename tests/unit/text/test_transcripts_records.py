"""What is said on a line of a transcript: OpenClaw's, Claude Code's and Codex's lines, and
everything that is not said.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from clawmark.text.transcripts.records import TranscriptMessage, format_of, parse_line, read_message

TIME = "2026-02-24T10:03:07.123Z"


def said(record: dict[str, Any], number: int = 7) -> TranscriptMessage | None:
    return read_message(json.dumps(record), number)


def openclaw(role: str, content: object, **more: object) -> dict[str, Any]:
    return {
        "type": "message",
        "id": "a1b2c3d4",
        "timestamp": TIME,
        "message": {"role": role, "content": content},
        **more,
    }


def claude(role: str, content: object, **more: object) -> dict[str, Any]:
    message: dict[str, Any] = {"role": role, "content": content}
    known = {
        "type": role,
        "uuid": "u",
        "parentUuid": None,
        "sessionId": "s",
        "isSidechain": False,
        "timestamp": TIME,
    }
    return {**known, "message": message, **more}


def codex(role: str, *texts: str, **more: object) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    payload = {
        "type": "message",
        "role": role,
        "content": [{"type": kind, "text": text} for text in texts],
    }
    return {"timestamp": TIME, "type": "response_item", "payload": {**payload, **more}}


def test_openclaw_messages_have_role_text_time_and_line() -> None:
    expected = TranscriptMessage(
        role="user", text="We chose PostgreSQL", time="2026-02-24T10:03:07Z", line=7
    )
    assert said(openclaw("user", "We chose PostgreSQL")) == expected
    assert said(openclaw("user", [{"type": "text", "text": "We chose PostgreSQL"}])) == expected
    answer = [
        {"type": "thinking", "thinking": "hidden"},
        {"type": "text", "text": "Noted."},
        {"type": "toolCall", "name": "write", "arguments": {"path": "x"}},
        {"type": "text", "text": "Done."},
    ]
    assert said(openclaw("assistant", answer)) == TranscriptMessage(
        role="assistant", text="Noted.\nDone.", time="2026-02-24T10:03:07Z", line=7
    )


def test_claude_codes_messages_are_read() -> None:
    assert said(claude("user", "Fix the flaky test")) == TranscriptMessage(
        role="user", text="Fix the flaky test", time="2026-02-24T10:03:07Z", line=7
    )
    blocks = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "It was a race."},
        {"type": "tool_use", "name": "Bash"},
    ]
    found = said(claude("assistant", blocks))
    assert found is not None and found.text == "It was a race."


def queued(prompt: object, **more: object) -> dict[str, Any]:
    attachment = {"type": "queued_command", "prompt": prompt, "commandMode": "prompt", **more}
    return {
        "type": "attachment",
        "parentUuid": "u",
        "isSidechain": False,
        "timestamp": TIME,
        "attachment": attachment,
    }


def test_message_typed_while_claude_code_works_is_read() -> None:
    expected = TranscriptMessage(
        role="user", text="Use pytest instead", time="2026-02-24T10:03:07Z", line=7
    )
    assert said(queued("Use pytest instead")) == expected
    assert (
        said(queued([{"type": "text", "text": "Use pytest instead"}], origin={"kind": "human"}))
        == expected
    )


def test_the_words_after_a_command_are_read() -> None:
    text = (
        "<command-message>plan</command-message>\n<command-name>/plan</command-name>\n"
        "<command-args>the new parser</command-args>"
    )
    found = said(claude("user", text))
    assert found is not None and found.text == "/plan the new parser"


def test_codexs_messages_are_read_once() -> None:
    assert said(codex("user", "Why Postgres?")) == TranscriptMessage(
        role="user", text="Why Postgres?", time="2026-02-24T10:03:07Z", line=7
    )
    assert said(codex("assistant", "One transaction.")) == TranscriptMessage(
        role="assistant", text="One transaction.", time="2026-02-24T10:03:07Z", line=7
    )
    again = {
        "timestamp": TIME,
        "type": "event_msg",
        "payload": {"type": "user_message", "message": "Why Postgres?"},
    }
    assert said(again) is None
    old = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "in the first format"}],
    }
    assert said(old) == TranscriptMessage(role="user", text="in the first format", time="", line=7)


NOISE: dict[str, dict[str, Any]] = {
    "session header": {"type": "session", "version": 3, "id": "x", "cwd": "."},
    "model change": {"type": "model_change", "modelId": "m"},
    "compaction": {"type": "compaction", "summary": "what came before"},
    "branch summary": {"type": "branch_summary", "summary": "x"},
    "custom message": {"type": "custom_message", "content": "x"},
    "tool result": openclaw("toolResult", [{"type": "text", "text": "out"}]),
    "shell": openclaw("bashExecution", "ls"),
    "system role": openclaw("system", "You are"),
    "only a tool call": openclaw("assistant", [{"type": "toolCall", "name": "read"}]),
    "only an image": openclaw("user", [{"type": "image", "data": "x"}]),
    "from the system": {
        **openclaw("user", "x"),
        "message": {"role": "user", "content": "x", "provenance": {"kind": "internal_system"}},
    },
    "from a session": {
        **openclaw("user", "x"),
        "message": {"role": "user", "content": "x", "provenance": {"kind": "inter_session"}},
    },
    "silence": openclaw("assistant", "NO_REPLY"),
    "heartbeat": openclaw("assistant", [{"type": "text", "text": " HEARTBEAT_OK\n"}]),
    "flush": openclaw("user", "Pre-compaction memory flush. Store durable memories now."),
    "summary": {"type": "summary", "summary": "A title", "leafUuid": "u"},
    "snapshot": {"type": "file-history-snapshot", "snapshot": {}},
    "side chain": claude("user", "explore", isSidechain=True),
    "meta": claude("user", "Caveat: ...", isMeta=True),
    "compact summary": claude("user", "This session is being continued", isCompactSummary=True),
    "api error": claude(
        "assistant", [{"type": "text", "text": "API Error"}], isApiErrorMessage=True
    ),
    "synthetic": {
        **claude("assistant", "x"),
        "message": {"role": "assistant", "model": "<synthetic>", "content": "x"},
    },
    "tool result of claude": claude(
        "user", [{"type": "tool_result", "tool_use_id": "t", "content": "output"}]
    ),
    "command": claude(
        "user", "<command-name>/clear</command-name>\n<command-message>clear</command-message>"
    ),
    "command without words": claude(
        "user",
        "<command-name>/clear</command-name>\n<command-message>clear</command-message>\n<command-args></command-args>",
    ),
    "queued by a program": queued(
        "<task-notification>done</task-notification>", commandMode="task-notification"
    ),
    "queued by another session": queued("explore", origin={"kind": "peer"}),
    "another attachment": {
        "type": "attachment",
        "timestamp": TIME,
        "attachment": {"type": "todo", "prompt": "x"},
    },
    "attachment of another kind": {"type": "attachment", "timestamp": TIME, "attachment": "x"},
    "command output": claude("user", "<local-command-stdout>done</local-command-stdout>"),
    "reminder": claude("user", "<system-reminder>Do not mention this.</system-reminder>"),
    "interrupted": claude(
        "user", [{"type": "text", "text": "[Request interrupted by user for tool use]"}]
    ),
    "unknown wrapper": claude("user", "<some-new-thing id='4'>by a program</some-new-thing>"),
    "environment": codex("user", "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>"),
    "instructions": codex(
        "user", "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nUse pytest.\n</INSTRUCTIONS>"
    ),
    "skill": codex(
        "user", "<skill>\n<name>review</name>\n<path>/s</path>\nLook closely.\n</skill>"
    ),
    "developer": codex("developer", "You are Codex"),
    "reasoning": {
        "timestamp": TIME,
        "type": "response_item",
        "payload": {"type": "reasoning", "summary": []},
    },
    "function call": {
        "timestamp": TIME,
        "type": "response_item",
        "payload": {"type": "function_call", "name": "shell"},
    },
    "session meta": {
        "timestamp": TIME,
        "type": "session_meta",
        "payload": {"id": "x", "instructions": "long"},
    },
    "turn context": {"timestamp": TIME, "type": "turn_context", "payload": {"cwd": "/w"}},
    "recalled only": openclaw("user", "<relevant-memories>\nold memory\n</relevant-memories>"),
}


@pytest.mark.parametrize("name", NOISE)
def test_records_that_are_not_messages_are_ignored(name: str) -> None:
    assert said(NOISE[name]) is None


@pytest.mark.parametrize(
    "line",
    ["", "  ", "{not json}", '{"type":"message",', "[]", "1", '"text"', "null", "true", "NaN",
     pytest.param("[" * 50_000, id="deep"), pytest.param('{"a":' * 50_000, id="deep objects"),
     '{"type":"message","timestamp":' + "9" * 5000 + ',"message":{"role":"user","content":"x"}}',
     '{"type":["message"],"message":{"role":"user","content":"x"}}',
     '{"type":"message","message":null}',
     '{"type":"message","message":{"role":["user"],"content":"x"}}', '{"type":"user","message":[]}',
     '{"type":"response_item","payload":"x"}', '{"type":"response_item"}'],
)  # fmt: skip
def test_line_without_a_message_gives_none(line: str) -> None:
    assert read_message(line, 1) is None


@pytest.mark.parametrize(
    "content",
    [None, 1, True, [], {}, "", "  ", [None], [{"type": "text"}], [{"type": "text", "text": None}]],
)
def test_content_of_another_kind_is_nothing(content: object) -> None:
    assert said(openclaw("user", content)) is None
    assert said(claude("user", content)) is None


NO_TIMES: list[object] = [
    "yesterday",
    "",
    None,
    -1,
    1e300,
    "2026-02-30T99:99:99Z",
    "0000-00-00",
    [],
    True,
    float("nan"),
]


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("2026-02-24T10:03:07.123Z", "2026-02-24T10:03:07Z"),
        ("2026-02-24T10:03:07+02:00", "2026-02-24T08:03:07Z"),
        ("2026-02-24T10:03:07", "2026-02-24T10:03:07Z"),
        (1_771_927_387_123, "2026-02-24T10:03:07Z"),
        *((wrong, "") for wrong in NO_TIMES),
    ],
)
def test_times_are_utc_or_nothing(time: object, expected: str) -> None:
    found = said({**openclaw("user", "x"), "timestamp": time})
    assert found is not None and found.time == expected


def test_time_of_the_message_is_used_without_a_record_time() -> None:
    record = {
        "type": "message",
        "message": {"role": "user", "content": "x", "timestamp": 1_771_927_387_123},
    }
    found = said(record)
    assert found is not None and found.time == "2026-02-24T10:03:07Z"


def test_half_characters_and_control_bytes_become_replacement_characters() -> None:
    found = read_message(
        '{"type":"message","message":{"role":"user","content":"a\\u0000b \\ud83d half\\r\\nline"}}',
        1,
    )
    assert found is not None and found.text == "a\ufffdb \ufffd half\nline"


def test_a_byte_order_mark_and_the_zeros_of_a_crash_do_not_hide_a_line() -> None:
    line = json.dumps(openclaw("user", "kept"))
    for odd in ("\ufeff" + line, "\0" * 4096 + line, line + "\r", f"  {line}\0\0"):
        found = read_message(odd, 1)
        assert found is not None and found.text == "kept"


def test_question_next_to_host_text_is_kept() -> None:
    prompt = codex(
        "user",
        "<environment_context>x</environment_context>",
        "# AGENTS.md instructions for /w\nrules",
        "Why?",
    )
    assert (found := said(prompt)) is not None and found.text == "Why?"
    reminded = claude(
        "user",
        [
            {"type": "text", "text": "<system-reminder>r</system-reminder>"},
            {"type": "text", "text": "Go on"},
        ],
    )
    assert (found := said(reminded)) is not None and found.text == "Go on"
    recalled = openclaw("user", "<relevant-memories>old</relevant-memories> new question")
    assert (found := said(recalled)) is not None and found.text == "new question"


def test_whose_transcript_a_line_belongs_to_shows_in_the_line() -> None:
    assert format_of(parse_line('{"type":"session","version":3}')) == "openclaw"
    assert format_of(parse_line('{"type":"summary","summary":"t","leafUuid":"u"}')) == "claude-code"
    assert format_of(parse_line('{"type":"session_meta","payload":{}}')) == "codex"
    assert (
        format_of(parse_line('{"type":"queue-operation","operation":"enqueue","sessionId":"s"}'))
        == "claude-code"
    )
    assert format_of(parse_line("{}")) == format_of(parse_line("nothing")) == ""
