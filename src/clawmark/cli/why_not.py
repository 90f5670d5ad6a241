"""Print the answer of `clawmark search --why-not`."""

from __future__ import annotations

import shlex
from argparse import Namespace

from clawmark.cli.as_json import as_json
from clawmark.cli.layout import table
from clawmark.cli.output import emit, one_line, paint, place, plain, say
from clawmark.memory import Memory
from clawmark.model.explanation import Factor
from clawmark.model.why_not import FACTOR_NAMES, LegRank, WhyNot


def answer(memory: Memory, args: Namespace) -> int:
    """Explain why a file or a line is missing; the exit code is 0 in every case."""
    found = memory.why_not(
        " ".join(args.query),
        args.why_not,
        max_results=args.max_results,
        min_score=args.min_score,
        since=args.since,
        until=args.until,
        within=args.path,
        source=args.source,
    )
    if args.json:
        body = as_json(found)
        emit({"whyNot": body})
    else:
        say("\n".join(lines_of(found)))
    return 0


def lines_of(found: WhyNot) -> list[str]:
    """Return the sentence, the ranks, the factors and what helps."""
    lines = [paint(place(found.citation), "cyan"), plain(found.sentence)]
    if found.words is not None and found.meaning is not None:
        lines += ["", *table([*_leg("words", found.words), *_leg("meaning", found.meaning)])]
    if found.story is not None and found.story.factors:
        rows = [_factor_row(factor) for factor in found.story.factors]
        lines += ["", paint("Evidence", "bold"), *table(rows, right=(1, 2, 3))]
        total = sum(factor.points for factor in found.story.factors)
        lines.append(f"  sum {total:+.2f}, score {found.score:.2f}")
    if found.remedies:
        lines += ["", paint("What helps", "bold")]
    for remedy in found.remedies:
        lines.append(f"  {plain(remedy.what)}")
        flags = f"{remedy.flags} " if remedy.flags else ""
        if remedy.flags or remedy.query != found.query:
            lines.append(f"    clawmark search {flags}{one_line(shlex.quote(remedy.query))}")
    return lines


def _leg(name: str, leg: LegRank) -> list[tuple[str, ...]]:
    if not leg.rank:
        return [(f"  {name}", "not found")]
    rank = f"rank {leg.rank:,} of {leg.found:,}; the first {leg.limit:,} are candidates"
    return [(f"  {name}", rank)]


def _factor_row(factor: Factor) -> tuple[str, ...]:
    if factor.name == "base":
        return (f"  {FACTOR_NAMES[factor.name]}", "", "", f"{factor.points:+.2f}")
    return (
        f"  {FACTOR_NAMES[factor.name]}",
        f"{factor.value:.2f}",
        f"× {factor.weight:.1f}",
        f"{factor.points:+.2f}",
    )
