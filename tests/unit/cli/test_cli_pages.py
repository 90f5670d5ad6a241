"""The text that the verbs print, made from real values."""

from __future__ import annotations

import json

import pytest

from clawmark.cli.as_json import as_json, camel, found_as_json
from clawmark.cli.commands import search as search_verb
from clawmark.cli.commands.doctor import finding_lines
from clawmark.cli.commands.index import plan_lines, report_lines
from clawmark.cli.commands.search import explanation_lines
from clawmark.cli.commands.sessions import listing
from clawmark.cli.commands.status import status_facts
from clawmark.cli.layout import facts
from clawmark.cli.progress import progress_line
from clawmark.config.paths import Places
from clawmark.model.explanation import CandidateStory, Explanation, Step
from clawmark.model.reports import Finding, Progress, Status, SyncReport, Transcript
from clawmark.model.values import (
    Degraded,
    FileState,
    Found,
    Hit,
    Identity,
    NothingFound,
    Skipped,
    Space,
    SyncPlan,
)

HIT = Hit(
    path="memory/2026-11-15.md",
    start_line=3,
    end_line=9,
    score=0.8312,
    snippet="We chose PostgreSQL\nfor billing",
    snippet_start=3,
    snippet_end=4,
    source="memory",
    vector_score=0.9,
    text_score=0.5,
    date="2026-11-15",
    snippet_ranges=((3, 4),),
)
STORY = CandidateStory(
    citation="MEMORY.md#L1-L2",
    vector=0.5,
    vector_space="static",
    text=0.25,
    name=0.125,
    line=0.375,
    user=0.0,
    stated=1.0,
    bm25=7.5,
    terms="1/2 tea",
    decay=0.75,
    score=0.425,
    outcome="below threshold",
)
EXPLANATION = Explanation(
    (
        Step(number=1, name="clean query", summary="'tea'", milliseconds=0.1),
        Step(number=3, name="keyword leg", summary="2 candidates", milliseconds=12.5),
    ),
    (STORY,),
    7,
)


def found(
    *hits: Hit,
    nothing: NothingFound | None = None,
    explanation: Explanation | None = None,
    due: int | None = 0,
) -> Found:
    return Found(
        hits=hits,
        nothing=nothing,
        mode="hybrid",
        provider="local",
        model="granite-30m",
        degraded=None,
        due_files=due,
        milliseconds=41.4,
        explanation=explanation,
    )


def test_a_hit_shows_score_citation_and_snippet(
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


def test_unknown_freshness_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    search_verb.show(found(HIT, due=None), "which database")
    assert "unknown whether files are due" in capsys.readouterr().out
    assert found_as_json(found(HIT, due=None))["dueFiles"] is None


def test_each_part_of_a_snippet_has_the_number_of_its_first_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    snippet = (
        "We chose PostgreSQL for billing because of its types.\n…\nAnn agreed.\n…\nBob did not."
    )
    hit = HIT._replace(
        snippet=snippet, end_line=120, snippet_ranges=((12, 12), (107, 107), (107, 107))
    )
    search_verb.show(found(hit), "which database")
    assert capsys.readouterr().out.splitlines()[:5] == [
        "0.83  memory/2026-11-15.md#L3-L120",
        " L12  We chose PostgreSQL for billing",
        "      because of its types.",
        "L107  Ann agreed.",
        "   …  Bob did not.",
    ]


def test_a_line_number_of_five_digits_widens_the_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    hit = HIT._replace(
        snippet="Tea.\n…\nCoffee.", end_line=99_999, snippet_ranges=((7, 7), (12_345, 12_345))
    )
    assert search_verb.hit_lines(hit, "tea")[1:] == ["    L7  Tea.", "L12345  Coffee."]


def test_the_terminal_shows_every_word_of_a_long_snippet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = [f"word{number}" for number in range(600)]
    hit = HIT._replace(
        snippet="\n".join(" ".join(words[at : at + 20]) for at in range(0, 600, 20)),
        snippet_ranges=((3, 32),),
    )
    lines = search_verb.hit_lines(hit, "database")
    assert " ".join(lines[1:]).split() == words and max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("snippet", "ranges"),
    [
        ("User: tea?\n…\nAssistant: yes.", ((3, 9),)),
        ("An ellipsis:\n…\nin the note itself.", ((4, 6),)),
    ],
    ids=["transcript", "ellipsis-in-the-note"],
)
def test_parts_that_cannot_be_numbered_are_shown_without_numbers(
    snippet: str, ranges: tuple[tuple[int, int], ...]
) -> None:
    hit = HIT._replace(snippet=snippet, snippet_ranges=ranges)
    assert [line.strip() for line in search_verb.hit_lines(hit, "tea")[1:]] == snippet.split("\n")


def test_an_empty_answer_explains_itself_and_degradation_goes_to_stderr(
    capsys: pytest.CaptureFixture[str],
) -> None:
    nothing = NothingFound("below-threshold", "Nothing reaches 0.35.", 0.2)
    search_verb.show(
        found(nothing=nothing)._replace(degraded=Degraded("No vectors.", "Install them.")), "x"
    )
    out, err = capsys.readouterr()
    assert out.startswith("Nothing reaches 0.35.\n0 hits")
    assert err == "clawmark: No vectors. Install them.\n"


