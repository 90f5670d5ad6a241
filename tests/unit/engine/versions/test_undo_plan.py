"""Which write is taken back, and what the file is without it."""

from __future__ import annotations

from clawmark.engine.versions.undo_plan import (
    CannotUndo,
    NotWritten,
    PutBack,
    candidates,
    decide,
    digest_of,
)
from clawmark.model.provenance import Actor, BytesWritten, JournalRecord, Kind, Origin

NOTE = "memory/note.md"


def record(
    name: str,
    *,
    actor: Actor = "agent",
    kind: Kind = "tool",
    done: bool = True,
    undoes: str = "",
    written: BytesWritten | None = None,
    before: int = -1,
    after: int = -1,
) -> JournalRecord:
    return JournalRecord(
        id=name,
        time="2026-11-16T12:00:00+00:00",
        origin=Origin(actor, kind, "agent"),
        path=NOTE,
        entries=(),
        before=before,
        after=after,
        done=done,
        written=written or BytesWritten(),
        undoes=undoes,
    )


def appended(before: bytes, entry: bytes, lead: bytes = b"", *, done: bool = True) -> JournalRecord:
    data = lead + entry
    known = BytesWritten(entry=digest_of(entry), size=len(entry))
    if not done:
        return record("a", done=False, written=known)
    return record(
        "a",
        before=len(before),
        after=len(before) + len(data),
        written=known._replace(digest=digest_of(data), lead=len(lead)),
    )


def no_text(_: str) -> bytes | None:
    return None


def test_only_writes_of_agents_that_were_not_taken_back_are_candidates() -> None:
    records = [
        record("tool"),
        record("import", actor="import", kind="import"),
        record("user", actor="user", kind="remember"),
        record("hand", actor="user", kind="edited"),
        record("taken"),
        record("undo", actor="user", kind="undo", undoes="taken"),
        record("stopped", actor="user", kind="undo", undoes="tool", done=False),
    ]
    assert [one.id for one in candidates(records)] == ["import", "tool"]
    assert [one.id for one in candidates(records, anyone=True)] == ["user", "import", "tool"]
    assert [one.id for one in candidates(records, write="us")] == ["user"]


def test_an_append_that_nothing_followed_is_cut_off_with_the_line_end_before_it() -> None:
    one = appended(b"open", b"- x\n", b"\n")
    assert decide(one, b"open\n- x\n", no_text) == PutBack(b"open")
    assert decide(one, b"OPEN\n- x\n", no_text) == PutBack(b"OPEN"), "the text before has changed"


def test_an_entry_is_removed_where_it_stands_now() -> None:
    one = appended(b"# Day\n", b"- x\n- y\n")
    assert decide(one, b"- x\n- y\nmore", no_text) == PutBack(b"more")
    assert decide(one, b"# Day\n- x\n- y\n- x\n- y\n", no_text) == PutBack(b"# Day\n- x\n- y\n")
    assert isinstance(decide(one, b"> - x\n- y\n", no_text), CannotUndo), "not a whole line"
    assert isinstance(decide(one, b"- x\r\n- y\r\n", no_text), CannotUndo)
    assert isinstance(decide(one, b"", no_text), CannotUndo)
    assert isinstance(decide(one, None, no_text), CannotUndo)


def test_an_entry_that_moved_and_stands_there_twice_is_left_alone() -> None:
    one = appended(b"# Day\n\n", b"- x\n")
    refused = decide(one, b"- x\n- x\n- z\n", no_text)
    assert isinstance(refused, CannotUndo) and "several times" in refused.reason


def test_an_unfinished_append_is_taken_back_only_if_it_is_there() -> None:
    one = appended(b"", b"- x\n", done=False)
    assert decide(one, b"# Day\n- x\n", no_text) == PutBack(b"# Day\n")
    assert decide(one, b"# Day\n", no_text) == NotWritten()


def test_a_replaced_text_is_looked_up_by_its_hash() -> None:
    texts = {digest_of(b"old"): b"old"}
    one = record("r", written=BytesWritten(base=digest_of(b"old"), digest=digest_of(b"new")))
    assert decide(one, b"new", texts.get) == PutBack(b"old")
    assert isinstance(decide(one, b"newer", texts.get), CannotUndo)
    assert isinstance(decide(one, b"new", no_text), CannotUndo)
    new_file = record("n", written=BytesWritten(digest=digest_of(b"new")))
    assert decide(new_file, b"new", no_text) == PutBack(None)
    empty = record("e", written=BytesWritten(base=digest_of(b""), digest=digest_of(b"new")))
    assert decide(empty, b"new", no_text) == PutBack(b"")


def test_a_record_of_an_older_journal_cannot_be_taken_back() -> None:
    refused = decide(record("old", before=0, after=5), b"- one", no_text)
    assert isinstance(refused, CannotUndo) and "does not say which bytes" in refused.reason
