"""Decide which paths are memory, and find them on disk.

Memory is `MEMORY.md` and `memory.md` at the root, every visible `.md` file below `memory/`, and the
same below each extra path and each source. A file of a source is cited by the source's name:
`notes:projects/x.md`. `USER.md` can be read too. `locate` turns a path as a user, an agent or a
citation wrote it into a `Place`; `guard.py` opens it, and checks it again.
"""

# No pathlib: it adds 4 ms to every cold search.

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple, TypeAlias

from clawmark.model.errors import PathDenied
from clawmark.model.values import MediaRules, ScanFailure, Skipped
from clawmark.workspace.guard import (
    EXTRA_PATHS_HINT,
    check_text,
    denied,
    is_utf8,
    reason_of,
    shown,
    split_relative,
)

ROOT_FILES = ("MEMORY.md", "memory.md")
"""The first one wins where both names lead to the same file."""

AGENT_FILES = (
    "AGENTS.md",
    "SOUL.md",
    "TOOLS.md",
    "IDENTITY.md",
    "USER.md",
    "HEARTBEAT.md",
    "BOOTSTRAP.md",
)
"""Files at the root that hold the agent's instructions, not its memory."""
READABLE_FILES = ("USER.md",)
"""Read on request in private sessions, but neither indexed nor written."""

MARKDOWN = frozenset((".md", ".MD", ".Md", ".mD"))

VENDOR_FOLDERS = frozenset(
    ("node_modules", "bower_components", "__pycache__", "site-packages", "venv")
)
"""Folders of installed packages. Hidden ones (.git, .venv, .obsidian …) are skipped anyway."""

MEMORY_HINT = (
    "Memory is MEMORY.md, the .md files below memory/, added "
    "sources, and what memorySearch.extraPaths names."
)


_Views: TypeAlias = list[tuple[list[str], MediaRules | None]]


class Source(NamedTuple):
    """A folder added to a memory with `clawmark add`."""

    name: str
    path: str
    """Its real path."""
    patterns: tuple[str, ...] = ()
    """Globs for the files to search, by their path in the folder; empty for all Markdown files."""


class Extra(NamedTuple):
    """A usable extra path (a folder or a single file), or a source, which has a name."""

    prefix: str
    """How its files are cited: `notes`, `../team-docs`, a single file's path, `notes:` for the
    source `notes`; empty for the workspace itself."""
    folder: str
    """The real path of the folder to open; empty if it is in the workspace."""
    file: str
    """The name of a single file, else empty."""
    patterns: tuple[str, ...] = ()
    """Globs for its files, as in `Source`."""
    name: str = ""
    """The name of a source; empty for a configured extra path."""
    within: str = ""
    """Where in the workspace a source is, if it is there."""
    media: MediaRules | None = None
    """Which of its images and audio files are memory; None for Markdown only."""

    @property
    def lead(self) -> str:
        """What a citation has in front of the path of a file below the folder."""
        return self.prefix if self.name or not self.prefix else f"{self.prefix}/"

    @property
    def inside(self) -> str:
        """The path in the workspace, for an extra path that is there."""
        return self.within if self.name else self.prefix

    def in_workspace(self, path: str) -> str:
        """Turn a path below this folder into a path in the workspace."""
        return f"{self.inside}/{path}" if self.inside else path

    def covers(self, path: str) -> bool:
        """Whether a path below the folder belongs to it; the workspace's own files do not."""
        if (
            self.name
            and not self.folder
            and (_is_own(own := self.in_workspace(path)) or own in AGENT_FILES)
        ):
            return False
        return not self.patterns or any(
            _matches(pattern.split("/"), path.split("/")) for pattern in self.patterns
        )


class Place(NamedTuple):
    """Where a memory file is: the root to open, the path below it, and how it is cited."""

    root: str
    relative: str
    path: str
    writable: bool
    """False for extra paths and sources."""
    anchor: int
    """How many leading components of `relative` the user named; they may be mount points."""


def is_hidden(name: str) -> bool:
    return name.startswith(".")


def is_visible_folder(name: str) -> bool:
    return not is_hidden(name) and name not in VENDOR_FOLDERS


def is_leftover(name: str) -> bool:
    """Whether a name is one that Emacs (`.#x.md`) or macOS (`._x.md`) creates next to a note."""
    return name.startswith((".#", "._")) or name.lower() == ".md"


def temporary_name(number: int) -> str:
    """Return a name for a writer's temporary file: hidden and not Markdown, so never a note."""
    return f".clawmark-{number}.tmp"


