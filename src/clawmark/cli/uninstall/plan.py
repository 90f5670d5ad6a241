"""Find what Clawmark has made: nothing is changed here.

Only names that Clawmark itself creates are removed from the state folder, so that a state folder
with other files in it keeps them."""

from __future__ import annotations

import glob
import os
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Literal, NamedTuple

from clawmark.cli.uninstall.own_files import shell_files, shell_mentions, workspace_files
from clawmark.cli.uninstall.state_files import index_files, is_around, own_paths, own_pattern
from clawmark.config.paths import Places, resolve_places
from clawmark.config.sections import FilePlaces
from clawmark.engine.maintenance.source_file import SourceFile
from clawmark.hooks.install import Edit, Plan, plan_removal
from clawmark.hooks.receipt import Receipt, load
from clawmark.model.errors import ClawmarkError
from clawmark.workspace.bootstrap import STATE_FOLDER
from clawmark.workspace.places import ROOT_FILES

STATE_FOLDERS = (
    *("batches", "counts", "edits", "locks", "logs", "plugins", "providers", "qmd", "versions"),
    *("install", "memory", "sources", "agents"),
)
"""In the order in which they are removed: the last ones say what is in the others."""
STATE_FILES = ("ledger.json", "mcp-token", "web-key", "config.lock", "clawmark.json")
"""The settings come last: they say where the other things are."""
BACKUPS = "backups"
"""What the files of `clawmark install` are; they have its receipts too."""
LEFTOVERS = ("", ".lock", ".new", ".damaged")
"""Suffixes of the files that belong to a file of the state folder, which is the empty one."""


class Removal(NamedTuple):
    """A file or folder to remove."""

    path: str
    what: str
    kind: Literal["tree", "file", "memory"] = "tree"


class Connection(NamedTuple):
    """A coding agent that is connected, and how to disconnect it."""

    name: str
    folder: str
    """The folder of its receipt."""
    receipt: Receipt
    plan: Plan

    @property
    def edits(self) -> tuple[Edit, ...]:
        return self.plan.edits


class UninstallPlan(NamedTuple):
    """What is removed, in this order; what is kept; and what cannot be reached."""

    connections: tuple[Connection, ...]
    removals: tuple[Removal, ...]
    folders: tuple[str, ...]
    """Folders that are removed at the end if they are empty."""
    kept: tuple[str, ...]
    unreachable: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        return not (self.connections or self.removals)


def make_plan(
    args: Namespace, home: str, environ: Mapping[str, str], *, with_memory: bool
) -> UninstallPlan:
    """Find everything that Clawmark has made for this user and these settings."""
    places = _all_places(args)
    state = places[0].state_dir
    kept, unreachable = list[str](), list[str]()
    connections = tuple(_connections(state, unreachable))
    removals = [
        Removal(file, "shell completion or manual page", "file")
        for file in shell_files(home, environ)
    ]
    added = _added_folders(state)
    memory = list(_memory(places, added, kept)) if with_memory else []
    if not with_memory:
        kept += [
            f"{one.workspace} (memory files; --with-memory removes them)"
            for one in places
            if os.path.isdir(one.workspace)
        ]
    removals += _indexes(places)
    settings = os.path.join(state, "clawmark.json")
    of_state = list(_state(places, added, kept, with_memory=with_memory))
    removals += [one for one in of_state if one.path != settings]
    removals += memory
    removals += [one for one in of_state if one.path == settings]
    if places[0].config_file != settings and os.path.exists(places[0].config_file):
        kept.append(f"{places[0].config_file} (settings outside of the state folder)")
    unreachable += _unreachable(home, environ)
    return UninstallPlan(
        connections=connections,
        removals=tuple(dict.fromkeys(removals)),
        folders=(*(one.workspace for one in places if with_memory), state),
        kept=tuple(dict.fromkeys(kept)),
        unreachable=tuple(unreachable),
    )


def _all_places(args: Namespace) -> list[Places]:
    """Return the places of the chosen agent, then those of the other configured ones."""

    def resolved(workspace: str | None, agent: str | None) -> Places:
        return resolve_places(workspace, agent, args.config, args.state_dir, must_exist=False)

    first = resolved(args.workspace, args.agent)
    known = FilePlaces(first.config_file).agents() if first.config is not None else []
    others = [resolved(None, one.id) for one in known if one.id != first.agent]
    return [first, *others]


def _connections(state: str, unreachable: list[str]) -> Iterator[Connection]:
    """Yield the coding agents that `clawmark install` has connected."""
    receipts = glob.glob(os.path.join(glob.escape(state), "install", "*", "receipt.json"))
    for folder in sorted(map(os.path.dirname, receipts)):
        name = os.path.basename(folder)
        try:
            receipt = load(folder)
            plan = plan_removal((), receipt)
        except ClawmarkError as error:
            unreachable.append(f"{name} stays connected: {error.message} {error.hint}".rstrip())
            continue
        if receipt:
            yield Connection(name=name, folder=folder, receipt=receipt, plan=plan)
            unreachable.extend(plan.notices)


