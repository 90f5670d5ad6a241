"""Run the rules of consolidation on text that is not a memory, and on the sample memory.

The sentences of each data set become entries: every tenth record goes to MEMORY.md, the others to
the daily logs of 30 days, in their order. Hardly anything in them supersedes anything else, so
a finding other than a repeated sentence is nearly always wrong: `--show` prints them for a person
to judge, and `JUDGED_WRONG` has how many a person called wrong. No model is asked. Times are CPU
seconds."""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from harness import shared_folder, write_result

from clawmark.agent.consolidation.claim_index import ClaimIndex
from clawmark.agent.consolidation.entries import LONG_TERM, SourceText, open_gate, read_entries
from clawmark.agent.consolidation.plan import plan
from clawmark.agent.consolidation.superseded import find_contradictions
from clawmark.agent.consolidation.wording import sentences
from clawmark.text.secrets.redact import Redactor
from clawmark.workspace.sample import write_sample

SETS = ("locomo", "longmemeval", "notes", "musique")
DAYS, LAST = 30, date(2026, 3, 2)
KINDS = ("duplicate", "superseded", "expired", "promoted")
MOST_SECONDS = 0.001
"""CPU of a whole check for each entry, on the machine of the result."""
LINES = 20_000
JUDGED_WRONG: dict[str, int] = {
    "locomo": 0,
    "longmemeval": 1,
    "notes": 0,
    "musique": 0,
    "sample": 0,
}
"""How many of the findings below a person called wrong. Judge again when the counts change."""


def logs_of(lines_by_day: list[list[str]]) -> Iterator[SourceText]:
    for number, lines in enumerate(lines_by_day):
        day = (LAST - timedelta(days=DAYS - 1 - number)).isoformat()
        yield SourceText(f"memory/{day}.md", "\n".join([f"# {day}", "", *lines, ""]))


def page_of(lines: list[str]) -> SourceText:
    first = (LAST - timedelta(days=DAYS)).isoformat()
    return SourceText(LONG_TERM, "\n".join(["# Memory", "", *lines, ""]), first)


def data_set(name: str, records: int, first: int = 0) -> list[SourceText]:
    """Return a memory made of the first records of a data set."""
    with gzip.open(shared_folder() / "data" / name / "corpus.jsonl.gz", "rt") as file:
        texts = [json.loads(line)["text"] for line, _ in zip(file, range(records), strict=False)]
    own, days = list[str](), [list[str]() for _ in range(DAYS)]
    for number, text in enumerate(texts):
        target = own if number % 10 == first else days[number * DAYS // len(texts)]
        target += [f"- {one}" for part in text.split("\n") for one in sentences(part)]
    return [page_of(own), *logs_of(days)]


def sample() -> list[SourceText]:
    """Return MEMORY.md and the logs of the sample workspace."""
    with tempfile.TemporaryDirectory() as folder:
        write_sample(folder, LAST)
        root = Path(folder)
        changed = LAST.isoformat()
        found = [SourceText(LONG_TERM, (root / LONG_TERM).read_text(encoding="utf-8"), changed)]
        logs = sorted((root / "memory").glob("20??-??-??.md"))
        return found + [
            SourceText(f"memory/{path.name}", path.read_text(encoding="utf-8")) for path in logs
        ]


def many_lines(line: Callable[[int], str], *, own: bool = False) -> list[SourceText]:
    """Return a memory with one file of very many short lines."""
    lines = [f"- {line(number)}" for number in range(LINES)]
    days = [list[str]() for _ in range(DAYS)]
    if not own:
        days[-1] = lines
    kept = ["- The launch is in April."] if not own else lines
    return [page_of(kept), *logs_of(days)]


INPUTS: dict[str, Callable[[], list[SourceText]]] = {
    "20,000 lines of a log": lambda: many_lines("item {}".format),
    "20,000 lines of MEMORY.md": lambda: many_lines("item {}".format, own=True),
    "the same line 20,000 times": lambda: many_lines(lambda number: "the same line again"),
    "one fact 20,000 times in MEMORY.md": lambda: many_lines(
        lambda number: "The launch is in Porto, says Grace.", own=True
    ),
    "6,666 facts on three days": lambda: [
        page_of([]),
        *logs_of([[f"- The room {number} has a red door." for number in range(LINES // 3)]] * 3),
    ],
    "20,000 values of one thing": lambda: many_lines("The venue of the talk is Hall{}.".format),
    "20,000 values in MEMORY.md": lambda: many_lines("The launch is in Town{}.".format, own=True),
    "20,000 changes": lambda: many_lines("We switched from Tool{0} to Tool{0}x.".format),
    "20,000 times": lambda: many_lines(
        lambda number: f"The launch is on 2026-0{4 + number % 6}-1{number % 10}."
    ),
}


def measure(files: list[SourceText], *, show: bool = False) -> dict[str, Any]:
    """Run the rules on a memory and count what they find."""
    started = time.process_time()
    entries = read_entries(files, open_gate(Redactor()))
    read = time.process_time()
    changes = plan(files[0], entries, LAST.isoformat())
    planned = time.process_time()
    pairs = find_contradictions(ClaimIndex(entries))
    ended = time.process_time()
    if show:
        for change in changes:
            print(f"\n{change.kind}: {change.hunk.reason}\n-{change.hunk.old}\n+{change.hunk.new}")
        for pair in pairs:
            print(f"\ncontradiction ({pair.newer.attribute}):")
            print(f"  {pair.older.entry.citation}: {pair.older.sentence}")
            print(f"  {pair.newer.entry.citation}: {pair.newer.sentence}")
    counts = Counter(change.kind for change in changes)
    return {
        "entries": len(entries),
        "cpu_s": {
            "read": round(read - started, 2),
            "consolidate": round(planned - read, 2),
            "contradictions": round(ended - planned, 2),
        },
        "found": {kind: counts[kind] for kind in KINDS} | {"contradiction": len(pairs)},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default=",".join((*SETS, "sample")))
    parser.add_argument("--records", type=int, default=2_500)
    parser.add_argument("--first", type=int, default=0, help="the first record of MEMORY.md, 0-9")
    parser.add_argument("--show", action="store_true", help="print the findings too")
    options = parser.parse_args()
    body: dict[str, Any] = {"records": options.records, "days": DAYS, "sets": {}, "inputs": {}}
    for name in options.sets.split(","):
        print(f"== {name}", flush=True)
        files = sample() if name == "sample" else data_set(name, options.records, options.first)
        body["sets"][name] = found = measure(files, show=options.show)
        found["judged_wrong"] = JUDGED_WRONG[name]
        print(json.dumps(found), flush=True)
    for name, make in INPUTS.items():
        body["inputs"][name] = found = measure(make())
        print(name, json.dumps(found), flush=True)
    slow = [
        name
        for name, found in (body["sets"] | body["inputs"]).items()
        if sum(found["cpu_s"].values()) > max(1.0, MOST_SECONDS * found["entries"])
    ]
    body["checks"] = {"slower than the limit": slow, "limit_s_per_entry": MOST_SECONDS}
    write_result("consolidation", "python bench/consolidation.py", sys.executable, body)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
