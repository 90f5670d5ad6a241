"""Carry out `config set`, `config unset` and `config edit`, and report what changed."""

from __future__ import annotations

import os
import sys
import tempfile
from argparse import Namespace

from clawmark.cli.arguments import UsageError
from clawmark.cli.as_json import as_json
from clawmark.cli.editor import editor_command, make_copy, run_editor
from clawmark.cli.layout import short_path
from clawmark.cli.output import emit, note, one_line, paint, say, warn
from clawmark.cli.settings.file import (
    Change,
    Target,
    find_target,
    parse_value,
    read_text,
    replace_text,
    set_key,
    unset_key,
)
from clawmark.cli.settings.values import HIDDEN, find_key, shown_value, written
from clawmark.config.paths import Places, resolve_places
from clawmark.config.schema.key import Key
from clawmark.config.unsupported import UNSUPPORTED
from clawmark.model.errors import ClawmarkError, ConfigError

MAX_STDIN = 64 * 1024
NEW_FILE = "{\n  // The reference of every key: clawmark config schema\n}\n"


def change_settings(args: Namespace) -> int:
    """Run one of the three actions."""
    is_named = args.config is not None or bool(os.environ.get("CLAWMARK_CONFIG"))
    try:
        target = find_target(_places(args, args.config), is_named=is_named)
    except ConfigError as error:
        is_ours = is_named or os.path.basename(error.file) != "openclaw.json"
        if args.action != "edit" or not error.file or not is_ours:
            raise
        target = _broken_target(error.file, args)  # `edit` is how it can be repaired
    if args.action == "edit":
        return _edit(target, args)
    key = _known_key(args.key)
    if args.action == "unset":
        return _report(unset_key(target, key, args.agent), key, args)
    value = parse_value(key, _from_stdin() if args.value == "-" else args.value)
    return _report(set_key(target, key, value, args.agent), key, args)


def _places(args: Namespace, config: str | None) -> Places:
    return resolve_places(args.workspace, args.agent, config, args.state_dir, must_exist=False)


def _broken_target(file: str, args: Namespace) -> Target:
    """Return a file that cannot be read as a configuration, with the places that an empty one
    leads to.
    """
    with tempfile.TemporaryDirectory() as folder:
        empty = os.path.join(folder, "empty.json")
        with open(empty, "w", encoding="utf-8") as out:
            out.write("{}")
        places = _places(args, empty)
    return Target(file, places._replace(config_file=file, config=None))


def _known_key(name: str) -> Key:
    for entry in UNSUPPORTED:
        if f"{name}.".startswith(f"{entry.name}."):
            raise UsageError(f"{name[:80]} has no effect: {entry.reason}.")
    return find_key(name)


def _from_stdin() -> str:
    text = sys.stdin.buffer.read(MAX_STDIN + 1)
    if len(text) > MAX_STDIN:
        raise UsageError(f"The value is larger than {MAX_STDIN:,} bytes.")
    return text.decode(errors="replace").rstrip("\r\n")


def _report(change: Change, key: Key, args: Namespace) -> int:
    """Print the value that the key has now, and where it comes from."""
    value: object = HIDDEN if key.is_secret else None
    origin = ""
    if change.loaded is not None:
        warn(change.loaded.warnings)
        value, origin = shown_value(change.loaded, key), change.loaded.origin(key.name)
    if args.json:
        body = {"key": key.name, "value": as_json(value), "origin": origin}
        emit({**body, "file": change.file, "changed": change.is_changed})
        return 0
    where = short_path(change.file)
    if args.action == "unset" and not change.is_changed:
        say(f"{key.name} is not set in {where}.")
        return 0
    shown = "" if change.loaded is None else f" = {one_line(written(value))}"
    say(f"{paint(key.name, 'bold')}{shown}")
    say(paint(f"{'Written to' if change.is_changed else 'Unchanged in'} {where}.", "dim"))
    kind, _, path = origin.partition(" ")
    if path != change.file and (args.action == "set" or kind != "default"):
        note(f"clawmark: the value comes from: {kind} {short_path(path)}".rstrip())
    if change.loaded is None:
        note("clawmark: other settings in the file are invalid; `clawmark doctor` names them.")
    return 0


def _edit(target: Target, args: Namespace) -> int:
    """Edit the whole file; an invalid text is not written, and the edited copy is kept."""
    command = editor_command(os.environ)
    before = read_text(target.file)
    start = (before or NEW_FILE).encode()
    name = os.path.basename(target.file)
    copy = make_copy(target.places.state_dir, name, start)
    data = run_editor(command, copy, start)
    try:
        after = data.decode()
        change = (
            Change(target.file, False, None)
            if data == start
            else replace_text(target, before, after)
        )
    except UnicodeDecodeError:
        raise ConfigError("The edited text is not UTF-8.", hint=copy.hint) from None
    except ClawmarkError as error:
        error.hint = copy.hint
        raise
    copy.delete()
    warn(change.loaded.warnings if change.loaded is not None else ())
    if args.json:
        emit({"file": change.file, "changed": change.is_changed})
    else:
        is_now = "is written" if change.is_changed else "is unchanged"
        say(f"{paint(short_path(change.file), 'bold')} {is_now}.")
    return 0
