"""`clawmark add`: add a folder of Markdown to the search."""

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

INDEX_NOTE = "Run `clawmark index` to index it all now; otherwise searches index it bit by bit."
_FEW_FILES = 50
"""Up to this many files, the next search indexes them without a noticeable delay."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "folder",
        type=some_text,
        metavar="DIR",
        help="a folder of Markdown files; it is never written to",
    )
    parser.add_argument(
        "--name",
        type=some_text,
        metavar="NAME",
        help="the prefix of its citations (default: the folder's name)",
    )
    parser.add_argument(
        "--pattern",
        type=some_text,
        metavar="GLOB",
        action="append",
        help="only files whose path in the folder matches (* ? [] **); may be repeated",
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
        say(f"Created a workspace for the memory: {short_path(made)}")
    say("\n".join(added_lines(source)))
    return 0


def added_lines(source: SourceReport) -> list[str]:
    """Return what is searched from now on, and which files are not."""
    name, where = paint(place(source.name), "bold"), short_path(source.path)
    files = [plural(source.files, "Markdown file")] if source.files else []
    files += [plural(source.media, "image or audio file")] if source.media else []
    lines = [f"{name}: {' and '.join(files)} in {where} will be searched."]
    if not files:
        lines = [f"{name}: {where} will be searched; it has no Markdown files yet."]
    lines += [f"Not searched: {other_files(source.other_files)}."] if source.other_files else []
    if files:
        lines.append(
            f"Its citations begin with {place(source.name)}: and work with `clawmark get`."
        )
    if source.files + source.media > _FEW_FILES:
        lines.append(INDEX_NOTE)
    return lines


def other_files(others: dict[str, int], most: int = 4) -> str:
    """Format as `14 files that are not Markdown (10 .pdf, 4 .txt)`."""
    total = sum(others.values())
    kinds = [f"{number:,} {place(ending)}" for ending, number in others.items() if ending][:most]
    shown = ", ".join(kinds) + (" …" if kinds and len(others) > len(kinds) else "")
    what = f"{plural(total, 'file')} that {'is' if total == 1 else 'are'} not Markdown"
    return f"{what} ({shown})" if shown else what


def _default_workspace(args: Namespace) -> str:
    """Create the default workspace if there is none, so that `add` can be the first command."""
    places = resolve_places(
        args.workspace, args.agent, args.config, args.state_dir, must_exist=False
    )
    if places.workspace_origin != "default" or os.path.lexists(places.workspace):
        return ""
    if not os.path.isdir(os.path.expanduser(args.folder)):
        return ""  # the folder will be refused, so create nothing
    ensure_workspace(places.workspace)
    return places.workspace
