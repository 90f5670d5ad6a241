"""`clawmark demo`: index and search a sample memory, without touching the user's state.

The workspace and its state are in one temporary folder, which is removed at the end. With
`--keep DIR` it stays, and `--state-dir DIR` is enough to use it with other commands."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import tempfile
from argparse import ArgumentParser, Namespace
from datetime import date

from clawmark.cli.arguments import UsageError, some_text
from clawmark.cli.as_json import as_json, found_as_json
from clawmark.cli.commands.search import hit_lines, summary
from clawmark.cli.layout import duration, plural, short_path
from clawmark.cli.output import emit, paint, plain, say
from clawmark.cli.progress import ProgressBar
from clawmark.memory import Memory
from clawmark.model.sync_report import SyncReport
from clawmark.model.values import Found
from clawmark.workspace.sample import QUESTIONS, write_sample

EXAMPLES = """\
examples:
  clawmark demo
  clawmark demo --keep ~/clawmark-demo"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--keep",
        type=some_text,
        metavar="DIR",
        help="keep the demo in this new or empty folder (default: a temporary folder)",
    )


def run(args: Namespace) -> int:
    if any(
        value is not None for value in (args.workspace, args.agent, args.config, args.state_dir)
    ):
        raise UsageError(
            "The demo uses its own workspace and state.",
            hint="Choose a folder for them with --keep DIR.",
        )
    folder = _new_folder(args.keep)
    is_done = False
    try:
        _show_demo(folder, is_kept=args.keep is not None, as_json=args.json)
        is_done = True
    finally:
        if args.keep is None or not is_done:
            shutil.rmtree(folder, ignore_errors=True)
    return 0


def _show_demo(folder: str, *, is_kept: bool, as_json: bool) -> None:
    workspace = os.path.join(folder, "workspace")
    os.makedirs(workspace, exist_ok=True)
    written = write_sample(workspace, date.today())
    _write_config(folder, workspace)
    if not as_json:
        where = f" in {short_path(workspace)}" if is_kept else ""
        say(f"{paint('A sample memory', 'bold')}: {plural(len(written), 'file')}{where}")
    config = os.path.join(folder, "clawmark.json")
    # The built-in embedder even if API keys are set: a demo sends nothing.
    with Memory.open(workspace, state_dir=folder, config=config, provider="default") as memory:
        report = _index(memory, quiet=as_json)
        answers = [
            (question.text, memory.search(question.text, max_results=3)) for question in QUESTIONS
        ]
    if as_json:
        _emit(folder if is_kept else None, report, answers)
        return
    _say_indexed(report)
    for question, found in answers:
        _say_answer(question, found)
    _say_next(folder if is_kept else None, QUESTIONS[0].text)


def _index(memory: Memory, *, quiet: bool) -> SyncReport:
    """Index with the instant vectors first, then with the better ones."""
    with ProgressBar(enabled=not quiet) as bar:
        progress = bar.update if bar.is_shown else None
        first = memory.sync(progress=progress, instant_only=True)
        rest = memory.sync(progress=progress)
    return rest._replace(
        added=first.added,
        chunks=max(first.chunks, rest.chunks),
        embedded=first.embedded + rest.embedded,
        seconds=first.seconds + rest.seconds,
        degraded=rest.degraded or first.degraded,
    )


def _say_indexed(report: SyncReport) -> None:
    parts = [
        plural(report.added, "file"),
        plural(report.chunks, "passage"),
        f"{plural(report.embedded, 'vector')} made on this machine",
    ]
    say(f"{paint('Indexed', 'bold')}: {' · '.join(parts)} · {duration(report.seconds)}")
    if report.degraded is not None:
        say(paint(f"  {plain(report.degraded.reason)} {plain(report.degraded.fix)}", "yellow"))
    say()


def _say_answer(question: str, found: Found) -> None:
    say(f"{paint('?', 'yellow')} {paint(question, 'bold')}")
    if found.hits:
        say("\n".join(hit_lines(found.hits[0], question, indent="  ")))
    elif found.nothing is not None:
        say(f"  {plain(found.nothing.message)}")
    say(f"  {paint(summary(found), 'dim')}\n")


def _say_next(folder: str | None, question: str) -> None:
    say(paint("Try it yourself", "bold"))
    if folder is None:
        say("  clawmark demo --keep ~/clawmark-demo    # the same, kept")
    say(f"  demo={'~/clawmark-demo' if folder is None else shlex.quote(folder)}")
    say('  clawmark search --state-dir $demo "your own question"')
    say(f'  clawmark search --state-dir $demo --explain "{question}"')
    say('  clawmark remember --state-dir $demo "Ines moves to Lisbon in May"')
    say("  clawmark status --state-dir $demo")
    say()
    say(paint("Create your own memory", "bold"))
    say("  clawmark init ~/agent")


def _emit(folder: str | None, report: SyncReport, answers: list[tuple[str, Found]]) -> None:
    rows = [{"question": question, **found_as_json(found)} for question, found in answers]
    emit({"folder": folder, "index": as_json(report), "answers": rows})


def _new_folder(given: str | None) -> str:
    if given is None:
        return os.path.realpath(tempfile.mkdtemp(prefix="clawmark-demo-"))
    folder = os.path.abspath(os.path.expanduser(given))
    try:
        os.makedirs(folder, exist_ok=True)
        if os.listdir(folder):
            raise UsageError(f"{folder} is not empty.", hint="Choose a new or empty folder.")
    except OSError as error:
        raise UsageError(f"{folder} cannot be used: {error.strerror}.") from None
    return os.path.realpath(folder)


def _write_config(folder: str, workspace: str) -> None:
    """Name the workspace, so that commands find it even in a folder that has a memory."""
    body = {
        "agents": {"defaults": {"workspace": workspace, "memorySearch": {"provider": "default"}}}
    }
    with open(os.path.join(folder, "clawmark.json"), "w", encoding="utf-8") as file:
        file.write(json.dumps(body, indent=2) + "\n")
