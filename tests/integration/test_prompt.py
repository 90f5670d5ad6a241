"""The prompt as a host and a person get it: from real files, fresh at every turn, in a process of
its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from commands import Place, new_place, says_one_clear_thing

from clawmark import Memory
from clawmark.agent.session.conversation import HostOptions
from clawmark.model.errors import ClawmarkError
from clawmark.testing import HashingEmbedder

GROUP = "agent:main:telegram:group:42"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    root = tmp_path / "agent"
    (root / "memory").mkdir(parents=True)
    (root / "AGENTS.md").write_text("# AGENTS.md\n\nWork well.\n")
    with Memory.open(
        root,
        state_dir=tmp_path / "state",
        embedder=HashingEmbedder(),
        clock=lambda: datetime(2026, 2, 24, 9, 30),
    ) as opened:
        yield opened


def test_a_note_is_in_the_prompt_of_the_next_turn(memory: Memory) -> None:
    append = memory.tools("agent:main:main", append=True)[2]
    before = memory.prompt("agent:main:main").text
    assert append.call({"text": "Ada prefers tea."})["written"] is True
    after = memory.prompt("agent:main:main").text
    assert "Ada prefers tea." not in before and "Ada prefers tea." in after
    assert memory.prompt("agent:main:main").text == after


def test_a_note_for_memory_md_is_in_the_prompt_once_the_user_has_accepted_it(
    memory: Memory,
) -> None:
    append = memory.tools("agent:main:main", append=True)[2]
    kept = append.call({"text": "Billing runs on PostgreSQL.", "to": "MEMORY.md"})
    assert "Billing runs on PostgreSQL." not in memory.prompt("agent:main:main").text
    memory.review.accept(str(kept["proposal"]))
    assert "Billing runs on PostgreSQL." in memory.prompt("agent:main:main").text


def test_an_appended_note_is_found_with_its_origin(memory: Memory) -> None:
    append = memory.tools("agent:main:main", append=True)[2]
    written = append.call({"text": "The heron nests by the harbour.", "origin": "user"})
    found = memory.search("heron harbour")
    assert found.hits[0].path == written["path"]
    assert "origin: user" in memory.recall("heron harbour", "agent:main:main")


def test_the_label_of_a_note_is_neither_searched_nor_embedded(memory: Memory) -> None:
    append = memory.tools("agent:main:main", append=True)[2]
    plain, labelled = "The heron nests by the harbour.", "The kingfisher fishes at the pier."
    memory.append(plain, to="memory/birds.md")
    append.call({"text": labelled})
    memory.sync()
    assert memory.search("clawmark origin session").hits == ()
    assert memory.search("kingfisher").hits[0].snippet.endswith("session=agent:main:main -->")
    assert memory.verify().problems == ()


def test_the_settings_bound_what_is_shown(memory: Memory, tmp_path: Path) -> None:
    root = tmp_path / "agent"
    (root / "MEMORY.md").write_text(
        "# Facts\n\n" + "".join(f"- fact {number}\n" for number in range(2000))
    )
    (root / "memory" / "2026-02-24.md").write_text("- a log line\n" * 500)
    overrides = {
        "agents.defaults.bootstrapMaxChars": 1000,
        "agents.defaults.startupContext.maxFileChars": 500,
        "agents.defaults.startupContext.dailyMemoryDays": 1,
    }
    with Memory.open(
        root, state_dir=tmp_path / "state", overrides=overrides, clock=lambda: datetime(2026, 2, 24)
    ) as small:
        context = small.prompt().context
    assert all(len(file.text) <= 1000 for file in context.files)
    assert context.files[-1].text.endswith("- fact 1999")
    assert [len(log.text) <= 500 for log in context.logs] == [True]
    off = {"agents.defaults.startupContext.enabled": False}
    with Memory.open(root, state_dir=tmp_path / "state", overrides=off) as without:
        assert without.prompt().context.logs == ()


def test_the_runtime_line_counts_what_is_due(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "agent" / "memory" / "people.md").write_text("- Ada\n")
    assert "mode fts-only, provider none, due files 1" in memory.prompt().text
    memory.sync()
    assert "due files 0" in memory.prompt().text and "mode hybrid" in memory.prompt().text


def test_a_damaged_index_takes_nothing_from_the_prompt_but_its_state(
    memory: Memory, tmp_path: Path
) -> None:
    memory.sync()
    memory.close()
    (index,) = (tmp_path / "state").rglob("*.sqlite")
    index.write_bytes(b"no database" * 1000)
    with Memory.open(
        tmp_path / "agent", state_dir=tmp_path / "state", embedder=HashingEmbedder()
    ) as broken:
        text = broken.prompt().text
    assert "Work well." in text and "memory: cannot be searched now: " in text


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path / "place")
    made.folder.mkdir()
    return made


def test_the_command_prints_the_prompt_and_its_sizes(place: Place) -> None:
    assert place.run("init", str(place.folder / "agent")).code == 0
    flags = ("--workspace", str(place.folder / "agent"))
    ran = place.run("prompt", *flags)
    assert ran.code == 0
    assert ran.out.startswith("## Memory Recall\n") and "# USER.md: your person" in ran.out
    assert ran.err.startswith("tokens  what this session sees (main)\n")
    group = place.run("prompt", *flags, "--session", GROUP)
    assert "USER.md: your person" not in group.out and "(group)" in group.err
    sizes = place.run("prompt", *flags, "--sizes", "--chat-type", "group")
    assert sizes.out.startswith("tokens  what this session sees (group)\n") and sizes.err == ""


def test_the_command_gives_one_json_document(place: Place) -> None:
    place.run("init", str(place.folder / "agent"))
    ran = place.run("prompt", "--workspace", str(place.folder / "agent"), "--append", "--json")
    body = json.loads(ran.out)
    assert (body["kind"], body["private"]) == ("main", True)
    assert [section["name"] for section in body["sections"]] == [
        "memory recall",
        "memory writing",
        "project context",
        "runtime",
    ]
    assert body["text"] == "\n\n".join(section["text"] for section in body["sections"])
    assert {file["name"] for file in body["files"]} >= {"AGENTS.md", "USER.md"}
    assert body["tokens"] > 1000


class Clock:
    """A time that moves when it is told to."""

    def __init__(self) -> None:
        self.now = datetime(2026, 2, 24, 9, 30, tzinfo=ZoneInfo("Europe/Berlin"))

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def timed(tmp_path: Path, clock: Clock) -> Iterator[Memory]:
    root = tmp_path / "timed"
    (root / "memory").mkdir(parents=True)
    for name in ("AGENTS.md", "SOUL.md", "MEMORY.md"):
        (root / name).write_text(f"# {name}\n\nWork well.\n")
    (root / "HEARTBEAT.md").write_text("- look at the mail\n")
    with Memory.open(
        root,
        state_dir=tmp_path / "state",
        provider="none",
        clock=clock,
        overrides={"agents.defaults.userTimezone": "Europe/Berlin"},
        background=False,
    ) as opened:
        opened.sync()
        yield opened


def test_the_prompt_is_the_same_bytes_all_day_unless_it_tells_the_time(
    timed: Memory, clock: Clock
) -> None:
    morning, told = timed.prompt(), timed.prompt(time=True)
    clock.now = clock.now.replace(hour=23, minute=59)
    assert timed.prompt().text.encode() == morning.text.encode()
    assert "| today: 2026-02-24 (Tuesday, Europe/Berlin) |" in morning.text
    assert told.text == f"{morning.text} | time: 09:30"
    assert timed.prompt(time=True).text == f"{morning.text} | time: 23:59"


def test_the_stable_part_is_the_same_bytes_on_the_next_day_and_after_a_note(
    timed: Memory, clock: Clock
) -> None:
    before = timed.prompt(append=True, time=True)
    assert before.text.startswith(before.stable_text) and "Work well." in before.stable_text
    timed.append("We chose PostgreSQL for billing.")
    clock.now = datetime(2026, 2, 25, 0, 1, tzinfo=ZoneInfo("Europe/Berlin"))
    after = timed.prompt(append=True, time=True)
    assert after.stable_text.encode() == before.stable_text.encode()
    assert after.text != before.text and after.text.endswith("| time: 00:01")
    assert "(Wednesday, Europe/Berlin)" in after.text


def test_a_host_chooses_the_mode_and_the_time(timed: Memory) -> None:
    def started(**options: Any) -> str:
        host = HostOptions(**options)
        return timed.conversation("agent:main:main", host_options=host).start()

    assert started() == timed.prompt("agent:main:main").text
    assert started(prompt_time=True).endswith("| time: 09:30")
    minimal = started(prompt_mode="minimal")
    assert "## Memory Recall" not in minimal and "# Now" not in minimal
    assert minimal == timed.prompt("agent:main:main", mode="minimal").text
    assert "Work well." in minimal and "today: 2026-02-24" in minimal
    assert started(prompt_mode="none") == ""


def test_an_unknown_mode_is_refused_in_one_sentence(timed: Memory) -> None:
    with pytest.raises(ClawmarkError, match="There is no prompt mode 'tiny'") as raised:
        timed.prompt(mode="tiny")
    assert raised.value.hint == "Use full, minimal, none."


def test_the_command_has_the_modes_and_the_time(tmp_path: Path) -> None:
    place = new_place(tmp_path)
    assert place.run("prompt", "--mode", "none", "--json").json()["text"] == ""
    minimal = place.run("prompt", "--mode", "minimal", "--time", "--json").json()
    assert [section["name"] for section in minimal["sections"]][-1] == "runtime"
    assert "## Memory Recall" not in minimal["text"]
    assert re.search(r" \| time: [0-2][0-9]:[0-5][0-9]\Z", minimal["text"])
    wrong = place.run("prompt", "--mode", "tiny")
    assert wrong.code == 2 and says_one_clear_thing(wrong)
