"""`clawmark eval`: measure how well questions with known answers are found.

Compares two configurations with `--set` or `--against`."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import TextIO

from clawmark.agent.session.setup import needed_model
from clawmark.cli.arguments import UsageError, count, some_text
from clawmark.cli.layout import plural, table
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import emit, is_terminal, note, one_line, paint, plain, say
from clawmark.cli.settings.values import find_key
from clawmark.config.load import load
from clawmark.config.paths import resolve_places
from clawmark.config.search_keys import with_value
from clawmark.engine.maintenance.evaluate import Question, changed, read_questions
from clawmark.memory import Memory
from clawmark.model.errors import CompletionError
from clawmark.model.reports import Evaluation, Judged

SHOWN = 20
MAX_FILE = 64 * 1024 * 1024
FIGURES = ("recall_1", "recall_3", "recall_6", "mrr", "seen")

EXAMPLES = """\
examples:
  clawmark eval --make questions.jsonl -n 50   # a model writes the questions
  clawmark eval questions.jsonl
  clawmark eval questions.jsonl --set query.minScore=0.2
  clawmark eval questions.jsonl --against other.json

Each line of the file: {"question": "…", "path": "memory/2026-02-24.md#L3-L5"};
"text" can replace "path". Correct what a model wrote."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "questions", type=some_text, metavar="FILE", help="the questions, one JSON object per line"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="compare with this setting changed; may be repeated",
    )
    parser.add_argument(
        "--against", type=some_text, metavar="FILE", help="compare with this configuration file"
    )
    parser.add_argument(
        "--provider", type=some_text, metavar="NAME", help="the embedding provider: auto, none, …"
    )
    parser.add_argument(
        "--make",
        action="store_true",
        help="let a model write questions about your notes into FILE",
    )
    parser.add_argument(
        "-n",
        type=count(1, 10_000),
        metavar="N",
        help="with --make: how many questions (default: 50)",
    )
    parser.add_argument(
        "--model",
        type=some_text,
        metavar="NAME",
        help="with --make: the model (default: the configured one)",
    )


def run(args: Namespace) -> int:
    if args.make:
        return _make(args)
    if args.n is not None or args.model:
        raise UsageError("-n and --model need --make.")
    if args.set and args.against:
        raise UsageError("--set and --against cannot be combined; put the settings into the file.")
    overrides = dict(_setting(text) for text in args.set)
    questions = _read(args.questions)
    with open_memory(args, provider=args.provider) as memory:
        first = memory.evaluate(questions, progress=_progress(args))
        if not args.set and not args.against:
            return _show_one(first, args)
        second = _evaluate_other(memory, questions, overrides, args)
    return _show_two(first, second, args)


# --- reading


def _read(name: str) -> list[Question]:
    try:
        with open(name, encoding="utf-8", errors="replace") as file:
            text = file.read(MAX_FILE + 1)
    except OSError as error:
        raise UsageError(
            f"{name} could not be read: {error.strerror}.",
            hint="`clawmark eval --make FILE` writes one.",
        ) from None
    if len(text) > MAX_FILE:
        raise UsageError(f"{name} is larger than {MAX_FILE >> 20} MB.")
    return read_questions(text.split("\n"), name)


def _setting(text: str) -> tuple[str, object]:
    """Parse KEY=VALUE; a value that is not JSON is text."""
    name, sign, value = text.partition("=")
    if not sign or not name.strip():
        raise UsageError(f"--set takes KEY=VALUE, not {text[:80]!a}.")
    try:
        parsed: object = json.loads(value)
    except ValueError:
        parsed = value
    return find_key(name.strip()).name, parsed


def _evaluate_other(
    memory: Memory, questions: list[Question], overrides: dict[str, object], args: Namespace
) -> Evaluation:
    """Ask the same questions with the other configuration, without changing the user's index.

    If only query settings differ, the same index is used; otherwise a temporary one is built."""
    places = resolve_places(args.workspace, args.agent, args.against or args.config, args.state_dir)
    loaded = load(places, overrides)
    mine, other = memory.settings.memory_search, loaded.settings.memory_search
    if places.index_path == memory.places.index_path and other._replace(query=mine.query) == mine:
        with Memory(places, loaded, provider=args.provider, background=False) as second:
            return second.evaluate(questions, progress=_progress(args))
    note(
        "clawmark: the other configuration needs another index; it is built in a temporary folder."
    )
    with tempfile.TemporaryDirectory(prefix="clawmark-eval-") as folder:
        temporary = places._replace(index_path=os.path.join(folder, "index.sqlite"))
        # --provider applies to the first configuration only.
        settings = with_value(loaded.settings, "memorySearch.store.uri", "")
        with Memory(temporary, loaded._replace(settings=settings), background=False) as second:
            second.sync()
            return second.evaluate(questions, progress=_progress(args))


def _progress(args: Namespace) -> Callable[[int, int], None] | None:
    if args.json or not is_terminal(sys.stderr):
        return None

    def draw(done: int, total: int) -> None:
        end = "\r\x1b[2K" if done == total else ""
        sys.stderr.write(f"\r\x1b[2Kquestions  {done:,}/{total:,}{end}")
        sys.stderr.flush()

    return draw


# --- showing


