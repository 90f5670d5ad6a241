"""The pages of the verbs, made of real values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clawmark.cli import search as search_verb
from clawmark.cli.batch import read_line
from clawmark.cli.doctor import finding_lines
from clawmark.cli.explain import explanation_lines
from clawmark.cli.index import plan_lines, report_lines
from clawmark.cli.layout import facts
from clawmark.cli.progress import progress_line
from clawmark.cli.sessions import listing
from clawmark.cli.status import status_facts
from clawmark.cli.values import as_json, camel, found_as_json
from clawmark.config.paths import Places
from clawmark.errors import ClawmarkError
from clawmark.reports import Finding, Progress, Status, SyncReport, Transcript
from clawmark.types import (
    CandidateStory,
    Degraded,
    Explanation,
    FileState,
    Found,
    Hit,
    Identity,
    NothingFound,
    Skipped,
    Space,
    Step,
    SyncPlan,
)

HIT = Hit(
    "memory/2026-11-15.md",
    3,
    9,
    0.8312,
    "We chose PostgreSQL\nfor billing",
    3,
    4,
    "memory",
    0.9,
    0.5,
    "2026-11-15",
    ((3, 4),),
)
STORY = CandidateStory(
    citation="MEMORY.md#L1-L2",
    vector=0.5,
    vector_space="static",
    text=0.25,
    name=0.1,
    line=0.3,
    user=0.0,
    stated=1.0,
    bm25=7.5,
    terms="1/2 tea",
    decay=1.0,
    score=0.425,
    outcome="below threshold",
)
EXPLANATION = Explanation((Step(1, "clean query", "'tea'", 0.1), Step(3, "keyword leg", "2 candidates", 12.5)), (STORY,), 7)


def found(*hits: Hit, nothing: NothingFound | None = None, explanation: Explanation | None = None, due: int = 0) -> Found:
    return Found(hits, nothing, "hybrid", "local", "granite-30m", None, due, 41.4, explanation)


def test_an_answer_shows_score_citation_snippet_and_how(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    search_verb.show(found(HIT, due=2), "which database")
    assert capsys.readouterr().out == (
        "0.83  memory/2026-11-15.md#L3-L9\n"
        "      We chose PostgreSQL\n"
        "      for billing\n"
        "\n"
        "1 hit · hybrid (granite-30m) · 41 ms · 2 files due: clawmark index\n"
    )


def test_nothing_found_says_why_and_degraded_is_said_beside(capsys: pytest.CaptureFixture[str]) -> None:
    nothing = NothingFound("below-threshold", "Nothing reaches 0.35.", 0.2)
    search_verb.show(found(nothing=nothing)._replace(degraded=Degraded("No vectors.", "Install them.")), "x")
    out, err = capsys.readouterr()
    assert out.startswith("Nothing reaches 0.35.\n0 hits")
    assert err == "clawmark: No vectors. Install them.\n"


def test_an_answer_as_json_has_the_names_agents_know() -> None:
    body = found_as_json(found(HIT, explanation=EXPLANATION))
    assert json.loads(json.dumps(body)) == {
        "results": [
            {
                "path": "memory/2026-11-15.md",
                "startLine": 3,
                "endLine": 9,
                "score": 0.8312,
                "snippet": "We chose PostgreSQL\nfor billing",
                "source": "memory",
                "citation": "memory/2026-11-15.md#L3-L9",
                "snippetLines": [3, 4],
                "snippetRanges": [[3, 4]],
                "vectorScore": 0.9,
                "textScore": 0.5,
                "date": "2026-11-15",
            }
        ],
        "mode": "hybrid",
        "provider": "local",
        "model": "granite-30m",
        "dueFiles": 0,
        "dueVectors": 0,
        "milliseconds": 41.4,
        "explanation": {
            "steps": [
                {"number": 1, "name": "clean query", "summary": "'tea'", "milliseconds": 0.1},
                {"number": 3, "name": "keyword leg", "summary": "2 candidates", "milliseconds": 12.5},
            ],
            "candidates": [
                {
                    "citation": "MEMORY.md#L1-L2",
                    "vector": 0.5,
                    "vectorSpace": "static",
                    "text": 0.25,
                    "name": 0.1,
                    "line": 0.3,
                    "user": 0.0,
                    "stated": 1.0,
                    "bm25": 7.5,
                    "terms": "1/2 tea",
                    "decay": 1.0,
                    "score": 0.425,
                    "outcome": "below threshold",
                    "when": 0.0,
                    "rerank": None,
                }
            ],
            "passages": 7,
        },
    }


def test_names_are_camel_case_outside() -> None:
    assert [camel("max_results"), camel("lambda_"), camel("path")] == ["maxResults", "lambda", "path"]
    assert as_json({"a": (Skipped("x", "y"),)}) == {"a": [{"path": "x", "reason": "y"}]}


def test_the_explanation_is_aligned() -> None:
    lines = explanation_lines(EXPLANATION)
    assert lines[1] == "  1  clean query   0.1 ms  'tea'"
    assert lines[2] == "  3  keyword leg  12.5 ms  2 candidates"
    assert lines[-1].split() == [
        "0.425",
        "0.25",
        "0.10",
        "0.50",
        "0.30",
        "0.00",
        "1.00",
        "1.00",
        "below",
        "threshold",
        "MEMORY.md#L1-L2",
        "1/2",
        "tea",
    ]
    many = explanation_lines(Explanation((), (STORY,) * 60))
    assert "20 more" in many[-1]


def report(**changes: object) -> SyncReport:
    plain = SyncReport(2, 1, 3, 0, 40, 120, 100, 20, (), (), (), 0, 0, 1, None, 1.25)
    return plain._replace(**changes)  # type: ignore[arg-type]


def test_a_sync_is_told_in_three_lines() -> None:
    assert report_lines(report(due_vectors=5)) == [
        "Files    2 added · 1 updated · 0 deleted · 43 unchanged",
        "Chunks   120 written · 100 embedded · 20 reused",
        "Took     1.2 s · generation 1 · 5 vectors due",
    ]


def test_skipped_files_are_listed_with_reasons_and_counted() -> None:
    skipped = tuple(Skipped(f"memory/{n}\x1b.md", "is a link") for n in range(8))
    lines = report_lines(report(skipped=skipped))
    assert "8 files left alone:" in lines
    assert "  memory/0\\x1b.md: is a link" in lines
    assert "3 more" in lines[-1]
    assert len(report_lines(report(skipped=skipped), verbose=True)) == 3 + 2 + 8


def test_a_plan_is_printed_file_by_file() -> None:
    state = FileState("MEMORY.md", "memory", 1, 1, 1, 1)
    plan = SyncPlan((state,), (state._replace(path="memory/a.md"),), (state,), ("memory/gone.md",), 6, ("x",))
    assert plan_lines(plan) == [
        "add     MEMORY.md",
        "check   memory/a.md",
        "delete  memory/gone.md",
        "1 file kept: their folder could not be listed",
        "1 to add, 1 to check, 1 to delete, 7 unchanged",
    ]
    assert plan_lines(SyncPlan((), (), (), (), 3, ())) == ["Nothing to do: 0 to add, 0 to check, 0 to delete, 3 unchanged"]


def status(**changes: object) -> Status:
    space = Space(1, Identity("static", "potion", "key", 256), True, 318)
    plain = Status(
        workspace="/w",
        agent_id="main",
        index_path="/s/memory/main.sqlite",
        index_bytes=1_200_000,
        config_file="/s/clawmark.json",
        files=42,
        chunks=318,
        due_files=0,
        due_by_source={"memory": 0},
        due_vectors=0,
        generation=3,
        rebuilding=False,
        mode="hybrid",
        embedder="static (local)",
        embedder_reason="no key, no download",
        spaces=(space,),
        vector_engine="blocks",
        sqlite_version="3.54.0",
        sqlite_safe=True,
        cache_entries=318,
        cache_limit=50_000,
        last_sync={},
        last_error="",
        skipped=(),
        scan_failures=(),
        denied_paths=0,
        degraded=None,
        containment="descriptor",
        warnings=(),
        spent={},
        metrics={},
    )
    return plain._replace(**changes)  # type: ignore[arg-type]


def page(value: Status) -> str:
    places = Places("/s", "/s/clawmark.json", "/w", "main", "/s/memory/main.sqlite")
    return "\n".join(facts(status_facts(value, places, ("notes",))))


def test_the_status_page_answers_the_operational_questions() -> None:
    text = page(status())
    for part in (
        "Workspace    /w (default)",
        "Extra paths  notes",
        "42 files · 318 chunks · up to date",
        "static (local)",
        "no key, no download",
        "engine blocks",
        "static/potion · 256 dims · 318 · ready",
        "SQLite       3.54.0",
        "318 of 50,000 vectors",
        "Last sync    never",
        "1.2 MB · generation 3",
        "checked by descriptor",
    ):
        assert part in text


def test_the_status_page_says_what_is_wrong() -> None:
    text = page(
        status(
            due_files=3,
            due_by_source={"memory": 1, "sessions": 2},
            last_error="The disk is full.",
            last_sync={"at": 0, "reason": "watch", "seconds": 0.5},
            sqlite_safe=False,
            rebuilding=True,
            denied_paths=2,
            degraded=Degraded("No vectors.", "Install them."),
            warnings=("A key is wrong.",),
            skipped=tuple(Skipped(f"{n}.md", "is a link") for n in range(9)),
        )
    )
    for part in (
        "3 files (1 memory, 2 sessions) due: `clawmark index`",
        "The disk is full.",
        "by a watcher · 500 ms",
        "can lose commits",
        "rebuilding",
        "2 paths denied",
        "Install them.",
        "A key is wrong.",
        "6 more",
    ):
        assert part in text


def test_findings_have_a_mark_and_a_next_step() -> None:
    assert finding_lines(Finding("problem", "It is broken.", "Mend it.")) == [
        "problem It is broken.",
        "        → Mend it.",
    ]
    assert finding_lines(Finding("problem", "It was broken.", "", fixed=True)) == ["fixed   It was broken."]


def test_progress_fits_the_line_and_tells_what_is_read_and_the_time_left() -> None:
    line = progress_line(Progress("vectors", 50, 100, "granite-30m", seconds_left=10.0), 80)
    assert line.startswith("vectors ") and "50/100 · 10.0 s left" in line and len(line) <= 80
    long = progress_line(Progress("text", 1, 3, "memory/" + "x" * 200 + ".md", "memory"), 80)
    assert long.startswith("memory ") and len(long) <= 80 and "1/3" in long
    assert progress_line(Progress("text", 1, 3, "sessions/a.jsonl", "sessions"), 80).startswith("transcripts ")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"plain words\n", (7, "plain words", {})),
        (b'{"id": "q1", "query": "tea", "more": 1}', ("q1", "tea", {})),
        (b'{"query": "tea", "since": "7d", "path": null}', (7, "tea", {"since": "7d"})),
        (b"bad \xff byte", (7, "bad \ufffd byte", {})),
    ],
)
def test_a_line_of_a_batch_is_text_or_an_object(line: bytes, expected: tuple[object, ...]) -> None:
    assert read_line(line, 7) == expected


@pytest.mark.parametrize(
    "line", [b"{", b'{"id": 1}', b'{"id": [], "query": "x"}', b'{"id": NaN, "query": "x"}', b"{" * 9999, None]
)
def test_a_line_that_is_no_query_is_refused(line: bytes | None) -> None:
    with pytest.raises(ClawmarkError):
        read_line(line, 7)


def test_names_of_transcripts_give_way_to_a_narrow_terminal() -> None:
    name = "sessions/ebda2331-4f11-4de3-be93-08af8e453999.jsonl"
    one = Transcript(name, "OpenClaw", 3200, 6, "2026-11-15T14:03:00Z", "2026-11-15T14:04:00Z", "indexed")
    assert name in listing((one,))[1] and "2026-11-15 14:03  14:04" in listing((one,))[1]
    head, line = listing((one,), 90)
    assert len(line) == 90 and line.startswith("sessions/ebda…") and ".jsonl" in line and head.startswith("NAME")


def test_the_reference_is_what_the_code_makes_it() -> None:
    import subprocess
    import sys

    script = Path(__file__).parents[3] / "scripts" / "reference"
    checked = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout) == (0, ""), "run scripts/reference"
