"""Adding folders to a memory, removing them, and reports about what is in them.

In: a folder as a person named it. Out: a `Source` in the memory's list, or a ConfigError of one
sentence. Keeping the list is left to `source_file`; which files of a folder are memory is decided
in `workspace.places`."""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from clawmark.model.errors import ConfigError
from clawmark.model.reports import SourceReport
from clawmark.model.values import is_cited_below
from clawmark.store.sqlite.reader import SOURCES
from clawmark.workspace.file_counts import survey
from clawmark.workspace.places import Source, is_below

if TYPE_CHECKING:
    from clawmark.engine.maintenance.source_file import SourceFile
    from clawmark.model.reports import SourceReport
    from clawmark.workspace import Workspace

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,63}")
"""At least two characters, so that no name looks like the letter of a drive."""


def add_source(
    file: SourceFile, workspace: Workspace, folder: str, name: str, patterns: Sequence[str]
) -> Source:
    """Add a folder; ConfigError says in one sentence why it cannot be added.

    Adding the same again changes nothing.
    """
    path = _checked_folder(folder)
    added = Source(_checked_name(name, path), path, tuple(map(_checked_pattern, patterns)))

    def decide(known: tuple[Source, ...]) -> tuple[Source, ...]:
        same = next((one for one in known if one.path == path), None)
        if same is not None:
            if same.patterns == added.patterns and name in ("", same.name):
                return known
            raise ConfigError(
                f"{path} is already the source {same.name}.",
                hint=f"To change it, remove it first: `clawmark sources remove {same.name}`.",
            )
        taken = next((one for one in known if one.name.lower() == added.name.lower()), None)
        if taken is not None:
            raise ConfigError(
                f"There is already a source called {taken.name}: {taken.path}.",
                hint="Choose another name with --name.",
            )
        around = next((one for one in known if not one.patterns and is_below(path, one.path)), None)
        if around is not None:
            raise ConfigError(
                f"{path} is already searched: it lies in the source {around.name} ({around.path})."
            )
        if is_below(path, os.path.join(workspace.root, "memory")):
            raise ConfigError(
                f"{path} is already searched: it lies in the workspace's memory folder."
            )
        if added.name.lower() in SOURCES:
            raise ConfigError(
                f"{added.name} is the name of a source that is always there.",
                hint="Choose another name with --name.",
            )
        return (*known, added)

    file.change(decide)
    return next(one for one in file.read() if one.path == path)


def remove_source(file: SourceFile, name: str) -> Source:
    """Stop searching a source; its files are not touched."""
    gone: list[Source] = []

    def decide(known: tuple[Source, ...]) -> tuple[Source, ...]:
        gone.extend(one for one in known if one.name.lower() == name.lower())
        if not gone:
            names = ", ".join(one.name for one in known[:8])
            raise ConfigError(
                f"There is no source called {name[:80]!r}.",
                hint=f"There is {names}."
                if names
                else "None was added; `clawmark add DIR` adds one.",
            )
        return tuple(one for one in known if one not in gone)

    file.change(decide)
    return gone[0]


def _checked_folder(folder: str) -> str:
    """The real path of a folder that may be added."""
    named = os.path.abspath(os.path.expanduser(folder)) if folder else ""
    try:
        named.encode()
    except UnicodeEncodeError:
        raise ConfigError(
            f"The path {named!a} is not valid UTF-8.", hint="Rename the folder."
        ) from None
    if not named or "\0" in named:
        raise ConfigError("The path of the folder is empty or not a path.")
    path = os.path.realpath(named)
    if not os.path.lexists(path):
        raise ConfigError(f"The folder {named} does not exist.")
    if not os.path.isdir(path):
        raise ConfigError(
            f"{named} is a file, not a folder.",
            hint=f"Add its folder with a pattern: {_by_pattern(named)}",
        )
    home = os.path.realpath(os.path.expanduser("~"))
    if is_below(home, path):
        which = "is the whole disk" if path == os.path.dirname(path) else "holds your home folder"
        which = "is your home folder" if path == home else which
        raise ConfigError(f"{path} {which}.", hint="Name a folder inside it that holds the notes.")
    if not os.access(path, os.R_OK | os.X_OK):
        raise ConfigError(f"The folder {named} cannot be read: permission denied.")
    return path


def _by_pattern(file: str) -> str:
    folder, name = os.path.split(file)
    return f"clawmark add {shlex.quote(folder)} --pattern {shlex.quote(name)}"


def _checked_name(name: str, path: str) -> str:
    """A name as given, or one made of the folder's; it stands before the colon of a citation."""
    if not name:
        letters = re.sub(r"[^A-Za-z0-9._-]+", "-", os.path.basename(path).lower()).strip("-._")[:64]
        name = letters if NAME.fullmatch(letters) else ""
        if not name:
            raise ConfigError(f"No name can be made of {path}.", hint="Choose one with --name.")
    if not NAME.fullmatch(name):
        raise ConfigError(
            f"{name[:80]!r} cannot be the name of a source.",
            hint="Use 2 to 64 letters, digits, dots, hyphens and "
            "underscores, beginning with a letter or digit.",
        )
    return name


def _checked_pattern(pattern: str) -> str:
    plain = pattern.strip().removeprefix("./")
    if (
        not plain
        or plain.startswith(("!", "/"))
        or ".." in plain.split("/")
        or any(sign in plain for sign in "{}()\\")
    ):
        raise ConfigError(
            f"{pattern[:80]!r} is not a pattern that is known.",
            hint="Use * ? and [] within a name and ** across folders, from the added folder on.",
        )
    return plain


# --- reports -------------------------------------------------------------------------------------------------------


def report_sources(workspace: Workspace) -> tuple[SourceReport, ...]:
    """Every folder that is searched in addition to the workspace's own memory, with what is in it
    now.
    """
    scan = workspace.scan()
    problems = {item.path: item.reason for item in scan.skipped} | {
        item.path: item.reason for item in scan.failures
    }
    usable = {extra.prefix: extra for extra in workspace.extras()}
    reports = []
    for source in workspace.sources():
        prefix = f"{source.name}:"
        reports.append(
            SourceReport(
                name=source.name,
                path=source.path,
                patterns=source.patterns,
                files=sum(is_cited_below(state.path, prefix) for state in scan.files),
                other_files=survey(source.path).others,
                problem=problems.get(prefix, ""),
            )
        )
    for extra in usable.values():
        if not extra.name:
            path = extra.folder or os.path.join(workspace.root, extra.prefix)
            full = os.path.join(path, extra.file) if extra.file and extra.folder else path
            reports.append(
                SourceReport(
                    name="",
                    path=os.path.normpath(full),
                    patterns=extra.patterns,
                    files=sum(
                        state.path == extra.prefix
                        if extra.file
                        else state.path.startswith(extra.lead)
                        for state in scan.files
                    ),
                    other_files={} if extra.file else survey(path).others,
                )
            )
    return tuple(reports)


def not_markdown(workspace: Workspace, reports: Sequence[SourceReport]) -> dict[str, int]:
    """How many files there are in the searched folders that are not Markdown, by their ending."""
    total = Counter(survey(os.path.join(workspace.root, "memory")).others)
    for report in reports:
        total.update(report.other_files)
    return dict(total.most_common())
