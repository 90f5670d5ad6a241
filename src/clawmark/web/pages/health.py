"""Health: what `status` and `doctor` say, as sentences, problems first."""

from __future__ import annotations

from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from clawmark.memory import Memory
from clawmark.model.reports import Finding
from clawmark.web.render import page

_ORDER = {"problem": 0, "note": 1, "ok": 2}


class HealthPage(NamedTuple):
    """The model of the health page."""

    findings: tuple[Finding, ...]


def health_page(memory: Memory) -> HealthPage:
    """Examine the memory; nothing is changed and no service is called."""
    found = sorted(memory.doctor(), key=lambda one: _ORDER[one.level])
    return HealthPage(findings=tuple(found))


def _health(request: Request) -> Response:
    memory: Memory = request.app.state.site.memory
    return page(request, "health.html", health_page(memory))


routes = [Route("/health", _health)]
