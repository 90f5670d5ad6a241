"""What a session took from the memory and gave to it, after a real conversation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from chat import ChatServer, call, say
from scripted_session import KEY, Clock

from clawmark import Memory
from clawmark.agent.models.catalog import choose_completer
from clawmark.agent.tools.base import render
from clawmark.testing import HashingEmbedder


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(tmp_path: Path, clock: Clock) -> Iterator[Memory]:
    (tmp_path / "agent" / "memory").mkdir(parents=True)
    (tmp_path / "agent" / "MEMORY.md").write_text("# Facts\n\nAnn prefers tea.\n", encoding="utf-8")
    with Memory.open(
        tmp_path / "agent", state_dir=tmp_path / "state", embedder=HashingEmbedder(), clock=clock
    ) as made:
        yield made


def talk(memory: Memory) -> str:
    """Have a conversation with recall, a tool call, a flush and a note; return its transcript."""

    def model(seen: object) -> object:
        step = getattr(seen, "step", 0)
        wanted = "- PostgreSQL for billing."
        return call("memory_append", text=wanted) if step == 0 else say("NO_REPLY")

    with ChatServer(model) as server:  # type: ignore[arg-type]
        completer = choose_completer(f"scripted@{server.openai_url}", {})
        conversation = memory.conversation(
            KEY, completer=completer, context_window=10_000, append=True, recall=True
        )
        conversation.start()
        conversation.on_user("What does Ann prefer, tea?")
        search, *_, append, _ = memory.tools(KEY, append=True)
        asked = {"type": "toolCall", "id": "c1", "name": "memory_search"}
        arguments = {"query": "what does Ann prefer"}
        content = [{**asked, "arguments": arguments}]
        conversation.record("message", {"message": {"role": "assistant", "content": content}})
        text = render(search.call(arguments))
        answer = {"role": "toolResult", "toolCallId": "c1", "toolName": "memory_search"}
        answer["content"] = [{"type": "text", "text": text}]  # type: ignore[assignment]
        conversation.record("message", {"message": answer})
        append.call({"text": "Ann is a keen rower and trains on Mondays."})
        conversation.on_usage(7_200, reply="Tea. And we take PostgreSQL for billing.")
        conversation.on_user("We decided to move billing to PostgreSQL in March.")
        conversation.on_usage(300, reply="Noted.")
        transcript = conversation.transcript
        conversation.end()
    return Path(transcript).name


def test_a_session_says_what_was_recalled_searched_and_written(memory: Memory) -> None:
    report = memory.session(talk(memory))
    assert (report.key, report.kind) == (KEY, "main")
    recalled, searched, *_ = report.uses
    assert (recalled.how, recalled.citations) == ("recalled", ("MEMORY.md#L1-L3",))
    assert (searched.how, searched.query) == ("searched", "what does Ann prefer")
    assert searched.citations[0].startswith("MEMORY.md#L")
    written = {one.record.origin.kind: one for one in report.writes}
    assert set(written) == {"tool", "flush", "note"}
    assert "PostgreSQL for billing" in written["flush"].texts[-1]
    assert "keen rower" in written["tool"].texts[-1]
    assert report.note == written["note"].record.path


def test_the_transcript_has_the_sources_of_what_was_recalled_and_not_its_text(
    memory: Memory,
) -> None:
    name = talk(memory)
    path = Path(memory.places.conversations_dir) / name
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    kept, *others = [line for line in lines if line["type"] == "custom"]
    assert kept["customType"] == "clawmark.recalled"
    assert kept["data"] == {"citations": ["MEMORY.md#L1-L3"]}
    assert "Ann prefers" not in json.dumps([kept, *others])


def test_an_earlier_session_of_the_same_key_keeps_its_own_writes(
    memory: Memory, clock: Clock
) -> None:
    first = talk(memory)
    clock.advance(30)
    second = memory.conversation(KEY)
    second.start()
    second.on_user("Another day.")
    report = memory.session(first)
    assert report.key == KEY and len(report.writes) == 3
    assert memory.session(Path(second.transcript).name).writes == ()


def test_a_transcript_without_a_session_has_no_key(memory: Memory, tmp_path: Path) -> None:
    folder = Path(memory.places.conversations_dir)
    folder.mkdir(parents=True)
    message = {"role": "user", "content": "hello"}
    line = json.dumps({"type": "message", "message": message})
    (folder / "lost.jsonl").write_text(line + "\n", encoding="utf-8")
    report = memory.session("lost")
    assert (report.key, report.kind, report.uses, report.writes) == ("", None, (), ())