def test_an_answer_as_json_uses_the_names_of_openclaw() -> None:
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
                {
                    "number": 1,
                    "name": "clean query",
                    "summary": "'tea'",
                    "milliseconds": 0.1,
                    "passages": None,
                },
                {
                    "number": 3,
                    "name": "keyword leg",
                    "summary": "2 candidates",
                    "milliseconds": 12.5,
                    "passages": None,
                },
            ],
            "candidates": [
                {
                    "citation": "MEMORY.md#L1-L2",
                    "vector": 0.5,
                    "vectorSpace": "static",
                    "text": 0.25,
                    "name": 0.125,
                    "line": 0.375,
                    "user": 0.0,
                    "stated": 1.0,
                    "bm25": 7.5,
                    "terms": "1/2 tea",
                    "decay": 0.75,
                    "score": 0.425,
                    "outcome": "below threshold",
                    "when": 0.0,
                    "rerank": None,
                    "factors": [],
                }
            ],
            "passages": 7,
        },
    }


def test_names_in_json_are_camel_case() -> None:
    assert [camel("max_results"), camel("lambda_"), camel("path")] == [
        "maxResults",
        "lambda",
        "path",
    ]
    assert as_json({"a": (Skipped("x", "y"),)}) == {"a": [{"path": "x", "reason": "y"}]}


def test_the_explanation_is_aligned() -> None:
    lines = explanation_lines(EXPLANATION)
    assert lines[1] == "  1  clean query   0.1 ms  'tea'"
    assert lines[2] == "  3  keyword leg  12.5 ms  2 candidates"
    assert lines[-1].split() == [
        "0.425",
        "0.25",
        "0.12",
        "0.50",
        "0.38",
        "0.00",
        "1.00",
        "0.75",
        "below",
        "threshold",
        "MEMORY.md#L1-L2",
        "1/2",
        "tea",
    ]
    many = explanation_lines(Explanation((), (STORY,) * 60))
    assert "20 more" in many[-1]


def report(**changes: object) -> SyncReport:
    plain = SyncReport(
        added=2,
        updated=1,
        touched=3,
        deleted=0,
        unchanged=40,
        chunks=120,
        embedded=100,
        reused=20,
        skipped=(),
        failures=(),
        scan_failures=(),
        due_files=0,
        due_vectors=0,
        generation=1,
        degraded=None,
        seconds=1.25,
    )
    return plain._replace(**changes)  # type: ignore[arg-type]


def test_a_sync_report_has_three_lines() -> None:
    assert report_lines(report(due_vectors=5)) == [
        "Files    2 added · 1 updated · 0 deleted · 43 unchanged",
        "Chunks   120 written · 100 embedded · 20 reused",
        "Took     1.2 s · generation 1 · 5 vectors due",
    ]


def test_skipped_files_are_listed_with_reasons_and_counted() -> None:
    skipped = tuple(Skipped(f"memory/{n}\x1b.md", "is a link") for n in range(8))
    lines = report_lines(report(skipped=skipped))
    assert "8 files skipped:" in lines
    assert "  memory/0\\x1b.md: is a link" in lines
    assert "3 more" in lines[-1]
    assert len(report_lines(report(skipped=skipped), verbose=True)) == 3 + 2 + 8


def test_a_plan_is_printed_file_by_file() -> None:
    state = FileState(path="MEMORY.md", source="memory", size=1, mtime_ns=1, inode=1, device=1)
    plan = SyncPlan(
        add=(state,),
        check=(state._replace(path="memory/a.md"),),
        recheck=(state,),
        delete=("memory/gone.md",),
        unchanged=6,
        kept=("x",),
    )
    assert plan_lines(plan) == [
        "add     MEMORY.md",
        "check   memory/a.md",
        "delete  memory/gone.md",
        "1 file kept: their folder could not be listed",
        "1 to add, 1 to check, 1 to delete, 7 unchanged",
    ]
    assert plan_lines(SyncPlan(add=(), check=(), recheck=(), delete=(), unchanged=3, kept=())) == [
        "Nothing to do: 0 to add, 0 to check, 0 to delete, 3 unchanged"
    ]


def status(**changes: object) -> Status:
    space = Space(
        id=1,
        identity=Identity(provider="static", model="potion", provider_key="key", dims=256),
        ready=True,
        vectors=318,
    )
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
    places = Places(
        state_dir="/s",
        config_file="/s/clawmark.json",
        workspace="/w",
        agent_id="main",
        index_path="/s/memory/main.sqlite",
    )
    return "\n".join(facts(status_facts(value, places, ("notes",))))


def test_the_status_page_shows_the_state_of_the_memory() -> None:
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
        "by descriptor",
    ):
        assert part in text


def test_the_status_page_shows_problems() -> None:
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
    assert finding_lines(Finding("problem", "It was broken.", "", fixed=True)) == [
        "fixed   It was broken."
    ]


def test_progress_fits_the_line_and_shows_the_file_and_the_time_left() -> None:
    line = progress_line(
        Progress(stage="vectors", done=50, total=100, label="granite-30m", seconds_left=10.0), 80
    )
    assert line.startswith("vectors ") and "50/100 · 10.0 s left" in line and len(line) <= 80
    long = progress_line(
        Progress(
            stage="text", done=1, total=3, label="memory/" + "x" * 200 + ".md", source="memory"
        ),
        80,
    )
    assert long.startswith("memory ") and len(long) <= 80 and "1/3" in long
    assert progress_line(
        Progress(stage="text", done=1, total=3, label="sessions/a.jsonl", source="sessions"), 80
    ).startswith("transcripts ")


def test_transcript_names_are_shortened_on_a_narrow_terminal() -> None:
    name = "sessions/ebda2331-4f11-4de3-be93-08af8e453999.jsonl"
    one = Transcript(
        path=name,
        kind="OpenClaw",
        size=3200,
        messages=6,
        first="2026-11-15T14:03:00Z",
        last="2026-11-15T14:04:00Z",
        status="indexed",
    )
    assert name in listing((one,))[1] and "2026-11-15 14:03  14:04" in listing((one,))[1]
    head, line = listing((one,), 90)
    assert len(line) == 90 and line.startswith("…/ebda2331-4f11-") and head.startswith("NAME")
