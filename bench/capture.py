"""Two scripted days of 40 turns each: what the plugin memory-lancedb captures, and what it recalls.

    python bench/capture.py [--tiers static,local]

Each turn goes through the hooks of the real plugin: automatic recall before it, automatic capture
after it, with a real LanceDB table. The turns and what should be kept and recalled are in
`bench/data/capture`. The rules were written with day 1 in view; day 2 was measured afterwards.
After the day, the tool `memory_recall` is asked questions, two of which the memory cannot answer.
Goes out: a table, and `bench/results/capture.json`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from harness import table, verdict, write_result

from clawmark.agent.plugins.base import PluginContext, PluginSession, Turn, TurnMessage
from clawmark.agent.plugins.lancedb import make
from clawmark.agent.plugins.lancedb.plugin import LancePlugin
from clawmark.agent.prompt.recall import parse_block
from clawmark.agent.tools.policy import access_of
from clawmark.backends.lancedb.entries import Captured
from clawmark.backends.lancedb.writing import says_the_same
from clawmark.embed.base import Embedder
from clawmark.embed.choose import choose
from clawmark.embed.embedder_options import EmbedderContext, EmbeddingOptions
from clawmark.store.similarity import cosines
from clawmark.text.secrets.redact import Redactor
from clawmark.workspace import Workspace

DATA = Path(__file__).resolve().parent / "data" / "capture"
DAYS = ("day-1", "day-2")
KEY = "agent:main:main"
START = datetime(2026, 11, 16, 8, 0, tzinfo=UTC)
RECALLED_BEFORE = ("window seat", "aisle seat", "short answers")
"""What stands in recalled blocks and reminders of the script, and nowhere else."""
LIMITS = {
    "capture_precision": 0.9,
    "capture_recall": 0.85,
    "recall_precision": 0.5,
    "recall_recall": 0.6,
    "asked_first": 0.8,
}


class Script(NamedTuple):
    """One day: turns with what should be kept and recalled, and questions for the evening."""

    turns: list[dict[str, Any]]
    questions: list[dict[str, Any]]


class Outcome(NamedTuple):
    """What one day came to."""

    figures: dict[str, float]
    counts: dict[str, int]
    mistakes: list[str]
    entries: tuple[Captured, ...]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tiers", default="static,local", help="embedders, separated by commas")
    given = parser.parse_args()
    rows, bodies, good = [("day", "embedder", "what", "share", "limit", "")], [], True
    for day in DAYS:
        for tier in given.tiers.split(","):
            with tempfile.TemporaryDirectory(prefix="clawmark-capture-") as folder:
                outcome = run_day(read_script(day), Path(folder), embedder_of(tier, folder))
            body: dict[str, Any] = {"day": day, "embedder": tier, **outcome.figures}
            bodies.append(body | {"counts": outcome.counts, "mistakes": outcome.mistakes})
            for name, limit in LIMITS.items():
                judged = verdict(outcome.figures[name], limit, at_least=True)
                good = good and judged == "ok"
                share = f"{outcome.figures[name]:.3f}"
                rows.append((day, tier, name, share, f"≥ {limit:g}", judged))
            clean = not any(outcome.counts[name] for name in ("secrets", "duplicates", "recalled"))
            good = good and clean
            rows.append((day, tier, "no secret, duplicate, recalled text", str(clean), "", ""))
    print(table(rows))
    write_result("capture", "python bench/capture.py", sys.executable, {"days": bodies})
    return 0 if good else 1


def read_script(day: str) -> Script:
    """Read one day from `bench/data/capture`."""
    lines = (DATA / f"{day}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return Script(
        [row for row in rows if "turn" in row], [row for row in rows if "question" in row]
    )


def embedder_of(tier: str, folder: str) -> Embedder:
    """Return the static table, or the transformer of the extra `local`."""
    context = EmbedderContext({}, folder, folder, lambda *names: 0)
    return choose(EmbeddingOptions(provider=tier), context).embedders[-1]


def run_day(script: Script, folder: Path, embedder: Embedder) -> Outcome:
    """Send every turn through the hooks of the plugin, then ask the questions."""
    clock = iter(START + timedelta(minutes=10 * number) for number in range(1000))
    plugin = make(context_of(folder, embedder, lambda: next(clock)))
    hooks = plugin.hooks()
    assert hooks.before_agent_start and hooks.agent_end
    session = PluginSession(KEY, access_of(KEY))
    tally = _Tally()
    known: set[str] = set()
    for row in script.turns:
        block = hooks.before_agent_start(session, row["user"])
        texts = [item.text for item in parse_block(block)] if block else []
        tally.recalled(row, texts)
        messages = (TurnMessage("user", row["user"]), TurnMessage("assistant", "Noted."))
        hooks.agent_end(session, Turn(messages))
        entries = plugin.backend.files.look().entries
        tally.captured(row, [entry for entry in entries if entry.id not in known])
        known = {entry.id for entry in entries}
    for row in script.questions:
        tally.asked(row, _ask(plugin, session, row["question"]))
    entries = plugin.backend.files.look().entries
    plugin.close()
    return tally.outcome(entries, embedder)


def context_of(folder: Path, embedder: Embedder, now: Callable[[], datetime]) -> PluginContext:
    """Return what the plugin is made with, over a new workspace."""
    (folder / "workspace" / "memory").mkdir(parents=True, exist_ok=True)
    return PluginContext(
        name="memory-lancedb",
        config={"autoCapture": True},
        agent_id="main",
        state_dir=str(folder / "state"),
        workspace=Workspace(str(folder / "workspace"), lock_dir=str(folder / "state" / "locks")),
        redactor=Redactor(),
        environ={},
        now=now,
        search=_not_used,
        read=_not_used,
        embedder=lambda: embedder,
    )


def _not_used(*_: object, **__: object) -> Any:
    raise AssertionError("the plugin searches its own entries")


def _ask(plugin: LancePlugin, session: PluginSession, question: str) -> list[str]:
    (tool,) = plugin.tools(session, append=False)
    answer: Any = tool.call({"query": question})
    return [memory["text"] for memory in answer["memories"]]


class _Tally:
    """Counts right and wrong captures and recalls."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = dict.fromkeys(
            (
                "expected",
                "captured",
                "right",
                "right_category",
                "recall_expected",
                "recall_shown",
                "recall_right",
                "unasked_blocks",
                "questions",
                "first_right",
                "found",
                "unanswerable",
                "kept_quiet",
            ),
            0,
        )
        self.mistakes: list[str] = []

    def captured(self, row: dict[str, Any], new: list[Captured]) -> None:
        self.counts["expected"] += len(row["keep"])
        self.counts["captured"] += len(new)
        left = list(new)
        for wanted in row["keep"]:
            found = next((one for one in left if _has(one.text, wanted["has"])), None)
            if found is None:
                self.mistakes.append(f"turn {row['turn']}: not captured: {row['user'][:80]}")
                continue
            left.remove(found)
            self.counts["right"] += 1
            self.counts["right_category"] += found.category == wanted["category"]
        self.mistakes += [f"turn {row['turn']}: captured: {one.text[:80]}" for one in left]

    def recalled(self, row: dict[str, Any], texts: list[str]) -> None:
        wanted = row["recall"]
        self.counts["recall_expected"] += len(wanted)
        self.counts["recall_shown"] += len(texts)
        self.counts["recall_right"] += sum(_has(text, wanted) for text in texts)
        self.counts["unasked_blocks"] += bool(texts and not wanted)
        for text in texts:
            if not _has(text, wanted):
                self.mistakes.append(f"turn {row['turn']}: recalled: {text[:80]}")
        for one in wanted:
            if not any(one in text for text in texts):
                self.mistakes.append(f"turn {row['turn']}: not recalled: {one}")

    def asked(self, row: dict[str, Any], texts: list[str]) -> None:
        wanted = row["recall"]
        if not wanted:
            self.counts["unanswerable"] += 1
            self.counts["kept_quiet"] += not texts
            return
        self.counts["questions"] += 1
        self.counts["first_right"] += _has("".join(texts[:1]), wanted)
        self.counts["found"] += any(_has(text, wanted) for text in texts)
        if not _has("".join(texts[:1]), wanted):
            self.mistakes.append(f"question: {row['question']} → {texts[:1]}")

    def outcome(self, entries: tuple[Captured, ...], embedder: Embedder) -> Outcome:
        counts = self.counts
        texts = [entry.text for entry in entries]
        vectors = embedder.embed_texts(texts)
        counts["secrets"] = sum(bool(Redactor().kind_in(text)) for text in texts)
        counts["secrets"] += sum("swordfish" in text or "Tr0ub4dor" in text for text in texts)
        counts["recalled"] = sum(_has(text, RECALLED_BEFORE) for text in texts)
        counts["duplicates"] = sum(
            says_the_same(cosines(vectors[one], [vectors[other]])[0], texts[one], texts[other])
            for one, other in combinations(range(len(texts)), 2)
        )
        figures = {
            "capture_precision": counts["right"] / max(1, counts["captured"]),
            "capture_recall": counts["right"] / counts["expected"],
            "category": counts["right_category"] / max(1, counts["right"]),
            "recall_precision": counts["recall_right"] / max(1, counts["recall_shown"]),
            "recall_recall": counts["recall_right"] / counts["recall_expected"],
            "asked_first": counts["first_right"] / counts["questions"],
            "asked_found": counts["found"] / counts["questions"],
        }
        rounded = {name: round(share, 3) for name, share in figures.items()}
        return Outcome(rounded, counts, self.mistakes, entries)


def _has(text: str, words: list[str] | tuple[str, ...]) -> bool:
    return any(word in text for word in words)


if __name__ == "__main__":
    sys.exit(main())
