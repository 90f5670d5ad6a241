"""`clawmark init`: create a workspace; existing files are kept.

The first workspace becomes the default one: its path is written to a configuration file in the
state folder."""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser, BooleanOptionalAction, Namespace

from clawmark.cli.arguments import UsageError, some_text
from clawmark.cli.layout import plural, short_path
from clawmark.cli.output import emit, paint, plain, say
from clawmark.config.paths import Places, resolve_places
from clawmark.model.errors import WorkspaceError
from clawmark.system.private_files import make_private_folder, open_private
from clawmark.workspace.bootstrap import ensure_workspace

EXAMPLES = """\
examples:
  clawmark init ~/agent
  clawmark init                 # the default: ~/.clawmark/workspace"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "path",
        nargs="?",
        type=some_text,
        metavar="DIR",
        help="the folder (default: the configured workspace)",
    )
    parser.add_argument(
        "--default",
        action=BooleanOptionalAction,
        default=None,
        help="make it the default workspace (the first workspace is by default)",
    )


def run(args: Namespace) -> int:
    if args.path is not None and args.workspace is not None:
        raise UsageError("Name the folder only once: as PATH or with --workspace.")
    named = args.path if args.path is not None else args.workspace
    places = resolve_places(named, args.agent, args.config, args.state_dir, must_exist=False)
    if os.path.lexists(places.workspace) and not os.path.isdir(places.workspace):
        raise WorkspaceError(
            f"{places.workspace} exists and is not a folder.", hint="Choose another path."
        )
    created = ensure_workspace(places.workspace)
    is_wanted = not _has_default(places, args) if args.default is None else args.default
    said = _make_default(places) if is_wanted and places.workspace_origin == "flag" else ""
    if args.json:
        body = {
            "workspace": places.workspace,
            "made": created,
            "default": said == "now",
            "configFile": places.config_file,
        }
        emit(body)
        return 0
    _show(places, created, said)
    return 0


def _show(places: Places, created: list[str], said: str) -> None:
    where = short_path(places.workspace)
    say(
        f"{paint('Workspace', 'bold')} {where}"
        + (f": {plural(len(created), 'file')} created" if created else ": nothing to create")
    )
    for name in created:
        say(f"  {plain(name)}")
    if said == "now":
        say(f"This is now your default workspace ({short_path(places.config_file)}).")
    elif said:
        say(said)
    is_default = (
        said == "now"
        or places.workspace_origin == "default"
        or places.workspace_origin.startswith("file ")
    )
    flag = "" if is_default else f" --workspace {where}"
    say()
    say(paint("Next", "bold"))
    say(f'  clawmark remember{flag} "We chose PostgreSQL for billing"')
    say(f'  clawmark search{flag} "which database did we pick?"')


def _has_default(places: Places, args: Namespace) -> bool:
    """Whether there is a default workspace, independent of the current folder."""
    if os.path.isdir(os.path.join(places.state_dir, "workspace")):
        return True
    if places.config is None:
        return False
    usual = resolve_places(None, args.agent, args.config, args.state_dir, must_exist=False)
    if usual.workspace_origin == "default":
        return os.path.isdir(usual.workspace)
    return usual.workspace_origin != "current folder"


def _make_default(places: Places) -> str:
    """Write the default workspace to a new file; return `now`, or what to do instead."""
    own_file = os.path.join(places.state_dir, "clawmark.json")
    if places.config is not None or os.path.lexists(own_file):
        return (
            f"{short_path(places.config_file)} exists and is not changed; to make this the "
            f"default, add to it:\n"
            f'  {{ agents: {{ defaults: {{ workspace: "{plain(places.workspace)}" }} }} }}'
        )
    body = {"agents": {"defaults": {"workspace": places.workspace}}}
    try:
        make_private_folder(places.state_dir)
        with open(
            open_private(own_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "w", encoding="utf-8"
        ) as file:
            file.write(json.dumps(body, indent=2, ensure_ascii=True) + "\n")
    except OSError as error:
        raise WorkspaceError(
            f"The workspace was created, but {own_file} could not be written: {error.strerror}.",
            hint="Name the workspace with --workspace or CLAWMARK_WORKSPACE.",
        ) from None
    return "now"
