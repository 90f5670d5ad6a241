"""`clawmark history`: list the versions of the memory files, what changed, and who changed it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from clawmark.cli.arguments import count, some_text
from clawmark.cli.as_json import as_json
from clawmark.cli.layout import fitted, plural
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import columns, emit, note, one_line, paint, place, say, say_diff
from clawmark.engine.versions.workspace_history import HistoryEntry, WorkspaceHistory
from clawmark.history.history import count_changed_lines
from clawmark.history.line_history import LineVersion
from clawmark.memory import Memory
from clawmark.model.provenance import Origin
from clawmark.model.values import Citation, parse_citation

SHOWN_FILES = 5
"""Files of a version that are listed; --json has all of them."""
COUNTED_FILES = 50
"""Files of a version whose changed lines are counted."""
SHOWN_PAIRS = 3
"""Replaced lines of a version that are listed."""
SHORT_ID = 8

EXAMPLES = """\
examples:
  clawmark history
  clawmark history MEMORY.md -p          # with the changed lines
  clawmark history memory/projects -n 50
  clawmark history MEMORY.md#L12         # the texts that one line had

MEMORY.md and the files below memory/ are recorded after each sync that found
changes, and before this command. Transcripts and added folders are not."""


class ChangedFile(NamedTuple):
    """A file of a version; the numbers of lines are None in a version of many files."""

    path: str
    kind: str
    added: int | None = None
    removed: int | None = None


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "path",
        nargs="?",
        type=some_text,
        metavar="PATH",
        help="only the versions in which this file or folder changed; or one line of it",
    )
    parser.add_argument(
        "--count", type=count(1, 100_000), default=20, metavar="N", help="how many (default: 20)"
    )
    parser.add_argument("--patch", action="store_true", help="show the changed lines too")


def run(args: Namespace) -> int:
    path = args.path.removeprefix("./").rstrip("/") if args.path else None
    with open_memory(args) as memory:
        _note_if_off(memory)
        history = memory.history
        cited = parse_citation(path or "")
        if cited.lines is not None:
            return _show_line(history.line(cited.path, cited.start), cited, args)
        found = list(islice(history.versions(path), args.count))
        files = {entry.version.id: changed_files(history, entry) for entry in found}
        wanted = found if args.patch else []
        diffs = {one.version.id: history.diff_of(one.version, path or "") for one in wanted}
        replaced = {
            one.version.id: history.replaced(one.version, path)
            for one in found
            if path and files_match(one, path)
        }
        zone = memory.now().tzinfo
    if args.json:
        emit({"versions": [_as_json(one, files[one.version.id], diffs, replaced) for one in found]})
        return 0
    for number, entry in enumerate(found):
        if number and (args.patch or not path):
            say()
        when = datetime.fromtimestamp(entry.version.seconds, zone)
        _show(entry, files[entry.version.id], when, is_one_file=files_match(entry, path))
        if args.patch:
            say_diff(diffs[entry.version.id])
        else:
            _show_replaced(replaced.get(entry.version.id, ()), when)
    if not found:
        where = f" of {place(args.path)}" if args.path else ""
        note(f"clawmark: the history has no version{where} yet.")
    return 0


def _show_line(found: Sequence[LineVersion], cited: Citation, args: Namespace) -> int:
    """Print the texts that a line had, the newest first."""
    if args.json:
        emit({"path": cited.path, "line": cited.start, "texts": [as_json(one) for one in found]})
        return 0
    for one in found[: args.count]:
        when = f"{one.since[:10]} {one.since[11:16]}"
        head = f"{paint(one.version[:SHORT_ID], 'cyan')}  {when}"
        say("  ".join(filter(None, (head, paint(writers(one.writers), "dim")))))
        say_diff(
            "".join(
                f"{sign}{text}\n" for sign, text in (("-", one.before), ("+", one.text)) if text
            )
        )
    if not found:
        note(f"clawmark: the history has no line {cited.start} of {place(cited.path)}.")
    return 0


def files_match(entry: HistoryEntry, path: str | None) -> bool:
    """Whether a version is listed for this one file only."""
    return path is not None and all(change.path == path for change in entry.changes)


def changed_files(history: WorkspaceHistory, entry: HistoryEntry) -> list[ChangedFile]:
    """Return the files of a version with the numbers of added and removed lines."""
    if len(entry.changes) > COUNTED_FILES:
        return [ChangedFile(change.path, change.kind) for change in entry.changes]
    found = list[ChangedFile]()
    for change in entry.changes:
        before, after = history.contents(entry.version, change.path)
        added, removed = count_changed_lines(before, after)
        found.append(ChangedFile(path=change.path, kind=change.kind, added=added, removed=removed))
    return found


def _show(
    entry: HistoryEntry, files: Sequence[ChangedFile], when: datetime, *, is_one_file: bool
) -> None:
    who = writers(entry.writers)
    head = f"{paint(entry.version.id[:SHORT_ID], 'cyan')}  {when:%Y-%m-%d %H:%M}"
    if is_one_file:
        say("  ".join(filter(None, (head, _numbers(files[0]), paint(who, "dim")))))
        return
    say("  ".join(filter(None, (head, paint(who, "dim")))))
    for file in files[:SHOWN_FILES]:
        say(f"  {_numbers(file)}  {place(file.path)}")
    if len(files) > SHOWN_FILES:
        say(paint(f"  … and {plural(len(files) - SHOWN_FILES, 'more file')}", "dim"))


def _show_replaced(pairs: Sequence[tuple[str, str]], until: datetime) -> None:
    """Say which lines replaced which: now B, was A until that version."""
    for before, after in pairs[:SHOWN_PAIRS]:
        end = f" until {until:%Y-%m-%d %H:%M}"
        say(f"  now {_quoted(after, columns() - len('  now '))}")
        was = _quoted(before, columns() - len("  was ") - len(end))
        say(paint(f"  was {was}{end}", "dim"))
    if len(pairs) > SHOWN_PAIRS:
        more = plural(len(pairs) - SHOWN_PAIRS, "more replaced line")
        say(paint(f"  … and {more}; -p shows them", "dim"))


def _quoted(text: str, width: int) -> str:
    return f'"{fitted(one_line(text), max(20, width - 2))}"'


def _numbers(file: ChangedFile) -> str:
    if file.added is None:
        return f"{file.kind:<7}"
    return f"{file.kind:<7}  {f'+{file.added}':>5} {f'-{file.removed}':>5}"


def writers(origins: Sequence[Origin]) -> str:
    """Return who wrote something, as `flush by the agent, remember by the user`."""
    return ", ".join(dict.fromkeys(f"{one.kind} by the {one.actor}" for one in origins))


def _as_json(
    entry: HistoryEntry,
    files: Sequence[ChangedFile],
    diffs: dict[str, str],
    replaced: dict[str, tuple[tuple[str, str], ...]],
) -> dict[str, object]:
    version = entry.version
    body: dict[str, object] = {
        "id": version.id,
        "time": datetime.fromtimestamp(version.seconds).astimezone().isoformat(),
        "reason": version.reason,
        "changes": [
            {
                "path": one.path,
                "kind": one.kind,
                "addedLines": one.added,
                "removedLines": one.removed,
            }
            for one in files
        ],
        "writers": [
            {"actor": one.actor, "kind": one.kind, "trust": one.trust} for one in entry.writers
        ],
    }
    if version.id in replaced:
        body["replaced"] = [{"was": before, "now": after} for before, after in replaced[version.id]]
    return body | ({"diff": diffs[version.id]} if version.id in diffs else {})


def _note_if_off(memory: Memory) -> None:
    if not memory.settings.history.enabled:
        note("clawmark: memory.history.enabled is false; nothing is recorded.")
