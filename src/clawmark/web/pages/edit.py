"""Edit a memory file in the page; a file that changed since it was read is never overwritten."""

from __future__ import annotations

from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from clawmark.agent.review.hunks import Applied, apply_hunks, make_hunks
from clawmark.memory import Memory
from clawmark.model.errors import ClawmarkError, WorkspaceError, WriteConflict
from clawmark.model.provenance import Origin
from clawmark.web.diffs import DiffLine, decoded, diff_texts
from clawmark.web.file_routes import file_route
from clawmark.web.form_text import can_be_in_form, from_form, to_form
from clawmark.web.markdown import file_address
from clawmark.web.pages.file import line_number
from clawmark.web.render import form, page

MOST_CHARACTERS = 1_000_000
BY_USER = Origin(actor="user", kind="edited", trust="owner")


class Conflict(NamedTuple):
    """The file has changed while it was edited."""

    theirs: tuple[DiffLine, ...]
    """What has changed in the file; empty if the text before that is not known."""
    yours: tuple[DiffLine, ...]
    """What saving would change in the file as it is now."""
    is_merged: bool
    """Whether the text in the form has both changes."""


class EditPage(NamedTuple):
    """The model of the page with the form."""

    path: str
    text: str
    base: str
    """The hash of the file that the text is based on; empty for a new file."""
    line: int = 0
    problem: str = ""
    """Why the text was not saved."""
    conflict: Conflict | None = None


def edit_page(memory: Memory, path: str, line: int = 0) -> EditPage:
    """Return the form for a file, which need not exist yet."""
    current = memory.workspace.read_exact(path)
    if current is None:
        return EditPage(path, "", "")
    if len(current.text) > MOST_CHARACTERS or not can_be_in_form(current.text):
        why = "is too long" if can_be_in_form(current.text) else "has characters that do not fit"
        raise WorkspaceError(
            f"{path} {why} for a form.", hint=f"Edit it with: clawmark edit {path}"
        )
    _record(memory)
    return EditPage(path=path, text=to_form(current.text), base=current.hash, line=line)


def _record(memory: Memory) -> None:
    """Add the file to the history, so that a conflict can be shown and resolved."""
    try:
        memory.history.record("before an edit")
    except (ClawmarkError, OSError):
        return  # a conflict is then shown without what has changed in the file


def save(memory: Memory, path: str, edited: str, base: str) -> EditPage | None:
    """Write an edited text; None if it is saved, otherwise the form again, with the text in it."""
    current = memory.workspace.read_exact(path)
    before = current.text if current is not None else ""
    edited = to_form(edited)
    if (current.hash if current is not None else "") != base:
        return _conflict(memory, path, edited, base)
    if edited == to_form(before):
        return None
    shown = EditPage(path=path, text=edited, base=base)
    if not edited.strip():
        return shown._replace(problem="The text is empty. To remove the file, forget it instead.")
    try:
        # The user has seen the whole file: dropping most of its lines is intended.
        memory.replace(path, from_form(edited, before), base, force=True, origin=BY_USER)
    except WriteConflict:
        return _conflict(memory, path, edited, base)
    except WorkspaceError as error:
        return shown._replace(problem=f"{error.message} {error.hint}".strip())
    return None


def _conflict(memory: Memory, path: str, edited: str, base: str) -> EditPage:
    """Return the form with what has changed, based on the file as it is now."""
    current = memory.workspace.read_exact(path)
    now = to_form(current.text) if current is not None else ""
    known = _known_text(memory, path, base)
    merged = merge(path, known, edited, now) if known is not None else None
    text = merged if merged is not None else edited
    gone = " It was deleted." if current is None else ""
    return EditPage(
        path=path,
        text=text,
        base=current.hash if current is not None else "",
        problem=f"{path} has changed since you opened it.{gone} Nothing was saved yet.",
        conflict=Conflict(
            theirs=diff_texts(known, now) if known is not None else (),
            yours=diff_texts(now, text),
            is_merged=merged is not None,
        ),
    )


def _known_text(memory: Memory, path: str, digest: str) -> str | None:
    if not digest:
        return ""
    try:
        data = memory.history.text_with_hash(path, digest)
    except ClawmarkError:
        return None
    return None if data is None else to_form(decoded(data))


def merge(path: str, base: str, yours: str, theirs: str) -> str | None:
    """Return `theirs` with the changes from `base` to `yours`; None if they do not fit."""
    hunks = make_hunks(path, base, yours, lambda _: None)
    applied = apply_hunks(theirs, hunks)
    return applied.text if isinstance(applied, Applied) and hunks else None


def _edit(request: Request) -> Response:
    memory: Memory = request.app.state.site.memory
    path = request.path_params["path"]
    if request.method != "POST":
        line = line_number(request.query_params.get("line", ""))
        return page(request, "edit.html", edit_page(memory, path, line))
    fields = form(request)
    again = save(memory, path, fields.get("text", ""), fields.get("base", ""))
    if again is None:
        return RedirectResponse(file_address(path, line_number(fields.get("line", ""))), 303)
    return page(request, "edit.html", again, status=409 if again.conflict else 400)


routes = [file_route("edit", _edit, ("GET", "POST"))]
