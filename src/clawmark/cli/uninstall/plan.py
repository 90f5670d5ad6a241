"""Find what Clawmark has made: nothing is changed here.

Only names that Clawmark itself creates are removed from the state folder, so that a state folder
with other files in it keeps them."""

from __future__ import annotations

import glob
import os
from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from clawmark.cli.uninstall.own_files import shell_files, shell_mentions, workspace_files
from clawmark.config.paths import Places, resolve_places
from clawmark.config.sections import FilePlaces
from clawmark.hooks.install import Edit, Plan, plan_removal
from clawmark.hooks.receipt import Receipt, load
from clawmark.model.errors import ClawmarkError
from clawmark.workspace.places import ROOT_FILES

STATE_FOLDERS = (
    *("agents", "batches", "counts", "edits", "locks", "logs", "memory", "plugins"),
    *("providers", "qmd", "sources", "versions", "install"),
)
STATE_FILES = ("ledger.json", "mcp-token", "web-token", "config.lock", "clawmark.json")
"""The settings come last: they say where the other things are."""
LEFTOVERS = ("", ".lock", ".new", ".damaged")
"""What may lie beside a file of the state folder."""


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
    memory = list(_memory(places, kept)) if with_memory else []
    if not with_memory:
        kept += [
            f"{one.workspace} (memory files; --with-memory removes them)"
            for one in places
            if os.path.isdir(one.workspace)
        ]
    removals += _indexes(places)
    settings = os.path.join(state, "clawmark.json")
    workspaces = {os.path.realpath(one.workspace) for one in places}
    is_workspace = os.path.realpath(state) in workspaces or any(
        os.path.lexists(os.path.join(state, name)) for name in ROOT_FILES
    )
    of_state = list(_state(state, kept, with_memory=with_memory, is_workspace=is_workspace))
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
    for folder in sorted(glob.glob(os.path.join(glob.escape(state), "install", "*"))):
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
            for path in sorted(glob.glob(f"{glob.escape(one.index_path)}*")):
                if path == one.index_path or path[len(one.index_path)] in "-.":
                    yield Removal(path, "index", "file")


def _state(
    state: str, kept: list[str], *, with_memory: bool, is_workspace: bool
) -> Iterator[Removal]:
    """Yield what is in the state folder; what is not ours is kept and said."""
    try:
        names = sorted(os.listdir(state))
    except OSError:
        return
    if is_workspace:
        kept.append(f"{state} (both state folder and workspace: remove its state by hand)")
        return
    files = {f"{name}{suffix}" for name in STATE_FILES for suffix in LEFTOVERS}
    for name in names:
        path = os.path.join(state, name)
        if name in STATE_FOLDERS:
            yield from _state_folder(name, path, kept, with_memory=with_memory)
        elif name in files:
            yield Removal(path, "settings" if name == "clawmark.json" else "state", "file")
        elif not name.startswith("workspace"):
            kept.append(f"{path} (not made by Clawmark)")


def _state_folder(name: str, path: str, kept: list[str], *, with_memory: bool) -> Iterator[Removal]:
    """Yield a folder of the state folder, without what exists nowhere else."""
    said = {"agents": "history and journal", "memory": "index", "install": "backups"}
    own = {"agents": "*/sessions", "memory": "lancedb"}.get(name)
    found = glob.glob(os.path.join(glob.escape(path), own)) if own and not with_memory else []
    memory = [one for one in found if os.path.isdir(one) and os.listdir(one)]
    what = "chats" if name == "agents" else "entries captured with LanceDB"
    kept += [f"{one} ({what}; --with-memory removes them)" for one in memory]
    for one in _without(path, memory):
        yield Removal(one, said.get(name, "state"))


def _without(path: str, kept: list[str]) -> Iterator[str]:
    """Yield the largest folders and files of a tree that have nothing in them that is kept."""
    if path in kept:
        return
    if not any(_is_below(one, path) for one in kept):
        yield path
        return
    for name in sorted(os.listdir(path)):
        yield from _without(os.path.join(path, name), kept)


def _memory(places: list[Places], kept: list[str]) -> Iterator[Removal]:
    """Yield the memory files of the workspaces; other files in them are kept."""
    for one in places:
        for path in workspace_files(one.workspace, kept):
            yield Removal(path, "memory", "memory")


def _unreachable(home: str, environ: Mapping[str, str]) -> Iterator[str]:
    yield from shell_mentions(home, environ)
    yield "The program itself: pip uninstall clawmark (or: pipx uninstall clawmark)."
    yield "Programs that run now (clawmark mcp, watch, chat): end them first, or they write again."
    yield "Timers that run clawmark (cron, systemd), other state folders, backups, and services."


def _is_below(path: str, folder: str) -> bool:
    return os.path.abspath(path).startswith(os.path.abspath(folder) + os.sep)
