"""The pipeline's account of an answer in; the page of `search --explain` out: numbered steps, then
every candidate.
"""

from __future__ import annotations

from collections.abc import Sequence

from clawmark.cli.layout import table
from clawmark.cli.output import one_line, paint, place
from clawmark.model.values import CandidateStory, Explanation

SHOWN = 40
"""Candidates shown to a person; --json has all of them."""


def explanation_lines(explanation: Explanation) -> list[str]:
    """Steps with their times, and the candidates from best to worst with every factor."""
    lines = [paint("Steps", "bold")]
    rows = [
        (f"  {step.number}", step.name, f"{step.milliseconds:.1f} ms", one_line(step.summary))
        for step in explanation.steps
    ]
    if rows:
        lines += table(rows, right=(0, 2))
    lines += ["", paint("Candidates", "bold")]
    shown = explanation.candidates[:SHOWN]
    if not shown:
        return [*lines, "  none"]
    more = [name for name in ("when", "rerank") if any(getattr(story, name) for story in shown)]
    head = (
        "  score",
        "text",
        "name",
        "vector",
        "line",
        "user",
        "stated",
        "decay",
        *more,
        "outcome",
        "citation",
        "terms met",
    )
    lines += table(
        [head, *(_row(story, more) for story in shown)], right=tuple(range(8 + len(more)))
    )
    if len(explanation.candidates) > len(shown):
        lines.append(
            f"  … and {len(explanation.candidates) - len(shown)} more; --json has them all"
        )
    return lines


def _row(story: CandidateStory, more: Sequence[str]) -> tuple[str, ...]:
    return (
        f"  {story.score:.3f}",
        f"{story.text:.2f}",
        f"{story.name:.2f}",
        f"{story.vector:.2f}",
        f"{story.line:.2f}",
        f"{story.user:.2f}",
        f"{story.stated:.2f}",
        f"{story.decay:.2f}",
        *("–" if getattr(story, name) is None else f"{getattr(story, name):.2f}" for name in more),
        one_line(story.outcome),
        place(story.citation),
        one_line(story.terms),
    )
