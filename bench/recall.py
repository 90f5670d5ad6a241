"""How often automatic recall answers a question, and how often it adds what is not needed.

    python bench/recall.py --work DIR [--provider static]

Six kinds of workspaces: the sample of `clawmark demo`, workspaces of one to five notes, 1,000
made-up days, and the exam's locomo, notes and longmemeval. Each is asked its own questions
(answered: lines that answer are recalled), the chatter of `prompts.py`, and questions about the
other workspaces, which it should not answer. Shares are averaged over the six kinds. Next to
`Memory.recall` as it is, the same with the search's own minimum score alone. All in this process.
Output: a table, and `bench/results/recall.json`; the limits are for the half of the prompts that
is held out."""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import defaultdict
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from harness import must, run, shared_folder, table, verdict, write_result
from prompts import CHATTER, SAMPLE, TINY, is_held_out

from clawmark import Memory
from clawmark.agent.prompt.recall import parse_block
from clawmark.workspace.daily import daily_path
from clawmark.workspace.sample import write_sample

KEY = "agent:main:main"
TODAY = date(2026, 11, 15)
EXAM = ("locomo", "notes", "longmemeval")
OWN, FOREIGN = 60, 12
"""The most questions a workspace is asked of its own, and of each other kind."""
LIMITS = {"answered": (0.7, True), "chatter": (0.12, False), "foreign": (0.1, False)}

Lines = tuple[str, int, int]


class Place(NamedTuple):
    """A workspace, and its questions with the lines that answer each."""

    kind: str
    name: str
    folder: Path
    questions: tuple[tuple[str, tuple[Lines, ...]], ...]


class Asked(NamedTuple):
    """What became of one prompt in one workspace; `hit`: answered for a question, anything recalled
    for the rest.
    """

    kind: str
    group: str
    held_out: bool
    hit: bool
    hit_by_score: bool


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--work", type=Path, required=True, help="folder for workspaces and indexes; kept"
    )
    parser.add_argument("--provider", default="static")
    given = parser.parse_args()
    work = given.work.resolve() / "recall"
    places = [*sample(work), *tiny(work), *made_up(work), *exam(work)]
    asked = [
        one
        for place in places
        for one in ask(place, places, work / f"state-{given.provider}", given.provider)
    ]
    rows, counts = report(asked)
    print(
        table(
            [
                ("half", "what", "recalled", "by score alone", "limit", ""),
                *(row.pop("shown") for row in rows),
            ]
        )
    )
    body = {"provider": given.provider, "rows": rows, "counts": counts}
    name = "recall" if given.provider == "static" else f"recall-{given.provider}"
    command = (
        f"python bench/recall.py --work "
        f"DIR{'' if given.provider == 'static' else f' --provider {given.provider}'}"
    )
    write_result(name, command, sys.executable, body)
    return 1 if any(row["verdict"] == "MISSED" for row in rows) else 0


def sample(work: Path) -> Iterator[Place]:
    folder = work / "sample"
    write_sample(str(folder), TODAY)

    def lines(days: int) -> Lines:
        return (
            daily_path((TODAY - timedelta(days=days)).isoformat()) if days else "MEMORY.md",
            1,
            10_000,
        )

    yield Place(
        kind="sample",
        name="sample",
        folder=folder,
        questions=tuple((text, tuple(map(lines, days))) for text, days in SAMPLE),
    )


def tiny(work: Path) -> Iterator[Place]:
    for number, (notes, questions) in enumerate(TINY):
        folder = work / "tiny" / str(number)
        names = ["MEMORY.md", *(daily_path(f"2026-11-{day:02}") for day in range(1, len(notes)))]
        for name, note in zip(names, notes, strict=True):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(note, encoding="utf-8")
        asked = tuple((text, ((names[at], 1, 10_000),)) for text, at in questions)
        yield Place(kind="tiny", name=f"tiny-{number}", folder=folder, questions=asked)


def made_up(work: Path) -> Iterator[Place]:
    folder = work / "corpus-1000"
    if not Path(f"{folder}.info.json").is_file():
        must(
            run([sys.executable, str(shared_folder() / "bench" / "corpus.py"), str(folder)]),
            "making the corpus",
        )
    rows = json.loads(Path(f"{folder}.queries.json").read_text(encoding="utf-8"))
    yield Place(
        kind="made-up",
        name="made-up",
        folder=folder,
        questions=tuple((row["q"], ((row["expect"], 1, 10_000),)) for row in rows),
    )


