"""When sessions were flushed, what failed since, and when it is tried again."""

from __future__ import annotations

from pathlib import Path

from clawmark.agent.flush.times import flush_times, latest_flush, read_flush_times
from clawmark.agent.session.session import SessionEntry, SessionStore
from clawmark.model.reports import FlushTimes

DAY = 1_800_000_000_000
"""2027-01-15T08:00:00Z."""


def entry(**fields: int) -> SessionEntry:
    return SessionEntry("main", session_id="one")._replace(**fields)  # type: ignore[arg-type]


def test_a_session_that_was_never_flushed_has_no_times() -> None:
    assert flush_times(entry()) is None


def test_a_flushed_session_has_a_time_and_no_failures() -> None:
    assert flush_times(entry(memory_flush_at=DAY)) == FlushTimes(
        last="2027-01-15T08:00:00Z", failures=0, failed="", next_attempt=""
    )


def test_a_failed_flush_is_tried_again_after_a_pause_that_doubles() -> None:
    def times(failures: int) -> FlushTimes | None:
        return flush_times(entry(memory_flush_failed_at=DAY, memory_flush_failures=failures))

    assert times(1) == FlushTimes(
        last="",
        failures=1,
        failed="2027-01-15T08:00:00Z",
        next_attempt="2027-01-15T08:01:00Z",
    )
    third = times(3)
    assert third is not None and third.next_attempt == "2027-01-15T08:04:00Z"


def test_a_time_out_of_range_is_left_out() -> None:
    times = flush_times(entry(memory_flush_at=10**18))
    assert times is not None and times.last == ""


def test_all_sessions_together_have_the_latest_flush_and_the_next_attempt() -> None:
    first = FlushTimes(last="2027-01-15T08:00:00Z", failures=0, failed="", next_attempt="")
    other = FlushTimes(last="", failures=2, failed="2027-01-16", next_attempt="2027-01-17")
    assert latest_flush({"a": first, "b": other}) == FlushTimes(
        last=first.last, failures=2, failed="2027-01-16", next_attempt="2027-01-17"
    )
    assert latest_flush({}) is None


def test_sessions_of_every_folder_are_found_by_the_name_of_their_transcript(
    tmp_path: Path,
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        store = SessionStore(str(tmp_path / name))
        store.update("main", session_id=name, memory_flush_at=DAY)
        store.update("new", session_id=f"new-{name}")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "sessions.json").write_text("{", encoding="utf-8")
    folders = [str(tmp_path / name) for name in ("a", "missing", "damaged", "b")]
    assert list(read_flush_times(folders)) == ["a.jsonl", "b.jsonl"]
