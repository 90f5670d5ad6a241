"""`clawmark search --as-of` and `clawmark get --as-of`, in processes of their own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from commands import Place, new_place

from clawmark.composition import history_folder
from clawmark.config.paths import resolve_places
from clawmark.history.history import History
from clawmark.workspace import Workspace

NOW = datetime.now().astimezone()
EARLIER = NOW - timedelta(days=10)
DAY = (EARLIER + timedelta(days=1)).date().isoformat()
LAUNCH = "# Memory\n\n- The launch is in {}.\n- Anna likes tea.\n"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A workspace whose launch moved from February to March."""
    made = new_place(tmp_path)
    for moment, month in ((EARLIER, "February"), (NOW - timedelta(days=2), "March")):
        (made.workspace / "MEMORY.md").write_text(LAUNCH.format(month), encoding="utf-8")
        record(made, moment)
    return made


def record(place: Place, moment: datetime) -> None:
    places = resolve_places(str(place.workspace), state_dir=str(place.state), env={})
    history = History(history_folder(places), clock=moment.timestamp)
    files = Workspace(str(place.workspace)).scan().files
    history.record(files, lambda path: (place.workspace / path).read_bytes(), "sync", wait=True)


def test_a_day_is_searched_and_its_citations_are_marked(place: Place) -> None:
    ran = place.run("search", "--as-of", DAY, "when is the launch?")
    assert ran.code == 0, ran.err
    assert f"MEMORY.md#L1-L4  as of {DAY}" in ran.out
    assert "February" in ran.out and "March" not in ran.out
    assert "memory files of version" in ran.out
    now = place.run("search", "when is the launch?")
    assert "March" in now.out and "as of" not in now.out


def test_what_changed_today_and_was_not_recorded_yet_is_searched_and_read(place: Place) -> None:
    text = LAUNCH.format("September")
    (place.workspace / "MEMORY.md").write_text(text, encoding="utf-8")
    for day in (NOW.date().isoformat(), (NOW + timedelta(days=3)).date().isoformat()):
        ran = place.run("search", "--as-of", day, "when is the launch?")
        assert ran.code == 0 and "September" in ran.out and "March" not in ran.out, ran
        assert "September" in place.run("get", "MEMORY.md", "--as-of", day).out
    assert "March" in place.run("search", "--as-of", "1d", "when is the launch?").out


def test_json_names_the_version(place: Place) -> None:
    body = place.run("search", "--as-of", DAY, "--json", "when is the launch?").json()
    assert body["asOf"]["asked"] == DAY and len(body["asOf"]["version"]) == 40
    result = body["results"][0]
    assert result["asOf"] == DAY and "absolutePath" not in result
    plain = place.run("search", "--json", "when is the launch?").json()
    assert "asOf" not in plain and "absolutePath" in plain["results"][0]


def test_a_line_of_a_batch_may_have_its_own_day(place: Place) -> None:
    lines = [{"query": "when is the launch?", "asOf": DAY}, {"query": "when is the launch?"}]
    ran = place.run("search", "--batch", "-", stdin="\n".join(map(json.dumps, lines)))
    first, second = (json.loads(line)["results"][0]["snippet"] for line in ran.out.splitlines())
    assert "February" in first and "March" in second


def test_a_cited_passage_is_printed_as_it_was(place: Place) -> None:
    ran = place.run("get", "MEMORY.md#L3", "--as-of", DAY)
    assert (ran.code, ran.out) == (0, "- The launch is in February.\n")
    gone = place.run("get", "memory/2020-01-01.md", "--as-of", DAY)
    assert gone.code == 3 and f"on {DAY}" in gone.err


@pytest.mark.parametrize(
    ("day", "code", "words"),
    [
        ("2001-01-01", 3, "The history begins on"),
        ("someday", 2, "--as-of must be a day"),
        ("2026-03-01T25:00", 2, "--as-of must be a time"),
    ],
)
def test_a_day_that_cannot_be_answered_gets_one_sentence(
    place: Place, day: str, code: int, words: str
) -> None:
    ran = place.run("search", "--as-of", day, "launch")
    assert ran.code == code and words in ran.err
    assert "Traceback" not in ran.err and not ran.out


def test_without_a_history_the_next_step_is_named(tmp_path: Path) -> None:
    fresh = new_place(tmp_path)
    (fresh.workspace / "MEMORY.md").write_text("- The launch is in May.\n", encoding="utf-8")
    ran = fresh.run("search", "--as-of", "2026-03-01", "launch")
    assert ran.code == 3
    assert "There is no history yet" in ran.err and "clawmark index" in ran.err


def test_a_search_of_the_present_imports_nothing_of_the_history(place: Place) -> None:
    place.run("index")
    script = (
        "import sys; from clawmark.cli import main; code = main(['search', 'launch']); "
        "print([name for name in sys.modules if 'as_of' in name or 'clawmark.history' in name "
        "or 'dulwich' in name]); sys.exit(code)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], env=place.environment(), capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == "[]"


def test_explain_says_what_a_hit_has_replaced(place: Place) -> None:
    ran = place.run("search", "--explain", "when is the launch?")
    until = f"{NOW - timedelta(days=2):%Y-%m-%d %H:%M}"
    assert f'was: "The launch is in February." until {until}' in ran.out
    body = place.run("search", "--explain", "--json", "when is the launch?").json()
    (replaced,) = body["results"][0]["replaced"]
    assert replaced["text"] == "The launch is in February."
    assert datetime.fromisoformat(replaced["until"]) == (NOW - timedelta(days=2)).replace(
        microsecond=0
    )
    for more in ((), ("--explain", "--as-of", DAY)):
        plain = place.run("search", *more, "--json", "when is the launch?").json()
        assert all("replaced" not in result for result in plain["results"])


def test_explain_without_a_history_and_with_a_damaged_one_still_answers(place: Place) -> None:
    places = resolve_places(str(place.workspace), state_dir=str(place.state), env={})
    for file in Path(history_folder(places)).glob("objects/*/*"):
        file.chmod(0o600)
        file.write_bytes(b"damaged")
    ran = place.run("search", "--explain", "when is the launch?")
    assert ran.code == 0 and "March" in ran.out and "cannot be read" in ran.err
    shutil.rmtree(history_folder(places))
    ran = place.run("search", "--explain", "when is the launch?")
    assert ran.code == 0 and "March" in ran.out and "history" not in ran.err


def test_an_earlier_day_can_be_indexed_before_it_is_searched(place: Place) -> None:
    ran = place.run("index", "--as-of", DAY)
    assert ran.code == 0 and "2 added" in ran.out, ran.err
    body = place.run("index", "--as-of", DAY, "--json").json()
    assert body["added"] == 0 and body["unchanged"] == 2 and body["embedded"] == 0
    for flag in ("--force", "--dry-run", "--estimate", "--instant"):
        assert place.run("index", "--as-of", DAY, flag).code == 2
