"""Entries of the daily log carry the time of the user's zone, whatever writes them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from chat import ChatServer, call, say
from commands import new_place

from clawmark import Memory
from clawmark.agent.flush.flush import Flushed
from clawmark.agent.models.catalog import choose_completer

DAY = "2026-02-24"
TIMES = "memory.dailyLog.times"


def opened(
    folder: Path, *moments: datetime, times: bool = True, zone: str = "", embedder: str = "none"
) -> Memory:
    """A memory whose clock gives these times one after the other, and then the last one."""
    (folder / "ws").mkdir(exist_ok=True)
    left = list(moments)
    return Memory.open(
        folder / "ws",
        state_dir=folder / "state",
        provider=embedder,
        clock=(lambda: left.pop(0) if len(left) > 1 else left[0]) if moments else None,
        overrides={TIMES: times, **({"agents.defaults.userTimezone": zone} if zone else {})},
        background=False,
    )


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"{text}+00:00")


def log(folder: Path, day: str = DAY) -> str:
    return (folder / "ws" / "memory" / f"{day}.md").read_text(encoding="utf-8")


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as running:
        yield running


def test_the_library_and_the_tool_write_the_time(tmp_path: Path) -> None:
    with opened(tmp_path, at(f"{DAY} 14:05:59")) as memory:
        memory.append("We chose PostgreSQL.\nIt exports well.")
        tool = next(tool for tool in memory.tools(append=True) if tool.name == "memory_append")
        assert tool.call({"text": "Ada prefers tea.", "origin": "user"})["written"]
    assert log(tmp_path) == (
        f"# {DAY}\n\n- 14:05 We chose PostgreSQL.\n  It exports well.\n"
        "- 14:05 Ada prefers tea. <!-- clawmark: origin=user -->\n"
    )


def test_a_flush_writes_the_time_of_each_entry(tmp_path: Path, server: ChatServer) -> None:
    server.script(
        [
            call("memory_append", text="- Tea with Ann.\n* Billing uses PostgreSQL."),
            call("memory_append", text="- 16:00 dentist.\n- Tea with Ann."),
            say("NO_REPLY"),
        ]
    )
    model = choose_completer(f"scripted@{server.openai_url}", {})
    with opened(tmp_path, at(f"{DAY} 09:30")) as memory:
        memory.append("Known already.")
        conversation = memory.conversation(completer=model)
        conversation.start()
        conversation.on_user("Tea with Ann at the pier, and the dentist at four.")
        assert isinstance(conversation.flush(), Flushed)
    entries = [line.partition(" <!--")[0] for line in log(tmp_path).splitlines()[2:]]
    assert entries == [
        "- 09:30 Known already.",
        "- 09:30 Tea with Ann.",
        "* 09:30 Billing uses PostgreSQL.",
        "- 09:30 16:00 dentist.",
    ]
    assert "| - Known already." in server.seen[0].last_user, "a model would imitate the times"


def test_the_time_is_that_of_the_configured_zone(tmp_path: Path) -> None:
    with opened(tmp_path, zone="Pacific/Kiritimati") as memory:
        before = datetime.now(UTC)
        path = memory.append("Far away.").path
        after = datetime.now(UTC)
    zone = ZoneInfo("Pacific/Kiritimati")
    possible = {
        f"{moment.astimezone(zone):memory/%Y-%m-%d.md - %H:%M Far away.}"
        for moment in (before, after)
    }
    assert f"{path} {(tmp_path / 'ws' / path).read_text().splitlines()[2]}" in possible


def test_day_and_time_of_an_entry_agree_around_midnight(tmp_path: Path) -> None:
    before, after = at(f"{DAY} 23:59:59"), at("2026-02-25 00:00:01")
    with opened(tmp_path, before, after) as memory:
        memory.append("The last one.")
        memory.append("The first one.")
    assert log(tmp_path) == f"# {DAY}\n\n- 23:59 The last one.\n"
    assert log(tmp_path, "2026-02-25") == "# 2026-02-25\n\n- 00:00 The first one.\n"


def test_the_tool_reads_the_clock_once(tmp_path: Path) -> None:
    before, after = at(f"{DAY} 23:59:59"), at("2026-02-25 00:00:01")
    with opened(tmp_path, before, after) as memory:
        tool = next(tool for tool in memory.tools(append=True) if tool.name == "memory_append")
        assert tool.call({"text": "Ada prefers tea."})["path"] == f"memory/{DAY}.md"
    assert log(tmp_path).startswith(f"# {DAY}\n\n- 23:59 Ada prefers tea.")


def test_a_checked_note_is_written_with_the_time_at_which_it_was_checked(tmp_path: Path) -> None:
    before, after = at(f"{DAY} 23:59:59"), at("2026-02-25 00:00:01")
    with opened(tmp_path, before, after) as memory:
        moment = memory.now()
        assert memory.check_note("Ada prefers tea.", day=moment.date().isoformat()) is None
        memory.append("Ada prefers tea.", at=moment)
    assert log(tmp_path) == f"# {DAY}\n\n- 23:59 Ada prefers tea.\n"


def test_an_entry_of_another_day_and_other_files_have_no_time(tmp_path: Path) -> None:
    with opened(tmp_path, at(f"{DAY} 14:05")) as memory:
        memory.append("Found in an old letter.", day="2026-02-20")
        memory.append("Prefers short answers.", to="MEMORY.md")
        memory.append("The birds are back.", to="memory/birds.md")
    assert log(tmp_path, "2026-02-20") == "# 2026-02-20\n\n- Found in an old letter.\n"
    assert (tmp_path / "ws" / "MEMORY.md").read_text() == "- Prefers short answers.\n"
    assert (tmp_path / "ws" / "memory" / "birds.md").read_text() == "- The birds are back.\n"


def test_the_same_text_later_on_the_day_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path, at(f"{DAY} 09:00"), at(f"{DAY} 14:05")) as memory:
        memory.append("Ada prefers tea.")
        refusal = memory.check_note("Ada prefers tea")
        assert refusal is not None and refusal.reason == "duplicate"
        assert refusal.message == f"It is already there: memory/{DAY}.md#L3."


def test_a_model_that_writes_the_time_itself_adds_neither_a_duplicate_nor_a_second_time(
    tmp_path: Path, server: ChatServer
) -> None:
    text = "Ada prefers tea in the morning."
    server.script([call("memory_append", text=f"- 14:04 {text}\n- 14:05 Tea with Ann."), say("ok")])
    model = choose_completer(f"scripted@{server.openai_url}", {})
    with opened(tmp_path, at(f"{DAY} 09:00"), at(f"{DAY} 14:05")) as memory:
        memory.append(text)
        tool = next(tool for tool in memory.tools(append=True) if tool.name == "memory_append")
        for written in (f"14:05 {text}", f"- 14:03 {text}"):
            assert tool.call({"text": written})["reason"] == "duplicate"
        assert tool.call({"text": "14:03 The train to Lisbon has left."})["written"]
        conversation = memory.conversation(completer=model)
        conversation.start()
        conversation.on_user("Tea with Ann, and Ada prefers it in the morning.")
        assert isinstance(conversation.flush(), Flushed)
    entries = [line.partition(" <!--")[0] for line in log(tmp_path).splitlines()[2:]]
    assert entries == [
        f"- 09:00 {text}",
        "- 14:03 The train to Lisbon has left.",
        "- 14:05 Tea with Ann.",
    ]


def test_without_the_setting_the_bytes_are_as_before(tmp_path: Path, server: ChatServer) -> None:
    server.script([call("memory_append", text="- Tea with Ann."), say("NO_REPLY")])
    model = choose_completer(f"scripted@{server.openai_url}", {})
    with opened(tmp_path, at(f"{DAY} 14:05"), times=False) as memory:
        memory.append("We chose PostgreSQL.")
        conversation = memory.conversation(completer=model)
        conversation.start()
        conversation.on_user("Tea with Ann at the pier.")
        conversation.flush()
    label = "<!-- clawmark: origin=agent session=agent:main:main -->"
    assert log(tmp_path) == f"# {DAY}\n\n- We chose PostgreSQL.\n- Tea with Ann. {label}\n"


def test_a_log_that_began_without_times_goes_on_with_them(tmp_path: Path) -> None:
    with opened(tmp_path, at(f"{DAY} 14:05"), embedder="static") as memory:
        memory.workspace.remember("The heron nests by the harbour.", DAY)
        memory.append("We chose PostgreSQL for billing.")
        assert log(tmp_path) == (
            f"# {DAY}\n\n- The heron nests by the harbour.\n"
            "- 14:05 We chose PostgreSQL for billing.\n"
        )
        for question in ("where does the heron nest?", "which database for billing?"):
            assert memory.search(question, min_score=0).hits[0].path == f"memory/{DAY}.md"
        assert memory.verify().problems == ()


def test_the_command_writes_the_time_and_refuses_the_same_text(tmp_path: Path) -> None:
    place = new_place(tmp_path)
    written = place.run("remember", "--json", "Ada prefers tea in the morning").json()
    line = (place.workspace / written["path"]).read_text().splitlines()[written["startLine"] - 1]
    dash, time, text = line.split(" ", 2)
    assert (dash, text) == ("-", "Ada prefers tea in the morning")
    assert datetime.strptime(time, "%H:%M")
    again = place.run("remember", "Ada prefers tea in the morning.")
    assert again.code == 4 and "It is already there" in again.err
