"""Add folders to a memory, remove them, and report what is in them.

`source_file` keeps the list; `workspace.places` decides which files of a folder are memory."""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Sequence

from clawmark.engine.maintenance.source_file import SourceFile, is_source_name
from clawmark.model.errors import ConfigError
from clawmark.model.reports import SourceReport
from clawmark.model.values import is_cited_below, is_media
from clawmark.store.sqlite.snapshot import SOURCES
from clawmark.workspace import Workspace
from clawmark.workspace.file_counts import survey
from clawmark.workspace.places import Source, is_below

_OTHER_NAME = "Choose another name with --name."


def add_source(
    file: SourceFile, workspace: Workspace, folder: str, name: str, patterns: Sequence[str]
) -> Source:
    """Add a folder; adding the same one again changes nothing.

    `ConfigError` says in one sentence why it cannot be added.
    """
    path = _checked_folder(folder)
    added = Source(_checked_name(name, path), path, tuple(map(_checked_pattern, patterns)))

    def decide(known: tuple[Source, ...]) -> tuple[Source, ...]:
        for one in known:
            if one.path == path:
                if one.patterns == added.patterns and name in ("", one.name):
                    return known
                raise ConfigError(
                    f"{path} is already the source {one.name}.",
                    hint=f"To change it, remove it first: `clawmark sources remove {one.name}`.",
                )
        _check_free(added, known, workspace)
        return (*known, added)

    file.change(decide)
    return next(one for one in file.read() if one.path == path)


def _check_free(added: Source, known: Sequence[Source], workspace: Workspace) -> None:
    """Refuse a name that is taken and a folder that is searched already."""
    for one in known:
        if one.name.lower() == added.name.lower():
            raise ConfigError(
                f"There is already a source called {one.name}: {one.path}.", hint=_OTHER_NAME
            )
    for one in known:
        if not one.patterns and is_below(added.path, one.path):
            raise ConfigError(
                f"{added.path} is already searched: it lies in the source {one.name} ({one.path})."
            )
    if is_below(added.path, os.path.join(workspace.root, "memory")):
        raise ConfigError(
            f"{added.path} is already searched: it lies in the workspace's memory folder."
        )
    if added.name.lower() in SOURCES:
        raise ConfigError(
            f"{added.name} is the name of a source that is always there.", hint=_OTHER_NAME
        )


def remove_source(file: SourceFile, name: str) -> Source:
    """Stop searching a source; its files are not touched."""
    removed: list[Source] = []

    def decide(known: tuple[Source, ...]) -> tuple[Source, ...]:
        removed.extend(one for one in known if one.name.lower() == name.lower())
        if not removed:
            names = ", ".join(one.name for one in known[:8])
            none = "None was added; `clawmark add DIR` adds one."
            raise ConfigError(
                f"There is no source called {name[:80]!r}.",
                hint=f"There is {names}." if names else none,
            )
        return tuple(one for one in known if one not in removed)

    file.change(decide)
    return removed[0]


def _checked_folder(folder: str) -> str:
    """Return the real path of a folder that may be added."""
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
        parent, name = map(shlex.quote, os.path.split(named))
        raise ConfigError(
            f"{named} is a file, not a folder.",
            hint=f"Add its folder with a pattern: clawmark add {parent} --pattern {name}",
        )
    home = os.path.realpath(os.path.expanduser("~"))
    if is_below(home, path):
        which = "is the whole disk" if path == os.path.dirname(path) else "holds your home folder"
        which = "is your home folder" if path == home else which
        raise ConfigError(f"{path} {which}.", hint="Name a folder inside it that holds the notes.")
    if not os.access(path, os.R_OK | os.X_OK):
        raise ConfigError(f"The folder {named} cannot be read: permission denied.")
    return path


def _checked_name(name: str, path: str) -> str:
    """Return the given name or one made from the folder's; citations begin with it."""
    if not name:
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", os.path.basename(path).lower()).strip("-._")[:64]
        if not is_source_name(name):
            raise ConfigError(f"No name can be made of {path}.", hint="Choose one with --name.")
    if not is_source_name(name):
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
            f"{pattern[:80]!r} is not a supported pattern.",
            hint="Use * ? and [] within a name and ** across folders, from the added folder on.",
        )
    return plain


def report_sources(workspace: Workspace) -> tuple[SourceReport, ...]:
    """Report every folder that is searched in addition to the workspace's own memory."""
    scan = workspace.scan()
    problems = dict((*scan.skipped, *scan.failures))
    reports = []
    for source in workspace.sources():
        prefix = f"{source.name}:"
        found = [state.path for state in scan.files if is_cited_below(state.path, prefix)]
        media = list(filter(is_media, found))
        reports.append(
            SourceReport(
                name=source.name,
                path=source.path,
                patterns=source.patterns,
                files=len(found) - len(media),
                other_files=_others(source.path, media),
                problem=problems.get(prefix, ""),
                media=len(media),
            )
        )
    for extra in {extra.prefix: extra for extra in workspace.extras()}.values():
        if extra.name:
            continue
        path = extra.folder or os.path.join(workspace.root, extra.prefix)
        full = os.path.join(path, extra.file) if extra.file and extra.folder else path
        found = [
            state.path
            for state in scan.files
            if (state.path == extra.prefix if extra.file else state.path.startswith(extra.lead))
        ]
        media = list(filter(is_media, found))
        reports.append(
            SourceReport(
                name="",
                path=os.path.normpath(full),
                patterns=extra.patterns,
                files=len(found) - len(media),
                other_files={} if extra.file else _others(path, media),
                media=len(media),
            )
        )
    return tuple(reports)


def _others(folder: str, media: Sequence[str]) -> dict[str, int]:
    """Count the files of a folder that are not searched, by extension."""
    counts = Counter(survey(folder).others)
    counts.subtract(Counter(os.path.splitext(path)[1].lower() for path in media))
    return {ending: number for ending, number in counts.most_common() if number > 0}


def not_markdown(workspace: Workspace, reports: Sequence[SourceReport]) -> dict[str, int]:
    """Count the files in the searched folders that are not Markdown, by their suffix."""
    total = Counter(survey(os.path.join(workspace.root, "memory")).others)
    for report in reports:
        total.update(report.other_files)
    return dict(total.most_common())