def _indexes(places: list[Places]) -> Iterator[Removal]:
    """Yield the files of indexes outside of the state folder."""
    for one in places:
        if not _is_below(one.index_path, one.state_dir):
            for path in index_files(one.index_path):
                yield Removal(path, "index", "file")


def _added_folders(state: str) -> frozenset[str]:
    """Return the real paths of the added folders; of those in damaged files nothing is known."""
    added = set[str]()
    for file in glob.glob(os.path.join(glob.escape(state), "sources", "*.json")):
        with suppress(ClawmarkError):
            added |= {os.path.realpath(one.path) for one in SourceFile(file).read()}
    return frozenset(added)


def _state(
    places: list[Places], added: frozenset[str], kept: list[str], *, with_memory: bool
) -> Iterator[Removal]:
    """Yield what is in the state folder; what is not ours is kept and said."""
    state = places[0].state_dir
    try:
        names = sorted(os.listdir(state), key=lambda name: (_order(name), name))
    except OSError:
        return
    workspaces = {os.path.realpath(one.workspace) for one in places}
    if os.path.realpath(state) in workspaces or any(name in ROOT_FILES for name in names):
        kept.append(f"{state} (both state folder and workspace: remove its state by hand)")
        return
    written = {} if with_memory else dict(_written(state))
    kept += [f"{path} ({what}; --with-memory removes them)" for path, what in written.items()]
    own = own_pattern(state, {one.agent_id for one in places})
    inside = {one for one in (*workspaces, *added) if _is_below(one, os.path.realpath(state))}
    keep = {*inside, *map(os.path.realpath, written)}
    files = {f"{name}{suffix}" for name in STATE_FILES for suffix in LEFTOVERS}
    said = {"agents": "history and journal", "memory": "index", "install": BACKUPS}
    for name in names:
        path = os.path.join(state, name)
        if name in STATE_FOLDERS:
            found = list(own_paths(state, name, own, keep))
            yield from (Removal(one, said.get(name, "state")) for one in found)
            if path not in found and not any(_is_below(one, path) for one in written):
                kept.append(f"{path} (with files that Clawmark has not made)")
        elif name in files and os.path.isfile(path):
            yield Removal(path, "settings" if name == "clawmark.json" else "state", "file")
        elif not name.startswith("workspace"):
            kept.append(f"{path} (not made by Clawmark)")


def _order(name: str) -> int:
    return STATE_FOLDERS.index(name) if name in STATE_FOLDERS else 0


def _written(state: str) -> Iterator[tuple[str, str]]:
    """Yield what exists nowhere else than in the state folder, and what it is."""
    for pattern, what in (
        ("agents/*/sessions", "chats"),
        ("memory/lancedb", "entries captured with LanceDB"),
        ("edits/*", "edits that were not saved"),
    ):
        for path in sorted(glob.glob(os.path.join(glob.escape(state), pattern))):
            if os.path.isdir(path) and os.listdir(path):
                yield path, what


def _memory(places: list[Places], added: frozenset[str], kept: list[str]) -> Iterator[Removal]:
    """Yield the memory files of the workspaces; other files in them are kept."""
    for one in places:
        if one.workspace_origin == "current folder" and not _was_used(one):
            kept.append(
                f"{one.workspace} (Clawmark has made nothing for it; to remove the memory files of "
                "this folder, name it with --workspace)"
            )
            continue
        for path in workspace_files(one.workspace, kept):
            if is_around(path, added):
                kept.append(f"{path} (it is in an added folder, or has one in it)")
            else:
                yield Removal(path, "memory", "memory")


def _was_used(places: Places) -> bool:
    """Whether Clawmark has written something for a workspace."""
    folder = os.path.join(places.state_dir, "agents", places.agent_id)
    marks = (places.index_path, folder, os.path.join(places.workspace, STATE_FOLDER))
    return any(os.path.exists(path) for path in marks)


def _unreachable(home: str, environ: Mapping[str, str]) -> Iterator[str]:
    yield from shell_mentions(home, environ)
    yield "The program itself: pip uninstall clawmark (or: pipx uninstall clawmark)."
    running = "clawmark mcp, watch, web, chat"
    yield f"Programs that run now ({running}): end them first, or they write again."
    yield "Timers that run clawmark (cron, systemd), other state folders, backups, and services."


def _is_below(path: str, folder: str) -> bool:
    return os.path.abspath(path).startswith(os.path.abspath(folder) + os.sep)
