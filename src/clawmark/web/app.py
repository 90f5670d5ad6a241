"""The web application: its pages, its static files and what its errors look like."""

from __future__ import annotations

import os
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from clawmark.backends.watching import Watching
from clawmark.memory import Memory
from clawmark.model.errors import (
    ClawmarkError,
    ConfigError,
    EmbeddingError,
    FileMissing,
    FilterError,
    IndexBusy,
    IndexDamaged,
    PathDenied,
    ReviewError,
    WorkspaceError,
    WriteConflict,
)
from clawmark.web.events import Events
from clawmark.web.pages import (
    edit,
    file,
    forget,
    graph,
    health,
    history,
    review,
    search,
    sessions,
    timeline,
    view_as,
    why_not,
)
from clawmark.web.render import STATIC_FOLDER, Problem, page

PAGES = (
    search,
    why_not,
    timeline,
    file,
    edit,
    history,
    forget,
    sessions,
    review,
    graph,
    view_as,
    health,
)
"""The modules of the views; each has `routes`."""
STATUS = (
    (FileMissing, 404),
    (PathDenied, 403),
    (WriteConflict, 409),
    (ReviewError, 404),
    (FilterError, 400),
    (ConfigError, 400),
    (WorkspaceError, 400),
    (EmbeddingError, 503),
    (IndexBusy, 503),
    (IndexDamaged, 500),
)
"""The status of an error page, by the first class that fits; 503 for all others."""


class Options(NamedTuple):
    """How the page is served."""

    form_token: str = ""
    """What a form of the page carries in its field `form_token`."""


class Site:
    """What every page needs; it holds nothing about a user or a request."""

    def __init__(self, memory: Memory, options: Options) -> None:
        self.memory = memory
        self.options = options
        self.events = Events()
        self.watching: Watching | None = None
        """What keeps the index up to date; None if nothing does."""

    @property
    def is_watched(self) -> bool:
        """Whether changes of files are noticed as they happen."""
        return self.watching is not None and self.memory.settings.memory_search.sync.watch

    @property
    def workspace(self) -> str:
        """The path of the workspace, with the home folder as `~`."""
        home = os.path.expanduser("~").rstrip("/")
        root = self.memory.places.workspace
        return "~" + root[len(home) :] if home and root.startswith(home + "/") else root

    @property
    def proposals(self) -> int:
        """How many proposals wait for a decision; 0 if they cannot be read, as Health will say."""
        try:
            return self.memory.review.count()
        except ClawmarkError:
            return 0


def make_app(memory: Memory, options: Options) -> Starlette:
    """Return the application; its handlers run in worker threads, where `Memory` may block."""
    routes = [route for module in PAGES for route in module.routes]
    app = Starlette(
        routes=[
            Route("/", _home),
            Route("/events", _events),
            *routes,
            Mount("/static", StaticFiles(directory=STATIC_FOLDER)),
        ],
        exception_handlers={ClawmarkError: _show_error, HTTPException: _show_http_error},
    )
    app.state.site = Site(memory, options)
    return app


def _home(request: Request) -> Response:
    return RedirectResponse("/search", 303)


async def _events(request: Request) -> Response:
    site: Site = request.app.state.site
    return StreamingResponse(site.events.stream(), media_type="text/event-stream")


def problem_of(error: ClawmarkError) -> Problem:
    """Return what the page of an error says."""
    status = next((code for kind, code in STATUS if isinstance(error, kind)), 503)
    return Problem(status, error.message, error.hint)


def _show_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ClawmarkError)
    problem = problem_of(error)
    return page(request, "error.html", problem, status=problem.status)


def _show_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        problem = Problem(404, "There is no such page.", "The bar at the top leads to all views.")
    else:
        problem = Problem(error.status_code, f"{error.detail}.")
    return page(request, "error.html", problem, status=problem.status)
