"""The answers of the workspace and of the spaces become one."""

from __future__ import annotations

from clawmark.backends.team.merging import merge, without_spaces
from clawmark.model.values import Degraded, Found, Hit, NothingFound


def hit(path: str, score: float, space: str = "", author: str = "", snippet: str = "") -> Hit:
    return Hit(
        path=path,
        start_line=1,
        end_line=1,
        score=score,
        snippet=snippet or path,
        snippet_start=1,
        snippet_end=1,
        source="memory",
        vector_score=0.0,
        text_score=score,
        date="",
        space=space,
        author=author,
    )


def found(*hits: Hit, nothing: NothingFound | None = None, bad: Degraded | None = None) -> Found:
    return Found(
        hits=hits,
        nothing=nothing,
        mode="hybrid",
        provider="local",
        model="static",
        degraded=bad,
        due_files=2,
        milliseconds=3.0,
    )


def test_the_best_hits_of_both_answers_are_returned_in_order() -> None:
    own = found(hit("memory/a.md", 0.9), hit("memory/b.md", 0.4))
    shared = found(hit("spaces/team/eve/memory/c.md", 0.6, "team", "eve"))
    merged = merge(own, shared, 2)
    assert [one.score for one in merged.hits] == [0.9, 0.6]
    assert merged.due_files == 2


def test_a_published_passage_is_shown_once_as_the_callers_own() -> None:
    own = found(hit("memory/team/a.md", 0.7, snippet="We chose PostgreSQL."))
    path = "spaces/team/ada/memory/team/a.md"
    shared = found(hit(path, 0.8, "team", "ada", snippet="We chose PostgreSQL."))
    assert [one.path for one in merge(own, shared, 6).hits] == ["memory/team/a.md"]


def test_an_equal_score_prefers_the_workspace() -> None:
    own = found(hit("memory/a.md", 0.5))
    shared = found(hit("spaces/team/2026-11-18.md", 0.5, "team"))
    assert [one.space for one in merge(own, shared, 6).hits] == ["", "team"]


def test_hits_of_a_space_replace_the_reason_why_there_are_none() -> None:
    nothing = NothingFound("no-such-words", "No note has these words.", None)
    merged = merge(found(nothing=nothing), found(hit("spaces/team/2026-11-18.md", 0.5, "team")), 6)
    assert merged.nothing is None


def test_without_hits_the_closer_answer_says_why() -> None:
    far = NothingFound("no-such-words", "No note has these words.", None)
    near = NothingFound("below-threshold", "The best passage scores 0.2.", 0.2)
    assert merge(found(nothing=far), found(nothing=near), 6).nothing == near
    assert merge(found(nothing=near), found(nothing=far), 6).nothing == near


def test_both_reasons_of_a_degraded_answer_are_kept() -> None:
    first, second = Degraded("The provider is away.", "Wait."), Degraded("Slow.", "")
    merged = merge(found(bad=first), found(bad=second), 6)
    assert merged.degraded == Degraded("The provider is away. Slow.", "Wait.")


def test_an_answer_without_the_spaces_says_so() -> None:
    own = found(hit("memory/a.md", 0.9))
    assert without_spaces(own, "The server is away.", "Start it.").degraded == Degraded(
        "The server is away.", "Start it."
    )
