"""Transcripts as a source: found, cited, read, appended to at small cost, and never with a secret
in the index.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw
import pytest
from hostile import SHARED

from clawmark import Memory
from clawmark.engine.sync.scan import SyncRequest
from clawmark.engine.sync.transcripts import Work, apply_transcripts
from clawmark.model.errors import PathDenied, WorkspaceError
from clawmark.model.values import FileRow
from clawmark.testing import HashingEmbedder

SOURCES: dict[str, object] = {"memorySearch.sources": ["memory", "sessions"]}


class Place:
    """A workspace and its state folder, with transcripts."""

    def __init__(self, folder: Path) -> None:
        self.workspace, self.state = folder / "agent", folder / "state"
        self.folder = self.state / "agents" / "main" / "sessions"
        self.workspace.mkdir()
        self.folder.mkdir(parents=True)

    def open(self, **more: Any) -> Memory:
        options: dict[str, Any] = {
            "embedder": HashingEmbedder(),
            "overrides": SOURCES,
            "background": False,
        }
        return Memory.open(self.workspace, state_dir=self.state, **(options | more))

    def say(self, name: str, *texts: str, day: str = "2026-02-24", end: str = "\n") -> Path:
        file = self.folder / name
        with file.open("ab") as stream:
            for number, text in enumerate(texts):
                role = "assistant" if number % 2 else "user"
                message = {"role": role, "content": [{"type": "text", "text": text}]}
                record = {
                    "type": "message",
                    "timestamp": f"{day}T10:{number % 60:02}:00.000Z",
                    "message": message,
                }
                stream.write(json.dumps(record).encode() + end.encode())
        return file


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def rows(memory: Memory, path: str) -> list[tuple[object, ...]]:
    with memory._builtin.parts.store.snapshot() as reader:
        return [chunk[3:] for chunk in reader.chunks_of(path)]


def built(memory: Memory) -> dict[str, FileRow]:
    with memory._builtin.parts.store.snapshot() as reader:
        return reader.files(which="rebuilt")


def test_what_was_said_is_found_with_its_source_line_and_day(place: Place) -> None:
    place.say("s1.jsonl", "Which database for billing?", "We chose PostgreSQL for billing.")
    with place.open() as memory:
        (hit,) = memory.search("PostgreSQL billing").hits
        assert (hit.path, hit.source, hit.start_line, hit.end_line, hit.date) == (
            "sessions/s1.jsonl",
            "sessions",
            1,
            2,
            "2026-02-24",
        )
        assert hit.snippet == (
            "User (2026-02-24 10:00Z): Which database for billing?\n"
            "Assistant (2026-02-24 10:01Z): We chose PostgreSQL for billing."
        )
        assert memory.read(hit.citation).text == hit.snippet
        assert [hit.path for hit in memory.search("tuesday 24th february billing").hits] == [
            "sessions/s1.jsonl"
        ]


def test_transcripts_are_not_a_source_unless_they_are_named(place: Place) -> None:
    place.say("s1.jsonl", "We chose PostgreSQL.")
    with place.open(overrides={}) as memory:
        assert memory.search("PostgreSQL").hits == ()
        with pytest.raises(PathDenied) as error:
            memory.read("sessions/s1.jsonl")
        assert "memorySearch.sources" in error.value.hint
        assert [one.status for one in memory.sessions()] == ["not a source"]


def test_a_source_that_is_taken_away_is_not_found_any_more(place: Place) -> None:
    place.say("s1.jsonl", "We chose PostgreSQL.")
    (place.workspace / "MEMORY.md").write_text("Redis holds sessions.\n", encoding="utf-8")
    with place.open() as memory:
        assert memory.sync().added == 2
    with place.open(overrides={"memorySearch.sources": ["sessions"]}) as memory:
        assert memory.search("PostgreSQL").hits and not memory.search("Redis").hits
    with place.open(overrides={}) as memory:
        assert memory.search("Redis").hits and not memory.search("PostgreSQL").hits


def test_an_append_is_read_from_where_the_index_stands(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """20 MB with a question at every megabyte and tool output between: a kilobyte more costs a few
    kilobytes to read.
    """
    file = place.say("long.jsonl", "begin")
    noise = (
        json.dumps(
            {"type": "message", "message": {"role": "toolResult", "content": "x" * 100_000}}
        ).encode()
        + b"\n"
    )
    for megabyte in range(20):
        place.say("long.jsonl", f"question {megabyte} about subject {megabyte * 7}")
        with file.open("ab") as stream:
            stream.write(noise * 10)
    read = {"bytes": 0}
    real = os.pread

    def counting(fd: int, count: int, offset: int) -> bytes:
        data = real(fd, count, offset)
        read["bytes"] += len(data)
        return data

    with place.open() as memory:
        memory.sync()
        assert file.stat().st_size > 20_000_000
        place.say("long.jsonl", "the heron stands in the reeds " * 30)
        monkeypatch.setattr(os, "pread", counting)
        report = memory.sync()
        monkeypatch.undo()
        assert (report.updated, report.due_files) == (1, 0)
        # Twice what was appended, the lines of the chunk that was not full, and the two ends of the
        # file.
        assert 0 < read["bytes"] < 60_000
        assert memory.search("heron reeds").hits[0].path == "sessions/long.jsonl"
        assert memory.verify().problems == ()


def test_only_the_last_chunk_of_a_grown_transcript_is_replaced(place: Place) -> None:
    place.say(
        "s.jsonl",
        *(
            f"message number {number} about cedar and amber and birch trees in autumn"
            for number in range(200)
        ),
    )
    with place.open() as memory:
        first = memory.sync()
        with memory._builtin.parts.store.snapshot() as reader:
            before = {chunk.key for chunk in reader.chunks_of("sessions/s.jsonl")}
        place.say("s.jsonl", "and a heron")
        second = memory.sync()
        with memory._builtin.parts.store.snapshot() as reader:
            after = {chunk.key for chunk in reader.chunks_of("sessions/s.jsonl")}
    assert first.chunks > 10
    assert len(before - after) == 1
    assert (second.chunks, second.embedded) == (1, 1)


def test_a_line_that_is_being_written_is_not_lost_when_it_is_complete(place: Place) -> None:
    file = place.say("s.jsonl", "the amber is kept")
    before = file.read_bytes()
    line = (
        json.dumps(
            {"type": "message", "message": {"role": "user", "content": "the birch café"}}
        ).encode()
        + b"\n"
    )
    with place.open() as memory:
        for end in [*range(0, len(line), 20), *range(len(line) - 3, len(line) + 1)]:
            file.write_bytes(before + line[:end])
            memory.sync()
            assert memory.plan()[0].due == 0
            # A last line that reads as a whole message is one, with or without its end.
            assert bool(memory.search("birch").hits) == (end >= len(line) - 1)
            assert memory.verify().problems == ()
        assert memory.search("amber").hits


def test_an_archived_transcript_keeps_its_text_and_is_not_embedded_again(place: Place) -> None:
    file = place.say("s.jsonl", *(f"message {number} about amber" for number in range(100)))
    with place.open() as memory:
        first = memory.sync()
        file.rename(place.folder / "s.jsonl.reset.2026-02-24T10-03-00.123Z")
        second = memory.sync()
        assert (second.added, second.deleted, second.embedded) == (1, 1, 0)
        assert second.reused == first.embedded > 0
        (hit, *_) = memory.search("message 42 amber").hits
        assert hit.path == "sessions/s.jsonl.reset.2026-02-24T10-03-00.123Z"
        assert memory.read(hit.citation).text


@pytest.mark.parametrize(
    "change", ["shrunk", "replaced", "edited at the beginning", "edited in the middle"]
)
def test_a_replaced_transcript_is_indexed_again(change: str, place: Place) -> None:
    file = place.say(
        "s.jsonl", *(f"message {number} about amber and birch and cedar" for number in range(400))
    )
    with place.open() as memory:
        memory.sync()
        data = file.read_bytes()
        if change == "shrunk":
            file.write_bytes(data[: len(data) // 3])
        elif change == "replaced":
            new = place.folder / "new"
            new.write_bytes(data.replace(b"message 7 ", b"message 7h ") + data[:1000])
            new.rename(file)
        else:
            at = 100 if "beginning" in change else len(data) // 2
            where = data.index(b"amber", at)
            file.write_bytes(data[:where] + b"ember" + data[where + 5 :])
        assert memory.sync().updated == 1
        assert memory.verify().problems == ()


def test_a_change_of_the_stat_changes_no_rows(place: Place) -> None:
    file = place.say("s.jsonl", "amber")
    with place.open() as memory:
        memory.sync()
        before = rows(memory, "sessions/s.jsonl")
        file.chmod(0o640)
        report = memory.sync()
        assert (report.touched, report.updated, report.chunks) == (1, 0, 0)
        assert rows(memory, "sessions/s.jsonl") == before
        assert memory.plan()[0].due == 0


def test_a_sync_without_time_stops_between_transactions_and_the_next_goes_on(place: Place) -> None:
    place.say(
        "s.jsonl", *(f"message {number} " + "amber birch cedar " * 20 for number in range(1500))
    )
    with place.open() as memory:
        backend = memory._builtin
        report = backend.run_sync(SyncRequest(seconds=0.0))
        assert report.due_files == 1 and report.chunks > 0
        assert memory.plan()[0].due == 1
        assert memory.search("message 3 amber", freshen=False).hits
        rounds = 1
        while backend.run_sync(SyncRequest(seconds=0.0)).due_files:
            rounds += 1
        assert rounds > 2
        assert memory.plan()[0].due == 0
        assert memory.sync().due_files == 0
        assert memory.verify().problems == ()


def test_a_rebuild_takes_transcripts_along_and_goes_on_after_it_was_stopped(place: Place) -> None:
    place.say(
        "s.jsonl", *(f"message {number} " + "amber birch cedar " * 20 for number in range(1500))
    )
    (place.workspace / "MEMORY.md").write_text("Redis holds sessions.\n", encoding="utf-8")
    with place.open() as memory:
        memory.sync()
        before = rows(memory, "sessions/s.jsonl")
        stopped = memory._builtin.run_sync(
            SyncRequest(force=True, cancelled=lambda: "sessions/s.jsonl" in built(memory))
        )
        assert stopped.due_files == 1
        assert built(memory)["sessions/s.jsonl"].chunks < len(before)
        assert rows(memory, "sessions/s.jsonl") == before
        place.say("s.jsonl", "a heron meanwhile")
        assert memory.search("heron").hits
        report = memory.sync(force=True)
        assert report.generation == 2 and report.due_files == 0
        assert [row for row in rows(memory, "sessions/s.jsonl") if row not in before]
        assert memory.search("heron").hits
        assert memory.verify().problems == ()


def test_a_watchers_sync_waits_for_enough_growth(place: Place) -> None:
    place.say("s.jsonl", *("amber" for _ in range(50)))
    with place.open() as memory:
        assert memory._builtin.run_sync(SyncRequest(deltas=True)).added == 1
        place.say("s.jsonl", "a heron")
        waiting = memory._builtin.run_sync(SyncRequest(deltas=True))
        assert (waiting.updated, waiting.due_files) == (0, 1)
        assert memory.search("heron", freshen=False).hits == ()
    with place.open() as memory:  # another process knows as much
        place.say("s.jsonl", *("birch" for _ in range(48)))
        assert memory._builtin.run_sync(SyncRequest(deltas=True)).due_files == 1
        place.say("s.jsonl", "the fiftieth")
        assert memory._builtin.run_sync(SyncRequest(deltas=True)).updated == 1
        place.say("s.jsonl", "a stork " * 13_000)
        assert memory._builtin.run_sync(SyncRequest(deltas=True)).updated == 1
        place.say("s.jsonl", "a last one")
        assert memory.sync().updated == 1


def test_every_chunk_of_a_transcript_can_be_read_back_by_its_citation(place: Place) -> None:
    texts = [f"line {number}\nand {'more ' * (number % 40)}" for number in range(120)]
    place.say("s.jsonl", *texts, "a very long message. " * 300, "after")
    with place.open() as memory:
        memory.sync()
        with memory._builtin.parts.store.snapshot() as reader:
            chunks = reader.chunks_of("sessions/s.jsonl")
        assert len(chunks) > 10
        for chunk in chunks:
            got = memory.read(f"sessions/s.jsonl#L{chunk.start_line}-L{chunk.end_line}")
            is_piece = len(got.text) > len(chunk.text)
            assert got.text == chunk.text or (is_piece and chunk.start_line == chunk.end_line)
            assert (got.start, got.lines) == (
                chunk.start_line,
                chunk.end_line - chunk.start_line + 1,
            )


def test_the_tool_opens_a_citation_and_goes_on(place: Place) -> None:
    place.say("s.jsonl", *(f"message {number}" for number in range(300)))
    # Messages of a session that is not known to be private are quoted.
    known = {"agent:main:main": {"sessionId": "s"}}
    (place.folder / "sessions.json").write_text(json.dumps(known), encoding="utf-8")
    with place.open() as memory:
        _, get = memory.tools()[:2]
        first = get.call({"path": "sessions/s.jsonl"})
        assert first["truncated"] is True and first["nextFrom"] == 121
        second = get.call({"path": "sessions/s.jsonl", "from": 121, "lines": 2})
        assert (
            second["text"]
            == "User (2026-02-24 10:00Z): message 120\nAssistant (2026-02-24 10:01Z): message 121"
        )
        absent = {"status": "not_found", "text": "", "path": "sessions/absent.jsonl"}
        assert get.call({"path": "sessions/absent.jsonl"}) == absent
        assert "error" in get.call({"path": "sessions/../../agents/other/sessions/x.jsonl"})


def test_old_talk_fades_by_the_day_it_was_said(place: Place) -> None:
    place.say("old.jsonl", "the heron stands in the reeds", day="2025-02-24")
    place.say("new.jsonl", "the heron stands in the reeds", day="2026-02-23")
    settings = SOURCES | {
        "memorySearch.query.hybrid.temporalDecay.enabled": True,
        "memorySearch.query.minScore": 0,
    }
    with place.open(overrides=settings, clock=lambda: datetime(2026, 2, 24)) as memory:
        new, old = memory.search("heron reeds").hits
        assert (new.path, old.path) == ("sessions/new.jsonl", "sessions/old.jsonl")
        assert old.score < new.score / 10


def test_other_tools_transcripts_are_found_by_their_path(place: Place, tmp_path: Path) -> None:
    project = tmp_path / "claude" / "-home-me"
    project.mkdir(parents=True)
    line = {
        "type": "user",
        "timestamp": "2026-02-24T10:00:00Z",
        "message": {"role": "user", "content": "a heron"},
    }
    (project / "7f.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    settings = SOURCES | {"memorySearch.sessions.paths": [str(tmp_path / "claude")]}
    with place.open(overrides=settings) as memory:
        (hit,) = memory.search("heron").hits
        assert hit.path == "../claude/-home-me/7f.jsonl"
        assert memory.read(hit.citation).text == "User (2026-02-24 10:00Z): a heron"
        assert [(one.kind, one.status) for one in memory.sessions()] == [("Claude Code", "indexed")]


def test_transcripts_are_listed_and_shown(place: Place) -> None:
    place.say("a.jsonl", "amber", "birch", day="2026-02-20")
    place.say("b.jsonl", "cedar")
    with place.open() as memory:
        memory.sync()
        place.say("b.jsonl", "delta")
        listed = [(one.path, one.messages, one.first[:10], one.status) for one in memory.sessions()]
        assert listed == [
            ("sessions/b.jsonl", 2, "2026-02-24", "due"),
            ("sessions/a.jsonl", 2, "2026-02-20", "indexed"),
        ]
        for name in ("a", "a.jsonl", "sessions/a.jsonl"):
            path, said = memory.transcript(name)
            assert (path, [one.text for one in said]) == ("sessions/a.jsonl", ["amber", "birch"])
        for wrong in ("", "nobody", "../a"):
            with pytest.raises(WorkspaceError):
                memory.transcript(wrong)


def tables(memory: Memory) -> Iterator[str]:
    """Everything the index file holds, row by row and as bytes."""
    memory.close()
    path = memory.places.index_path
    database = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    for (name,) in database.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table'"
    ).fetchall():
        for row in database.execute(f"SELECT * FROM {name}"):
            yield repr(row)
    database.close()
    yield Path(path).read_bytes().decode("latin-1")


def test_a_configured_key_is_masked_by_its_value(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SERVER_KEY", "herons-are-grey-birds")
    place.say("s.jsonl", "I typed herons-are-grey-birds into the box, and the amber too")
    settings = SOURCES | {"memorySearch.remote.apiKey": "${MY_SERVER_KEY}"}
    memory = place.open(overrides=settings)
    memory.sync()
    assert memory.read("sessions/s.jsonl").text.count("[redacted:key]") == 1
    assert memory.search("amber").hits
    assert not [row for row in tables(memory) if "herons-are-grey" in row]
    assert b"herons-are-grey-birds" in (place.folder / "s.jsonl").read_bytes()


@pytest.mark.skipif(
    not (SHARED / "data" / "pi_sessions").is_dir(),
    reason="the shared folder with real sessions is not here",
)
@pytest.mark.parametrize("name", ["before-compaction", "large-session"])
def test_real_sessions_are_indexed_and_proven(name: str, place: Place) -> None:
    packed = SHARED / "data" / "pi_sessions" / f"{name}.jsonl.gz"
    with gzip.open(packed) as stream:
        data = stream.read()
    file = place.folder / f"{name}.jsonl"
    file.write_bytes(data[: len(data) // 2])
    with place.open() as memory:
        memory.sync()
        file.write_bytes(data)
        assert memory.sync().updated == 1
        assert memory.verify().problems == ()
        (listed,) = memory.sessions()
        assert listed.kind == "OpenClaw" and listed.messages > 250
        assert memory.search("chalk theme tokens refactor session").hits
        path, said = memory.transcript(name)
        lines = data.decode("utf-8").split("\n")
        for one in said[::17]:
            record = json.loads(lines[one.line - 1])
            assert record["message"]["role"] == one.role
            assert one.time[:16] == record["timestamp"][:16]
            assert one.text.split()[0] in json.dumps(record, ensure_ascii=False)
        assert path == f"sessions/{name}.jsonl"


def test_two_that_index_one_transcript_at_once_finish_it_together(place: Place) -> None:
    """Each goes on from where the other has got to; nothing is stored twice and nothing is left."""
    place.say(
        "s.jsonl", *(f"message {number} " + "amber birch cedar " * 20 for number in range(1500))
    )
    with place.open() as one, place.open() as other:
        parts = one._builtin.parts
        assert parts.workspace.sessions is not None
        (state,) = parts.workspace.sessions.scan().files
        in_between = iter(range(100))

        def meanwhile() -> bool:
            """Asked after each transaction of the first one: the second one stores a part, too."""
            if next(in_between) % 2 == 0:
                other._builtin.run_sync(SyncRequest(seconds=0.0))
            return False

        work = Work(
            sessions=parts.workspace.sessions,
            store=parts.store,
            chunker=parts.sync.chunker,
            now_ns=lambda: 1,
            out_of_time=meanwhile,
            slice_chunks=30,
        )
        report = apply_transcripts([state], {}, work, lambda _: None)
        assert (report.due_files, report.failures) == (0, ())
        assert one.verify().problems == ()
        assert one.plan()[0].due == 0