def exam(work: Path) -> Iterator[Place]:
    for kind in EXAM:
        folder = work / kind
        if not (folder / "questions.jsonl").is_file():
            folder.mkdir(parents=True, exist_ok=True)
            shared = shared_folder()
            must(
                run(
                    [
                        sys.executable,
                        str(shared / "exam/exam.py"),
                        "build",
                        str(shared / "data" / kind),
                        str(folder),
                    ]
                ),
                kind,
            )
        groups = defaultdict(list)
        for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            gold = tuple((unit["path"], unit["from"], unit["to"]) for unit in row["gold"])
            groups[row["group"]].append((row["query"], gold))
        for group, questions in sorted(groups.items()):
            yield Place(
                kind=kind,
                name=f"{kind}-{group}",
                folder=folder / group / "workspace",
                questions=tuple(questions),
            )


def ask(place: Place, places: list[Place], state: Path, provider: str) -> Iterator[Asked]:
    """Everything one workspace is asked; what is drawn depends on its name alone."""
    draw = random.Random(place.name)
    foreign = []
    for kind in sorted({other.kind for other in places} - {place.kind}):
        theirs = [text for other in places if other.kind == kind for text, _ in other.questions]
        foreign += draw.sample(theirs, min(FOREIGN, len(theirs)))
    own = draw.sample(place.questions, min(OWN, len(place.questions)))
    with Memory.open(
        place.folder, provider=provider, state_dir=state / place.name, background=False
    ) as memory:
        memory.sync()
        usual = memory.settings.memory_search.query.min_score

        def recalled(text: str, gold: tuple[Lines, ...] | None) -> tuple[bool, bool]:
            blocks = [memory.recall(text, KEY, min_score=least) for least in (None, usual)]
            return tuple(is_met(block, gold) for block in blocks)  # type: ignore[return-value]

        for text, gold in own:
            yield Asked(place.kind, "answered", is_held_out(text), *recalled(text, gold))
        for group, texts in (("chatter", CHATTER), ("foreign", foreign)):
            for text in texts:
                yield Asked(place.kind, group, is_held_out(text), *recalled(text, None))


def is_met(block: str, gold: tuple[Lines, ...] | None) -> bool:
    """Whether a block has some of these lines; without lines to look for, whether there is a block
    at all.
    """
    if gold is None or not block:
        return bool(block)
    for item in parse_block(block):
        path, _, at = item.citation.rpartition("#L")
        first, _, last = at.partition("-L")
        if any(
            path == other and int(first) <= end and int(last or first) >= start
            for other, start, end in gold
        ):
            return True
    return False


def report(asked: list[Asked]) -> tuple[list[dict[str, Any]], dict[str, dict[str, list[int]]]]:
    """The shares, averaged over the kinds of workspaces, of each half; and hits and prompts of each
    kind, held out.
    """
    kinds = sorted({one.kind for one in asked})
    rows, counts = [], {}
    for half in (True, False):
        for group, (limit, at_least) in LIMITS.items():
            of = {
                kind: [
                    one
                    for one in asked
                    if (one.kind, one.group, one.held_out) == (kind, group, half)
                ]
                for kind in kinds
            }
            share = sum(sum(one.hit for one in of[kind]) / len(of[kind]) for kind in kinds) / len(
                kinds
            )
            bare = sum(
                sum(one.hit_by_score for one in of[kind]) / len(of[kind]) for kind in kinds
            ) / len(kinds)
            judged = verdict(share, limit, at_least) if half else ""
            shown_limit = f"{'≥' if at_least else '≤'} {limit:g}" if half else ""
            name = "held out" if half else "chosen on"
            shown = (name, group, f"{share:.3f}", f"{bare:.3f}", shown_limit, judged)
            shares = {"recalled": round(share, 3), "by_score_alone": round(bare, 3)}
            rows.append(
                {
                    "half": name,
                    "what": group,
                    **shares,
                    "limit": limit,
                    "verdict": judged,
                    "shown": shown,
                }
            )
            if half:
                counts[group] = {
                    kind: [sum(one.hit for one in of[kind]), len(of[kind])] for kind in kinds
                }
    return rows, counts


if __name__ == "__main__":
    sys.exit(main())
