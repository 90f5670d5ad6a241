"""`clawmark add`: a folder of Markdown in; from now on it is searched too."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from clawmark.cli.arguments import some_text
from clawmark.cli.as_json import as_json
from clawmark.cli.layout import plural, short_path
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import emit, paint, place, say
from clawmark.config.paths import resolve_places
from clawmark.model.reports import SourceReport
from clawmark.workspace.bootstrap import ensure_workspace

EXAMPLES = """\
examples:
  clawmark add ~/notes
  clawmark add ~/wiki --name team --pattern 'public/**/*.md'
  clawmark sources                        # list what was added
  clawmark sources remove team"""

INDEX_NOTE = (
    "Run `clawmark index` to have it all searchable now; the "
    "next search does a part of it by itself."
)
_FEW_FILES = 50
"""So many files are indexed by the next search without a wait worth mentioning."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "folder",
        type=some_text,
        metavar="DIR",
        help="a folder of Markdown; it is read and never written",
    )
    parser.add_argument(
        "--name",
        type=some_text,
        metavar="NAME",
        help="what citations of it begin with (default: the folder's name)",
    )
    parser.add_argument(
        "--pattern",
        type=some_text,
        metavar="GLOB",
        action="append",
        help="take only these files, by their path in the folder (* "
        "? [] **); can be given several times",
    )


def run(args: Namespace) -> int:
    made = _default_workspace(args)
    with open_memory(args) as memory:
        source = memory.add_source(
            args.folder, name=args.name or "", patterns=tuple(args.pattern or ())
        )
        workspace = memory.places.workspace
    if args.json:
        emit({"workspace": workspace, "source": as_json(source)})
        return 0
    if made:
        say(f"Made a workspace for the memory: {short_path(made)}")
    say("\n".join(added_lines(source)))
    return 0


def added_lines(source: SourceReport) -> list[str]:
    """What is searched from now on, and what of the folder is not."""
    name, where = paint(place(source.name), "bold"), short_path(source.path)
    files = plural(source.files, "Markdown file")
    lines = [f"{name}: {files} in {where}, searched from now on."]
    if not source.files:
        lines = [f"{name}: {where} is searched from now on; there are no Markdown files in it yet."]
    lines += [f"Not searched: {other_files(source.other_files)}."] if source.other_files else []
    if source.files:
        lines.append(
            f"Citations begin with {place(source.name)}: and `clawmark get` takes them from any "
            f"folder."
        )
    if source.files > _FEW_FILES:
        lines.append(INDEX_NOTE)
    return lines


def other_files(others: dict[str, int], most: int = 4) -> str:
    """`14 files that are not Markdown (10 .pdf, 4 .txt)`"""
    total = sum(others.values())
    kinds = [f"{number:,} {place(ending)}" for ending, number in others.items() if ending][:most]
    shown = ", ".join(kinds) + (" …" if kinds and len(others) > len(kinds) else "")
    what = f"{plural(total, 'file')} that {'is' if total == 1 else 'are'} not Markdown"
    return f"{what} ({shown})" if shown else what


def _default_workspace(args: Namespace) -> str:
    """Make the default workspace where there is none at all, so that the first command can be
    `clawmark add`.
    """
    places = resolve_places(
        args.workspace, args.agent, args.config, args.state_dir, must_exist=False
    )
    if places.workspace_origin != "default" or os.path.lexists(places.workspace):
        return ""

    if not os.path.isdir(os.path.expanduser(args.folder)):
        return ""  # the folder is refused with its reason, and nothing is made for it
    ensure_workspace(places.workspace)
    return places.workspace
