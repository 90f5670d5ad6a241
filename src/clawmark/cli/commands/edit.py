"""`clawmark edit`: edit a memory file in your editor.

The editor gets a copy. The file is replaced only if it is still as it was read; otherwise the
edited copy is kept."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from clawmark.cli.arguments import some_text
from clawmark.cli.editor import editor_command, make_copy, run_editor
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import emit, paint, place, say
from clawmark.memory import Memory
from clawmark.model.errors import NotText, WorkspaceError
from clawmark.model.provenance import Origin
from clawmark.model.values import parse_citation
from clawmark.text.line_diff import line_changes

EXAMPLES = """\
examples:
  clawmark edit MEMORY.md
  clawmark edit memory/2026-11-15.md#L12   # at line 12, in vi, nano, emacs
  EDITOR='code --wait' clawmark edit memory/projects/ferry.md

The editor is $VISUAL or $EDITOR. If the file changes while you edit it, it is
not overwritten: your edited copy is kept, and the message says where."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "path",
        type=some_text,
        metavar="PATH",
        help="a memory file, which is created if it does not exist, or a citation",
    )
    parser.add_argument(
        "--force", action="store_true", help="write the file even if the edited text is empty"
    )


def run(args: Namespace) -> int:
    named = parse_citation(args.path)
    command = editor_command(os.environ)
    with open_memory(args) as memory:
        current = memory.workspace.read_exact(named.path)
        before, base = ("", "") if current is None else current
        name = os.path.basename(named.path)
        copy = make_copy(memory.places.state_dir, name, before.encode())
        data = run_editor(command, copy, before.encode(), line=named.start)
        if data == before.encode():
            copy.delete()
            return _report(args, named.path, before, before)
        try:
            after = _write(memory, named.path, data, base, force=args.force)
        except WorkspaceError as error:
            error.hint = copy.hint
            raise
        copy.delete()
    return _report(args, named.path, before, after)


def _write(memory: Memory, path: str, data: bytes, base: str, *, force: bool) -> str:
    """Replace the file and return its new text; the errors of `Memory.replace`."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise NotText(f"The text for {place(path)} is not UTF-8; it was not written.") from None
    if base and not text.strip() and not force:
        raise WorkspaceError(
            f"The text for {place(path)} is empty, so it was not written; --force writes it."
        )
    # A person has seen the whole file: dropping most of its lines is intended.
    memory.replace(path, text, base, force=True, origin=Origin("user", "edited", "owner"))
    return text


def _report(args: Namespace, path: str, before: str, after: str) -> int:
    added, removed = changed_lines(before, after)
    if args.json:
        changes = {"addedLines": added, "removedLines": removed}
        emit({"path": path, "changed": before != after, **changes})
    elif before == after:
        say(f"{paint(place(path), 'bold')} is unchanged.")
    else:
        say(f"{paint(place(path), 'bold')} is written: +{added} -{removed} lines.")
    return 0


def changed_lines(before: str, after: str) -> tuple[int, int]:
    """Return how many lines were added and removed."""
    compared = line_changes(before.splitlines(), after.splitlines())
    changes = [one for one in compared if one.kind != "equal"]
    added = sum(one.new_end - one.new_start for one in changes)
    return added, sum(one.old_end - one.old_start for one in changes)
