"""What a session sees: by its kind, within its limits, in the same order every time, and fresh."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from clawmark.agent.prompt.context import Context, ContextReader, Limits
from clawmark.text.transcripts.session_keys import SessionKind

TODAY = "2026-02-24"
EVERY_FILE = (
    "AGENTS.md",
    "SOUL.md",
    "TOOLS.md",
    "IDENTITY.md",
    "USER.md",
    "HEARTBEAT.md",
    "BOOTSTRAP.md",
    "MEMORY.md",
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in EVERY_FILE:
        (tmp_path / name).write_text(f"The text of {name}.\n")
    (tmp_path / "memory").mkdir()
    for name in (
        f"{TODAY}.md",
        "2026-02-23.md",
        "2026-02-22.md",
        f"{TODAY}-vendor.md",
        "notes.md",
        "2026-02-245.md",
    ):
        (tmp_path / "memory" / name).write_text(f"- log {name}\n")
    return tmp_path


def seen(root: Path, kind: SessionKind, limits: Limits | None = None) -> Context:
    return ContextReader(str(root)).read(kind, TODAY, limits)


def names(context: Context) -> list[str]:
    return [file.name for file in context.files]


SHARED = ["AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md"]


@pytest.mark.parametrize(
    ("kind", "files"),
    [
        ("main", [*SHARED, "USER.md", "BOOTSTRAP.md", "MEMORY.md", "HEARTBEAT.md"]),
        ("direct", [*SHARED, "USER.md", "BOOTSTRAP.md", "MEMORY.md", "HEARTBEAT.md"]),
        ("group", SHARED),
        ("channel", SHARED),
        ("cron", SHARED),
        ("unknown", SHARED),
        ("heartbeat", [*SHARED, "HEARTBEAT.md"]),
        ("subagent", ["AGENTS.md", "TOOLS.md"]),
    ],
)
def test_each_kind_sees_its_files_in_their_order(
    root: Path, kind: SessionKind, files: list[str]
) -> None:
    context = seen(root, kind)
    assert names(context) == files
    assert [log.name for log in context.logs] == (
        ["memory/2026-02-23.md", f"memory/{TODAY}-vendor.md", f"memory/{TODAY}.md"]
        if kind in ("main", "direct")
        else []
    )
    assert context.notices == ()


def test_missing_files_take_no_room(tmp_path: Path) -> None:
    assert seen(tmp_path, "main") == Context(kind="main", files=(), logs=(), notices=())
    gone = seen(tmp_path / "nowhere", "main")
    assert gone.files == () and "cannot be opened" in gone.notices[0]


def test_both_memory_files_are_seen_when_they_are_two(root: Path) -> None:
    (root / "memory.md").write_text("An older one.\n")
    assert names(seen(root, "main"))[-3:-1] == ["MEMORY.md", "memory.md"]


def test_one_memory_file_with_two_names_is_seen_once(root: Path) -> None:
    os.link(root / "MEMORY.md", root / "memory.md")
    assert "memory.md" not in names(seen(root, "main"))


@pytest.mark.parametrize(
    "text",
    ["", "\n \n", "# HEARTBEAT.md\n<!-- nothing\nyet -->\n\n## Later\n", "<!-- never closed"],
)
def test_a_heartbeat_list_without_anything_to_do_is_left_out(root: Path, text: str) -> None:
    (root / "HEARTBEAT.md").write_text(text)
    assert "HEARTBEAT.md" not in names(seen(root, "heartbeat"))


def test_file_that_cannot_be_shown_gets_a_notice(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "secret.md"
    outside.write_text("the secret")
    (root / "USER.md").unlink()
    (root / "USER.md").symlink_to(outside)
    (root / "SOUL.md").unlink()
    os.mkfifo(root / "SOUL.md")
    (root / "TOOLS.md").write_bytes(b"x" * (2 * 1024 * 1024 + 1))
    (root / "IDENTITY.md").write_bytes(b"\x89PNG\r\n" + bytes(2000))
    context = seen(root, "main")
    assert names(context) == ["AGENTS.md", "BOOTSTRAP.md", "MEMORY.md", "HEARTBEAT.md"]
    said = "\n".join(context.notices)
    assert "SOUL.md is a pipe, not a file." in said
    assert "TOOLS.md has 2,097,153 bytes" in said
    assert "IDENTITY.md looks binary." in said
    assert "USER.md is a link, and links are never followed." in said
    assert "the secret" not in repr(context)
    # A notice is only for those who would see the file.
    assert "USER.md" not in repr(seen(root, "group"))


def test_a_memory_folder_that_is_a_link_is_not_followed(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (root / "memory").rename(outside / "memory")
    (root / "memory").symlink_to(outside / "memory")
    context = seen(root, "main")
    assert context.logs == ()
    assert "memory cannot be opened" in context.notices[0]


def test_long_file_keeps_its_newest_entries_and_gets_a_notice(root: Path) -> None:
    (root / "MEMORY.md").write_text(
        "# Facts\n\n" + "".join(f"- fact {number}\n" for number in range(5000))
    )
    file = next(file for file in seen(root, "main").files if file.name == "MEMORY.md")
    assert len(file.text) <= 20_000 and file.is_cut
    assert file.text.startswith("# Facts\n\n[… lines 3-") and file.text.endswith("- fact 4999")
    assert " of MEMORY.md left out here" in file.text


def test_all_files_together_stay_within_the_total(root: Path) -> None:
    for name in EVERY_FILE:
        (root / name).write_text("- entry of this file\n" * 1000)
    context = seen(root, "main", Limits(per_file=5000, total=12_000))
    assert sum(len(file.text) for file in context.files) <= 12_000
    assert names(context) == ["AGENTS.md", "SOUL.md", "TOOLS.md"]
    assert (
        "IDENTITY.md is left out: there is room for 12,000 characters of all files."
        in context.notices
    )


def test_logs_stay_within_their_budget_and_the_newest_come_first(root: Path) -> None:
    for day in (TODAY, "2026-02-23"):
        (root / "memory" / f"{day}.md").write_text(
            f"# {day}\n\n" + f"- something happened on {day}\n" * 200
        )
    context = seen(root, "main", Limits(per_log=600, all_logs=1000))
    assert sum(len(log.text) for log in context.logs) <= 1000
    assert {log.name for log in context.logs} >= {f"memory/{TODAY}.md", f"memory/{TODAY}-vendor.md"}
    assert all(log.name in log.text for log in context.logs if log.is_cut)
    few = seen(root, "main", Limits(per_log=600, all_logs=600))
    assert (
        f"memory/{TODAY}.md"
        in {log.name for log in few.logs}
        <= {f"memory/{TODAY}.md", f"memory/{TODAY}-vendor.md"}
    )
    assert any("memory/2026-02-23.md is left out" in notice for notice in few.notices)


def test_logs_can_be_switched_off_and_reach_further_back(root: Path) -> None:
    assert seen(root, "main", Limits(log_days=0)).logs == ()
    assert seen(root, "main", Limits(log_days=3)).logs[0].name == "memory/2026-02-22.md"
    assert ContextReader(str(root)).read("main", "not a day").logs == ()


def test_invisible_characters_are_written_out_and_cannot_swell_beyond_the_limit(root: Path) -> None:
    (root / "AGENTS.md").write_text("plain " + chr(0xE0041) * 5000)
    file = seen(root, "group").files[0]
    assert file.text.startswith(r"plain \u{e0041}") and len(file.text) <= 20_000


def test_a_reader_sees_every_change_and_gives_the_same_bytes_without_one(root: Path) -> None:
    reader = ContextReader(str(root))
    assert reader.read("main", TODAY) == reader.read("main", TODAY)
    (root / "MEMORY.md").write_text("Another text")
    assert "Another text" in repr(reader.read("main", TODAY))
    size = os.stat(root / "MEMORY.md").st_size
    (root / "MEMORY.md").write_text(
        "A third text"[:size]
    )  # the same length, within the clock's grain
    assert "A third text" in repr(reader.read("main", TODAY))
    (root / "MEMORY.md").unlink()
    assert "A third text" not in repr(reader.read("main", TODAY))


def test_a_file_that_did_not_change_is_not_read_again(root: Path) -> None:
    reader = ContextReader(str(root), now_ns=lambda: time.time_ns() + 10**10)
    first, second = reader.read("main", TODAY), reader.read("main", TODAY)
    assert all(one is other for one, other in zip(first.files, second.files, strict=True))
    (root / "USER.md").write_text("Another text")
    third = reader.read("main", TODAY)
    assert [
        one.name for one, other in zip(second.files, third.files, strict=True) if one is not other
    ] == ["USER.md"]