def is_temporary(name: str) -> bool:
    """Whether a file may be a temporary file of a writer."""
    return name.startswith(".clawmark-") and name.endswith(".tmp")


def is_markdown(name: str) -> bool:
    return name[-3:] in MARKDOWN and not is_leftover(name)


def is_memory_name(name: str, media: MediaRules | None) -> bool:
    """Whether a file of this name is memory: Markdown, or an image or audio file if wanted."""
    is_wanted = media is not None and bool(media.modality_of(name))
    return is_markdown(name) or (is_wanted and not is_leftover(name))


# --- extra paths ---


def resolve_extras(
    workspace: str,
    extra_paths: Iterable[str],
    home: str,
    patterns: Mapping[str, tuple[str, ...]] | None = None,
    media: MediaRules | None = None,
) -> tuple[tuple[Extra, ...], tuple[Skipped | ScanFailure, ...]]:
    """Return the usable extra paths, and why others are not; `patterns` by the path as given."""
    extras: dict[Extra, str] = {}
    skipped: list[Skipped | ScanFailure] = []
    for given in extra_paths:
        found = _resolve_extra(workspace, given.strip(), home, media)
        if not isinstance(found, Extra):
            skipped.append(found)
        elif found in extras:
            skipped.append(Skipped(shown(given), f"same as the extra path {shown(extras[found])}"))
        else:
            extras[found] = given
    if patterns:
        extras = {
            extra._replace(patterns=() if extra.file else patterns.get(given, ())): given
            for extra, given in extras.items()
        }
    return tuple(extras), tuple(skipped)


