"""`clawmark config`: show and change settings. Secrets are never shown."""

# os.path and not pathlib, whose import costs 4 ms of every cold search.

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from clawmark.cli.arguments import UsageError
from clawmark.cli.as_json import as_json
from clawmark.cli.layout import facts, short_path, table, wrap
from clawmark.cli.output import columns, emit, one_line, paint, plain, say, warn
from clawmark.cli.settings.change import change_settings
from clawmark.cli.settings.values import find_key, shown_value, written
from clawmark.config.check import allowed_values
from clawmark.config.keys import KEYS
from clawmark.config.load import load
from clawmark.config.paths import Places, resolve_places
from clawmark.config.schema import Loaded
from clawmark.config.schema.key import Key

WIDEST = {0: 54, 1: 10}
"""Column widths of `config list`: most keys and values fit, and lines fit into 80 columns."""

EXAMPLES = """\
examples:
  clawmark config list                # every setting, its value and its origin
  clawmark config get query.maxResults
  clawmark config path                # the files and folders in use
  clawmark config schema              # every key and what it does
  clawmark config set query.maxResults 8
  clawmark config set sources memory,sessions
  clawmark config set remote.apiKey -    # reads it from standard input
  clawmark config unset query.maxResults
  clawmark config edit                # in $VISUAL or $EDITOR

`set` and `unset` change one value of the configuration file and keep its
comments and layout. With --agent, a setting of memory search belongs to the
entry of that agent, if the file has one. `edit` checks the file before it is
written."""


INTERMIXED = True
"""Flags may stand between the words: `config set -a work provider none`."""
ACTIONS = {"list": 0, "get": 1, "set": 2, "unset": 1, "edit": 0, "path": 0, "schema": 0}
"""What can be done, and how many words follow."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "action", nargs="?", default="list", choices=tuple(ACTIONS), help="what to do"
    )
    parser.add_argument(
        "key", nargs="?", metavar="KEY", help="a key, as memorySearch.query.maxResults"
    )
    parser.add_argument(
        "value", nargs="?", metavar="VALUE", help="for `set`: its value; - reads standard input"
    )


def run(args: Namespace) -> int:
    _check_words(args)
    if args.action == "schema":
        return _schema(args)
    if args.action in ("set", "unset", "edit"):
        return change_settings(args)
    places = resolve_places(
        args.workspace, args.agent, args.config, args.state_dir, must_exist=False
    )
    if args.action == "path":
        return _paths(places, args)
    loaded = load(places)
    warn(loaded.warnings)
    return _get(loaded, args) if args.action == "get" else _list(loaded, args)


def _check_words(args: Namespace) -> None:
    given = (args.key is not None) + (args.value is not None)
    if given == ACTIONS[args.action]:
        return
    needs = ("takes no key", "needs one key", "needs a key and a value")[ACTIONS[args.action]]
    raise UsageError(f"`config {args.action}` {needs}.")


def _list(loaded: Loaded, args: Namespace) -> int:
    if args.json:
        rows = [
            {
                "key": key.name,
                "value": as_json(shown_value(loaded, key)),
                "origin": loaded.origin(key.name),
            }
            for key in KEYS
        ]
        emit({"settings": rows, "warnings": list(loaded.warnings)})
        return 0
    lines = [
        (key.name, one_line(written(shown_value(loaded, key))), _origin(loaded, key))
        for key in KEYS
    ]
    say("\n".join(table(lines, most=WIDEST)))
    return 0


def _origin(loaded: Loaded, key: Key) -> str:
    kind, _, path = loaded.origin(key.name).partition(" ")
    text = f"{kind} {short_path(path)}".rstrip()
    return paint(text, "dim") if kind == "default" else text


def _get(loaded: Loaded, args: Namespace) -> int:
    key = find_key(args.key)
    value = shown_value(loaded, key)
    if args.json:
        emit({"key": key.name, "value": as_json(value), "origin": loaded.origin(key.name)})
    else:
        say(plain(value) if isinstance(value, str) else one_line(written(value)))
    return 0


def _paths(places: Places, args: Namespace) -> int:
    if args.json:
        body: dict[str, object] = {
            "stateDir": places.state_dir,
            "configFile": places.config_file,
            "configExists": places.config is not None,
            "workspace": places.workspace,
            "workspaceOrigin": places.workspace_origin,
            "agent": places.agent,
            "agentId": places.agent_id,
            "indexPath": places.index_path,
        }
        emit(body)
        return 0
    say("\n".join(facts(_path_facts(places))))
    return 0


def _path_facts(places: Places) -> Iterator[tuple[str, str]]:
    def shown(path: str, exists: bool) -> str:
        return short_path(path) + ("" if exists else " (not there)")

    yield "Config", shown(places.config_file, places.config is not None)
    yield "State", shown(places.state_dir, os.path.isdir(places.state_dir))
    there = "" if os.path.isdir(places.workspace) else ", not there"
    origin = plain(places.workspace_origin)
    origin = "configured" if origin.startswith("file ") else origin
    yield "Workspace", f"{short_path(places.workspace)} ({origin}{there})"
    other = "" if places.agent == places.agent_id else f", index {places.agent_id}"
    yield "Agent", places.agent + other
    yield "Index", shown(places.index_path, os.path.isfile(places.index_path))


def _schema(args: Namespace) -> int:
    if args.json:
        rows = [
            {
                "key": key.name,
                "allowed": allowed_values(key),
                "default": as_json(key.default),
                "meaning": key.description,
            }
            for key in KEYS
        ]
        emit({"keys": rows})
        return 0
    for key in KEYS:
        say(f"{paint(key.name, 'bold')}  {paint(f'= {written(key.default)}', 'dim')}")
        lines = wrap(f"{key.description} ({allowed_values(key)})", min(columns(), 110) - 4)
        say("\n".join(f"    {line}" for line in lines))
    return 0
