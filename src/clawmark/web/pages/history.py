"""The versions of a memory file: what each changed, who wrote it, and how to bring one back."""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from clawmark.engine.versions.undo_plan import digest_of
from clawmark.engine.versions.workspace_history import HistoryEntry
from clawmark.history.history import count_changed_lines
from clawmark.memory import Memory
from clawmark.model.errors import WorkspaceError, WriteConflict
from clawmark.web.diffs import DiffLine, decoded, diff_texts
from clawmark.web.entries import writers
from clawmark.web.file_routes import file_route
from clawmark.web.markdown import file_address
from clawmark.web.render import form, page

VERSIONS_SHOWN = 50
SHORT_ID = 8


class ShownVersion(NamedTuple):
    """A version of a file."""

    id: str
    when: str
    who: str
    kind: str
    """`added`, `changed` or `removed`."""
    added: int
    removed: int


class VersionDetails(NamedTuple):
    """One version: what it changed, and what restoring it would change now."""

    version: ShownVersion
    changes: tuple[DiffLine, ...]
    restoring: tuple[DiffLine, ...]
    base: str
    """The hash of the file as it is now."""
    can_restore: bool
    problem: str = ""


class HistoryPage(NamedTuple):
    """The model of the page."""

    path: str
    versions: tuple[ShownVersion, ...]
    has_more: bool
    is_recorded: bool
    """Whether new versions are recorded."""
    details: VersionDetails | None = None


def history_page(memory: Memory, path: str, version: str = "", problem: str = "") -> HistoryPage:
    """Return the versions of a file, and one of them in detail."""
    found = list(islice(memory.history.versions(path), VERSIONS_SHOWN + 1))
    if not found:
        memory.workspace.read_bytes(path)  # PathDenied for a path that cannot have a history
    versions = [_shown(memory, path, one) for one in found[:VERSIONS_SHOWN]]
    details = None
    if version:
        wanted = memory.history.find(version).id
        chosen = next((one for one in versions if one.id == wanted), None)
        if chosen is None:
            raise WorkspaceError(
                f"{path} did not change in version {wanted[:SHORT_ID]}.",
                hint="The list of its versions has those that did.",
            )
        details = _details(memory, path, chosen)._replace(problem=problem)
    return HistoryPage(
        path=path,
        versions=tuple(versions),
        has_more=len(found) > VERSIONS_SHOWN,
        is_recorded=memory.settings.history.enabled,
        details=details,
    )


def _shown(memory: Memory, path: str, entry: HistoryEntry) -> ShownVersion:
    added, removed = count_changed_lines(*memory.history.contents(entry.version, path))
    when = datetime.fromtimestamp(entry.version.seconds, memory.now().tzinfo)
    return ShownVersion(
        id=entry.version.id,
        when=f"{when:%Y-%m-%d %H:%M}",
        who=writers(entry.writers),
        kind=next((one.kind for one in entry.changes if one.path == path), "changed"),
        added=added,
        removed=removed,
    )


def _details(memory: Memory, path: str, version: ShownVersion) -> VersionDetails:
    history = memory.history
    before, after = history.contents(history.find(version.id), path)
    current = memory.workspace.read_bytes(path)
    return VersionDetails(
        version=version,
        changes=diff_texts(decoded(before), decoded(after)),
        restoring=diff_texts(decoded(current), decoded(after)),
        base=digest_of(current),
        can_restore=after is not None and after != current,
    )


def restore(memory: Memory, path: str, version: str, base: str) -> str:
    """Write a file as it was in a version; return why not, or an empty text.

    `base` is the hash of the file that the user has seen."""
    changed = "The file has changed since this page was made; look at the difference again."
    plan = memory.history.plan_restore(path, version)
    if digest_of(plan.before) != base:
        return changed
    try:
        memory.history.apply(plan)
    except WriteConflict:
        return changed
    return ""


def _history(request: Request) -> Response:
    memory: Memory = request.app.state.site.memory
    path = request.path_params["path"]
    if request.method != "POST":
        version = request.query_params.get("version", "")
        return page(request, "history.html", history_page(memory, path, version))
    fields = form(request)
    version = fields.get("version", "")
    problem = restore(memory, path, version, fields.get("base", ""))
    if not problem:
        return RedirectResponse(file_address(path), 303)
    return page(request, "history.html", history_page(memory, path, version, problem), status=409)


routes = [file_route("history", _history, ("GET", "POST"))]