def resolve_sources(
    workspace: str, sources: Iterable[Source], media: MediaRules | None = None
) -> tuple[tuple[Extra, ...], tuple[Skipped | ScanFailure, ...]]:
    """Return the usable sources, and why the others are not."""
    extras: list[Extra] = []
    skipped: list[Skipped | ScanFailure] = []
    for source in sources:
        prefix = f"{source.name}:"
        try:
            mode = os.lstat(source.path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            skipped.append(Skipped(prefix, f"the folder {shown(source.path)} does not exist"))
            continue
        except OSError as error:
            skipped.append(
                ScanFailure(prefix, f"{shown(source.path)} cannot be read: {reason_of(error)}")
            )
            continue
        if not stat.S_ISDIR(mode) or os.path.realpath(source.path) != source.path:
            skipped.append(
                Skipped(
                    prefix, f"{shown(source.path)} is no longer a folder, or lies behind a link"
                )
            )
            continue
        is_inside = is_below(source.path, workspace)
        extras.append(
            Extra(
                prefix=prefix,
                folder="" if is_inside else source.path,
                file="",
                patterns=source.patterns,
                name=source.name,
                within=cited(workspace, source.path) if is_inside else "",
                media=media,
            )
        )
    return tuple(extras), tuple(skipped)


def absent_extras(
    workspace: str, extra_paths: Iterable[str], home: str, usable: Iterable[Extra]
) -> list[str]:
    """Return how the unusable extra paths would be cited; their files may come back."""
    known = {extra.prefix for extra in usable}
    given = [given.strip() for given in extra_paths if not _unusable_text(given.strip())]
    prefixes = [cited(workspace, os.path.normpath(_named(workspace, path, home))) for path in given]
    return [prefix for prefix in prefixes if prefix not in known]


def _named(workspace: str, given: str, home: str) -> str:
    return os.path.join(
        workspace, home + given[1:] if given == "~" or given.startswith("~/") else given
    )


def _resolve_extra(
    workspace: str, given: str, home: str, media: MediaRules | None
) -> Extra | Skipped | ScanFailure:
    skip = _unusable_text(given)
    if skip:
        return Skipped(shown(given), skip)
    named = _named(workspace, given, home)
    try:
        info = os.lstat(named.rstrip("/") or "/")
    except (FileNotFoundError, NotADirectoryError):
        return Skipped(shown(given), f"extra path not found{_not_expanded(given)}")
    except OSError as error:
        return ScanFailure(
            cited(workspace, os.path.normpath(named)),
            f"extra path cannot be read: {reason_of(error)}",
        )
    real = os.path.realpath(named)
    plain = os.path.normpath(named)
    if stat.S_ISLNK(info.st_mode) or (is_below(plain, workspace) and plain != real):
        return Skipped(
            shown(given),
            f"a link; to index what it leads to, name its real location: {shown(real)}",
        )
    if is_below(home, real) or os.path.dirname(real) == real:
        return Skipped(shown(given), "the whole home folder or more; name a folder inside it")
    return _extra_at(workspace, given, real, info, media)


def _extra_at(
    workspace: str, given: str, real: str, info: os.stat_result, media: MediaRules | None
) -> Extra | Skipped:
    if stat.S_ISDIR(info.st_mode):
        inside = is_below(real, workspace)
        return Extra(cited(workspace, real), "" if inside else real, "", media=media)
    if not stat.S_ISREG(info.st_mode):
        return Skipped(shown(given), "neither a folder nor a file")
    folder, name = os.path.split(real)
    if not is_memory_name(name, media):
        return Skipped(shown(given), "not a .md file")
    folder = "" if is_below(folder, workspace) else folder
    return Extra(cited(workspace, real), folder, name, media=media)


def _unusable_text(given: str) -> str:
    if not given:
        return "an empty extra path"
    if "\0" in given or not is_utf8(given):
        return "not a valid path"
    if given.startswith("~") and given != "~" and not given.startswith("~/"):
        return "only ~ and ~/… are expanded, not another user's home; give the full path"
    return ""


def _not_expanded(given: str) -> str:
    if "$" in given or "%" in given:
        return " (variables are not expanded)"
    return " (patterns are not expanded; name the folder)" if any(c in given for c in "*?[") else ""


def cited(workspace: str, real: str) -> str:
    """Return how an absolute path is cited: relative to the workspace, with forward slashes."""
    try:
        relative = os.path.relpath(real, workspace)
    except ValueError:  # another drive on Windows
        relative = real
    relative = relative.replace(os.sep, "/")
    return "" if relative == "." else relative


def _matches(pattern: Sequence[str], path: Sequence[str]) -> bool:
    """Whether a path matches a pattern, part by part; `**` matches any number of folders."""

    def with_none(places: set[int]) -> set[int]:
        for place in sorted(places):
            while place < len(pattern) and pattern[place] == "**":
                place += 1
                places.add(place)
        return places

    places = with_none({0})
    for part in path:
        met = {
            place for place in places if place < len(pattern) and fnmatchcase(part, pattern[place])
        }
        places = with_none({place if pattern[place] == "**" else place + 1 for place in met})
    return len(pattern) in places


def is_below(path: str, folder: str) -> bool:
    """Whether an absolute path is the folder itself or below it."""
    if os.sep != "/":
        path, folder = path.replace("/", os.sep), folder.replace("/", os.sep)
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


# --- finding the place of a path ---


def locate(workspace: str, aliases: Sequence[str], extras: Sequence[Extra], path: str) -> Place:
    """Find the place of a path; `aliases` are other spellings of the workspace's path."""
    check_text(path)
    while path.startswith("./"):
        path = path[2:]
    relative = _from_absolute(workspace, aliases, extras, path) if os.path.isabs(path) else path
    for extra in extras:
        if (
            extra.name
            and relative.startswith(extra.prefix)
            and relative[len(extra.prefix) :][:1] not in ("", "/")
        ):
            return _in_source(workspace, aliases, extras, extra, relative)
    outside = _in_outside_extra(workspace, extras, relative)
    if outside is not None:
        return outside
    left_out = [
        extra for extra in extras if extra.patterns and relative.startswith(extra.prefix + "/")
    ]
    if any(extra.folder for extra in left_out):
        raise _left_out(path)
    parts = split_relative(relative)
    own = _is_own(relative)
    views: _Views = [(parts[1:], None)] if own or relative in READABLE_FILES else []
    views += _below_inside_extras(extras, relative)
    if not views:
        for extra in extras:
            below = relative[len(extra.within) + 1 :] if extra.within else relative
            if extra.name and not extra.folder and relative == extra.in_workspace(below):
                return _in_source(workspace, aliases, extras, extra, extra.prefix + below)
        raise _left_out(path) if left_out else not_memory(path)
    visible = [view for view, media in views if _is_visible(view, media)]
    if not visible:
        raise _skipped(path, views[0][0])
    return Place(
        root=workspace,
        relative=relative,
        path=relative,
        writable=own,
        anchor=len(parts) - min(map(len, visible)),
    )


def _is_own(relative: str) -> bool:
    """Whether a path in the workspace is where its own memory files are."""
    return relative in ROOT_FILES or (
        relative.startswith("memory/") and len(relative) > len("memory/")
    )


def _in_source(
    workspace: str, aliases: Sequence[str], extras: Sequence[Extra], extra: Extra, path: str
) -> Place:
    """Find the place of a file of a source, such as `notes:projects/x.md`."""
    rest = path[len(extra.prefix) :]
    parts = split_relative(rest)
    below = rest if extra.folder else extra.in_workspace(rest)
    full = f"{(extra.folder or workspace).rstrip('/')}/{below}"
    if is_below(full, workspace) and _is_own(own := full[len(workspace.rstrip("/")) + 1 :]):
        return locate(workspace, aliases, extras, own)
    if not extra.covers(rest) or (extra.folder and is_below(full, workspace)):
        hint = "`clawmark sources` shows which files of it are."
        raise denied(path, f"is not searched in the source {extra.name}", "not-memory", hint)
    if not _is_visible(parts, extra.media):
        raise _skipped(path, parts)
    if extra.folder:
        return Place(root=extra.folder, relative=rest, path=path, writable=False, anchor=0)
    anchor = len(extra.within.split("/")) if extra.within else 0
    return Place(
        root=workspace, relative=extra.in_workspace(rest), path=path, writable=False, anchor=anchor
    )


def _from_absolute(
    workspace: str, aliases: Sequence[str], extras: Sequence[Extra], path: str
) -> str:
    for folder in (workspace, *aliases):
        if is_below(path, folder) and path != folder:
            return path[len(folder.rstrip("/")) + 1 :]
    for extra in extras:
        if extra.folder and is_below(path, extra.folder) and path != extra.folder:
            rest = path[len(extra.folder.rstrip("/")) + 1 :]
            return f"{extra.lead if extra.name else cited(workspace, extra.folder) + '/'}{rest}"
    raise denied(path, "is outside the workspace", "outside", EXTRA_PATHS_HINT)


def _in_outside_extra(workspace: str, extras: Sequence[Extra], path: str) -> Place | None:
    for extra in extras:
        if not extra.folder or extra.name:
            continue
        if extra.file:
            if path == extra.prefix:
                return Place(
                    root=extra.folder, relative=extra.file, path=path, writable=False, anchor=0
                )
        elif path.startswith(extra.prefix + "/"):
            rest = path[len(extra.prefix) + 1 :]
            if rest.startswith("../") or rest == "..":
                continue  # `..` and `../..` may both be extra paths
            parts = split_relative(rest)
            # An extra path may contain the workspace, whose own rules come first.
            if extra.covers(rest) and not is_below(f"{extra.folder.rstrip('/')}/{rest}", workspace):
                if not _is_visible(parts, extra.media):
                    raise _skipped(path, parts)
                return Place(root=extra.folder, relative=rest, path=path, writable=False, anchor=0)
    return None


def _below_inside_extras(extras: Sequence[Extra], relative: str) -> _Views:
    """Return the components below each extra path in the workspace that covers this path."""
    views: _Views = []
    for extra in extras:
        if extra.folder or extra.name:
            continue
        if extra.file:
            if relative == extra.prefix:
                views.append(([extra.file], extra.media))
        elif not extra.prefix or relative.startswith(extra.prefix + "/"):
            below = relative[len(extra.prefix) + 1 :] if extra.prefix else relative
            if extra.covers(below):
                views.append((below.split("/"), extra.media))
    return views


def _is_visible(parts: Sequence[str], media: MediaRules | None) -> bool:
    """Whether a scan would list the path; other files cannot be read either."""
    return not parts or (
        is_memory_name(parts[-1], media) and all(is_visible_folder(part) for part in parts[:-1])
    )


def _skipped(path: str, parts: Sequence[str]) -> PathDenied:
    for part in parts[:-1]:
        if not is_visible_folder(part):
            what = f"is in {shown(part)}, a folder that is skipped"
            return denied(path, what, "not-memory", MEMORY_HINT)
    if parts[-1][-3:] in MARKDOWN:
        return denied(path, "was left by an editor or the system", "not-memory", MEMORY_HINT)
    return denied(path, "is not a .md file", "not-markdown", MEMORY_HINT)


def _left_out(path: str) -> PathDenied:
    hint = "Look at the patterns of memorySearch.extraPaths."
    return denied(path, "is left out by the pattern of its extra path", "not-memory", hint)


def not_memory(path: str) -> PathDenied:
    """Return the error for a path inside the workspace that is not a memory file."""
    parts = path.split("/")
    if parts == ["memory"]:
        return denied(path, "is a folder, not a file", "not-a-file", MEMORY_HINT)
    hint = "Write paths with forward slashes." if "\\" in path else MEMORY_HINT
    if parts[0] == "sessions":
        hint = 'Transcripts can be read when memorySearch.sources names "sessions".'
    return denied(path, "is not a memory file", "not-memory", hint)