def _show_one(result: Evaluation, args: Namespace) -> int:
    if args.json:
        emit({"questions": len(result.questions), **_as_json(result)})
        return 0
    _notes(result)
    say("\n".join(table([_head(), _row("", result)], right=range(1, 6))))
    missed = [one for one in result.questions if one.recall_6 < 1]
    if missed:
        say(f"\n{paint('Not found', 'bold')} (or only in part) among the first 6:")
        _list(
            [
                f"  {_rank(one):>3}  {one_line(one.question)}  {paint(_expected(one), 'dim')}"
                for one in missed
            ]
        )
    return 0


def _show_two(first: Evaluation, second: Evaluation, args: Namespace) -> int:
    pairs = changed(first, second)
    if args.json:
        different = [
            {"question": one.question, "before": _one(one), "after": _one(two)}
            for one, two in pairs
        ]
        body = {"configured": _as_json(first), "other": _as_json(second), "changed": different}
        emit({"questions": len(first.questions), **body})
        return 0
    _notes(first)
    _notes(second)
    difference = [f"{getattr(second, name) - getattr(first, name):+.3f}" for name in FIGURES]
    rows = [_head(), _row("configured", first), _row("other", second), ("change", *difference, "")]
    say("\n".join(table(rows, right=range(1, 6))))
    if not pairs:
        say("\nNo question is answered differently.")
        return 0
    say(
        f"\n{paint(plural(len(pairs), 'question'), 'bold')} answered differently (rank of the "
        f"first correct hit, and share of the answer shown):"
    )
    lines = []
    for one, two in sorted(pairs, key=lambda pair: _worth(pair[1]) - _worth(pair[0])):
        ranks = f"{_rank(one):>3} → {_rank(two):<3} {one.seen:.1f} → {two.seen:.1f}"
        lines.append(
            f"  {paint(ranks, 'red' if _worth(two) < _worth(one) else 'green')}  "
            f"{one_line(one.question)}"
        )
    _list(lines)
    return 0


def _notes(result: Evaluation) -> None:
    if result.degraded:
        note(f"clawmark: {plain(result.degraded)}")
    if result.missing:
        some = ", ".join(result.missing[:3]) + (" …" if len(result.missing) > 3 else "")
        note(
            f"clawmark: {plural(len(result.missing), 'expected path')} not in the memory: "
            f"{plain(some)}"
        )


def _list(lines: list[str]) -> None:
    for line in lines[:SHOWN]:
        say(line)
    if len(lines) > SHOWN:
        say(f"  … and {len(lines) - SHOWN} more; --json has them all")


def _head() -> tuple[str, ...]:
    return ("", "recall@1", "recall@3", "recall@6", "mrr", "seen", "questions")


def _row(name: str, result: Evaluation) -> tuple[str, ...]:
    return (
        name,
        *(f"{getattr(result, figure):.3f}" for figure in FIGURES),
        str(len(result.questions)),
    )


def _as_json(result: Evaluation) -> dict[str, object]:
    names = {"recall_1": "recall@1", "recall_3": "recall@3", "recall_6": "recall@6"}
    body: dict[str, object] = {names.get(name, name): getattr(result, name) for name in FIGURES}
    body["results"] = [{"question": one.question, **_one(one)} for one in result.questions]
    if result.missing:
        body["missing"] = list(result.missing)
    if result.degraded:
        body["degraded"] = result.degraded
    return body


def _one(judged: Judged) -> dict[str, object]:
    return {
        "expected": list(judged.expected),
        "rank": judged.rank or None,
        "recall@6": judged.recall_6,
        "seen": judged.seen,
        "found": list(judged.found),
    }


def _rank(judged: Judged) -> str:
    return str(judged.rank) if judged.rank else "–"


def _worth(judged: Judged) -> float:
    return judged.recall_6 * 4 + judged.seen * 2 + (1 / judged.rank if judged.rank else 0.0)


def _expected(judged: Judged) -> str:
    return one_line(", ".join(judged.expected))[:80]


# --- making


def _make(args: Namespace) -> int:
    """Write a file of questions; those written before the model fails are kept."""
    if args.set or args.against:
        raise UsageError("--set and --against cannot be combined with --make.")
    wanted, made = args.n or 50, 0
    failure: CompletionError | None = None
    with open_memory(args, provider=args.provider) as memory:
        completer = needed_model(
            memory.settings, os.environ, "write the questions", args.model or ""
        )
        with _new_file(args.questions) as file:
            try:
                for question in memory.make_questions(wanted, completer=completer):
                    file.write(json.dumps(question, ensure_ascii=False) + "\n")
                    file.flush()
                    made += 1
            except CompletionError as error:
                failure = error
    if not made:
        os.unlink(args.questions)
        if failure is not None:
            raise failure
    if failure is not None:
        note(f"clawmark: {plain(failure.message)} {plain(failure.hint)}".rstrip())
    if args.json:
        emit({"file": args.questions, "questions": made, "wanted": wanted})
    elif made:
        say(
            f"{plural(made, 'question')} written to {plain(args.questions)}; read and correct "
            f"them before relying on them"
        )
    else:
        say(
            "No question could be written: the notes have no passage that is long enough, or the "
            "model did not quote one."
        )
    return 0 if made else 1


def _new_file(name: str) -> TextIO:
    """Create a file; an existing one is not overwritten, because it may hold corrections."""
    try:
        return open(name, "x", encoding="utf-8")
    except FileExistsError:
        raise UsageError(f"{name} exists already.", hint="Choose the name of a new file.") from None
    except OSError as error:
        raise UsageError(f"{name} could not be written: {error.strerror}.") from None
