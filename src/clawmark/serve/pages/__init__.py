"""The web page of a team's memory: search, recent entries, spaces and their documents."""

from __future__ import annotations

from starlette.routing import Route

from clawmark.serve.pages.document import show_document
from clawmark.serve.pages.recent import show_recent
from clawmark.serve.pages.search import search_for_note, show_search
from clawmark.serve.pages.sign_in import sign_in_routes
from clawmark.serve.pages.space import show_space, show_spaces
from clawmark.serve.pages.view import PAGE as PAGE
from clawmark.serve.pages.view import Viewer, redirect, view
from clawmark.serve.service import Service


def page_routes(service: Service) -> list[Route]:
    """Return the routes for an application."""
    return [
        *sign_in_routes(service),
        Route("/", view(service, lambda viewer: redirect("/search"))),
        Route("/search", view(service, show_search)),
        Route("/recent", view(service, show_recent)),
        Route("/spaces", view(service, show_spaces)),
        Route("/space/{space}", view(service, show_space)),
        Route("/note/{name:path}", view(service, search_for_note)),
        Route("/file/{path:path}", view(service, show_document)),
    ]


__all__ = ["PAGE", "Viewer", "page_routes"]
