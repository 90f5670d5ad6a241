"""What the memory gave in a conversation is found in the transcripts of every host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clawmark.agent.notes.recalled_context import RecalledContext, read_recalled_context
from clawmark.agent.prompt.recall import Recalled, recall_block
from clawmark.workspace import Workspace

FACT = "Carla Mendes is the dentist"
PAYLOAD = json.dumps(
    {"results": [{"path": "MEMORY.md", "snippet": f"- {FACT}\n- She moved."}]}, indent=2
)


def openclaw(tool: str, result: str) -> list[dict[str, Any]]:
    call = {"type": "toolCall", "id": "c1", "name": tool, "arguments": {}}
    answer = {
        "role": "toolResult",
        "toolCallId": "c1",
        "toolName": tool,
        "content": [{"type": "text", "text": result}],
    }
    return [
        {"type": "message", "message": {"role": "assistant", "content": [call]}},
        {"type": "message", "message": answer},
    ]


def claude_code(tool: str, result: str) -> list[dict[str, Any]]:
    call = {"type": "tool_use", "id": "toolu_1", "name": f"mcp__clawmark__{tool}", "input": {}}
    answer = {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": [{"type": "text", "text": result}],
    }
    return [
        {"type": "assistant", "message": {"role": "assistant", "content": [call]}},
        {"type": "user", "message": {"role": "user", "content": [answer]}},
    ]


def codex(tool: str, result: str) -> list[dict[str, Any]]:
    call = {
        "type": "function_call",
        "name": f"clawmark__{tool}",
        "arguments": "{}",
        "call_id": "call_1",
    }
    answer = {"type": "function_call_output", "call_id": "call_1", "output": result}
    return [
        {"type": "response_item", "payload": call},
        {"type": "response_item", "payload": answer},
    ]


def context(tmp_path: Path, records: list[dict[str, Any]], since: int = 0) -> RecalledContext:
    transcript = tmp_path / "t.jsonl"
    transcript.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    (tmp_path / "workspace" / "memory").mkdir(parents=True, exist_ok=True)
    return read_recalled_context(
        str(transcript), since, Workspace(str(tmp_path / "workspace")), ("2026-11-15",)
    )


@pytest.mark.parametrize("host", [openclaw, claude_code, codex])
@pytest.mark.parametrize("tool", ["memory_search", "memory_get"])
def test_results_of_the_memory_tools_are_recalled_text(
    tmp_path: Path, host: Any, tool: str
) -> None:
    found = context(tmp_path, host(tool, PAYLOAD))
    assert f"- {FACT}\n- She moved." in found.recalled and not found.used_tools


@pytest.mark.parametrize("host", [openclaw, claude_code, codex])
def test_results_of_other_tools_are_not_and_count_as_work(tmp_path: Path, host: Any) -> None:
    assert context(tmp_path, host("read_file", PAYLOAD)) == RecalledContext("\n", True)


@pytest.mark.parametrize("host", [openclaw, claude_code, codex])
def test_adding_a_note_is_neither_recall_nor_work(tmp_path: Path, host: Any) -> None:
    assert context(tmp_path, host("memory_append", PAYLOAD)) == RecalledContext("\n", False)


def test_fenced_block_is_recalled_text_wherever_a_host_puts_it(tmp_path: Path) -> None:
    block = recall_block([Recalled(citation="MEMORY.md#L3", date="", origin="unknown", text=FACT)])
    attached = {
        "type": "attachment",
        "attachment": {"type": "hook_additional_context", "content": [f"Hook: {block}"]},
    }
    assert FACT in context(tmp_path, [attached]).recalled


def test_what_every_session_is_shown_is_recalled_text(tmp_path: Path) -> None:
    (tmp_path / "workspace" / "memory").mkdir(parents=True)
    (tmp_path / "workspace" / "MEMORY.md").write_text(f"- {FACT}\n")
    (tmp_path / "workspace" / "memory" / "2026-11-15.md").write_text(
        "- The ferry leaves at seven.\n"
    )
    recalled = context(tmp_path, []).recalled
    assert FACT in recalled and "ferry" in recalled


def test_absent_transcript_and_hostile_lines_give_nothing(tmp_path: Path) -> None:
    workspace = Workspace(str(tmp_path))
    assert read_recalled_context(
        str(tmp_path / "absent.jsonl"), 0, workspace, ()
    ) == RecalledContext("", False)
    (tmp_path / "t.jsonl").write_text(
        '{"type": "tool_use"\n[[["toolCall"\n{"type":"toolCall","name":7,"id":[]}\n\n'
    )
    assert read_recalled_context(str(tmp_path / "t.jsonl"), 0, workspace, ()).recalled == ""
