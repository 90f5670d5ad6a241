"""What a session took from the memory, as its transcript shows it."""

from __future__ import annotations

import json

import pytest

from clawmark.agent.prompt.recall import Recalled, recall_block
from clawmark.agent.session.memory_use import MemoryUse, find_memory_uses

ITEM = Recalled(
    citation="memory/2026-02-24.md#L3-L4", date="2026-02-24", origin="agent", text="- A heron."
)
RESULT = {
    "results": [
        {"path": "MEMORY.md", "startLine": 3, "endLine": 5, "snippet": "x"},
        {"path": "memory/a.md", "startLine": 1, "endLine": 1, "citation": "memory/a.md#L1"},
    ]
}


def uses(*records: object) -> list[MemoryUse]:
    lines = (json.dumps(record).encode() for record in records)
    return list(find_memory_uses(enumerate(lines, 1)))


def test_a_recalled_block_in_a_message_is_found_with_its_sources() -> None:
    text = f"{recall_block([ITEM])}\n\nWhere is the heron?"
    (found,) = uses(
        {"type": "message", "timestamp": "2026-02-24T10:00:00Z", "message": {"content": text}}
    )
    assert found == MemoryUse(
        line=1,
        time="2026-02-24T10:00:00Z",
        how="recalled",
        query="",
        citations=("memory/2026-02-24.md#L3-L4",),
    )


def test_what_a_hook_of_claude_code_added_is_found() -> None:
    content = [f"notes\n{recall_block([ITEM])}\nend"]
    attachment = {"type": "hook_additional_context", "content": content}
    (found,) = uses({"type": "attachment", "attachment": attachment})
    assert (found.how, found.citations) == ("recalled", (ITEM.citation,))


def test_a_block_that_was_changed_counts_without_sources() -> None:
    block = recall_block([ITEM]).replace("\n", " ")
    (found,) = uses({"type": "message", "message": {"content": block}})
    assert (found.how, found.citations) == ("recalled", ())


def test_the_record_of_our_own_conversation_is_found() -> None:
    record = {
        "type": "custom",
        "customType": "clawmark.recalled",
        "data": {"citations": ["MEMORY.md#L1", 7]},
    }
    (found,) = uses(record)
    assert (found.how, found.citations) == ("recalled", ("MEMORY.md#L1",))


def openclaw(name: str, arguments: object, result: object) -> tuple[object, ...]:
    call = {"type": "toolCall", "id": "c1", "name": name, "arguments": arguments}
    content = [{"type": "text", "text": json.dumps(result)}]
    answer = {"role": "toolResult", "toolCallId": "c1", "toolName": name, "content": content}
    return (
        {"type": "message", "message": {"role": "assistant", "content": [call]}},
        {"type": "message", "message": answer},
    )


def claude(name: str, arguments: object, result: object) -> tuple[object, ...]:
    call = {"type": "tool_use", "id": "c1", "name": f"mcp__clawmark__{name}", "input": arguments}
    answer = {"type": "tool_result", "tool_use_id": "c1", "content": json.dumps(result)}
    return (
        {"type": "assistant", "message": {"role": "assistant", "content": [call]}},
        {"type": "user", "message": {"role": "user", "content": [answer]}},
    )


def codex(name: str, arguments: object, result: object) -> tuple[object, ...]:
    text = json.dumps(arguments)
    call = {"type": "function_call", "call_id": "c1", "name": name, "arguments": text}
    answer = {"type": "function_call_output", "call_id": "c1", "output": json.dumps(result)}
    return (
        {"type": "response_item", "payload": call},
        {"type": "response_item", "payload": answer},
    )


@pytest.mark.parametrize("host", [openclaw, claude, codex])
def test_a_search_is_found_with_its_question_and_its_results(host: object) -> None:
    assert callable(host)
    (found,) = uses(*host("memory_search", {"query": "which heron?"}, RESULT))
    assert found.how == "searched" and found.query == "which heron?" and found.line == 1
    assert found.citations == ("MEMORY.md#L3-L5", "memory/a.md#L1")


@pytest.mark.parametrize("host", [openclaw, claude, codex])
def test_a_read_file_is_found_with_its_lines(host: object) -> None:
    assert callable(host)
    answer = {"path": "memory/a.md", "text": "one\ntwo", "from": 4, "lines": 2}
    (found,) = uses(*host("memory_get", {"path": "memory/a.md", "from": 4, "lines": 2}, answer))
    assert (found.how, found.citations) == ("read", ("memory/a.md#L4-L5",))


def test_a_call_without_a_result_gave_nothing() -> None:
    call, _ = openclaw("memory_search", {"query": "heron"}, RESULT)
    (found,) = uses(call)
    assert (found.how, found.citations) == ("searched", ())


def test_other_tools_and_broken_lines_are_ignored() -> None:
    assert uses(*openclaw("web_search", {"query": "x"}, RESULT)) == []
    broken = [(1, b'{"memory_search'), (2, b"\xff\xfe recalled memory"), (3, None)]
    assert list(find_memory_uses(broken)) == []
