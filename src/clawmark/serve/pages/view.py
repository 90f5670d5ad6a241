"""What all pages share: who looks at them, how they are rendered, and what their errors look like.

A browser is let in by a cookie that holds the token. Scripts cannot read it, and it is not sent
with forms of other sites."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Awaitable, Callable
from functools import cache
from typing import NamedTuple
from urllib.parse import quote, urlencode

from jinja2 import ChoiceLoader, Environment, FileSystemLoader
from starlette.requests import Request
from starlette.responses import Response

from clawmark.backends.team.base import TeamSpaces
from clawmark.net.server.requests import Scope, values_of
from clawmark.serve.clients import cookie_of
from clawmark.serve.grants import Grant, Team
from clawmark.serve.problems import NO_TOKEN, Problem, RequestFailed
from clawmark.serve.service import Service
from clawmark.web.render import environment as web_environment
from clawmark.web.render import to_json

PAGE = "page"
SIGN_IN = "/sign-in"
FORM_FIELD = "form_token"
_FOLDER = os.path.join(os.path.dirname(__file__), "templates")
_FOREIGN = Problem(
    status=403,
    type="ForeignHost",
    message="The Host header does not name this server.",
    hint="Set serve.publicUrl to the address under which browsers see it.",
)


class Viewer(NamedTuple):
    """Who looks at a page, and what may be shown."""

    request: Request
    grant: Grant
    spaces: TeamSpaces
    service: Service

    @property
    def team(self) -> Team:
        return self.service.team


class Site(NamedTuple):
    """What the frame of a page shows."""

    name: str = ""
    """Who is signed in; empty if no one is."""
    form_token: str = ""


Show = Callable[[Viewer], Response]


def view(service: Service, show: Show) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint of a page; without a valid token, it leads to the sign-in page."""

    async def answer(request: Request) -> Response:
        scope = request.scope
        scope["state"]["route"] = PAGE
        token = cookie_of(scope["headers"], cookie_name(service)) or None
        try:
            check_host(scope, service)

            def work() -> Response:
                grant = service.admit(scope, token)
                scope["state"]["site"] = Site(grant.caller, form_token(token or ""))
                return show(
                    Viewer(
                        request=request, grant=grant, spaces=service.spaces(grant), service=service
                    )
                )

            return await service.run(work)
        except RequestFailed as error:
            if error.problem.status == 401:
                return _sign_in_first(request, error.problem, has_cookie=bool(token))
            return problem_page(request, error.problem)

    return answer


def page(request: Request, name: str, model: object, *, status: int = 200) -> Response:
    """Answer with a template and its model, or with `?format=json` with the model as JSON."""
    if request.query_params.get("format") == "json":
        return Response(to_json(model), status, media_type="application/json")
    site: Site = request.scope["state"].get("site", Site())
    text = (
        environment()
        .get_template(name)
        .render(model=model, site=site, here=request.url.path, query=request.query_params)
    )
    return Response(
        text.encode("utf-8", "replace"), status, media_type="text/html", headers={"vary": "cookie"}
    )


def problem_page(request: Request, problem: Problem) -> Response:
    """Answer with an error, as a page or as JSON."""
    if request.query_params.get("format") == "json":
        made = Response(problem.body, problem.status)
    else:
        made = page(request, "team_problem.html", problem, status=problem.status)
    for name, value in problem.headers:
        if name in (b"retry-after", b"allow"):
            made.headers[name.decode()] = value.decode()
    if made.media_type is None:
        made.headers["content-type"] = "application/json"
    return made


def redirect(address: str, status: int = 303) -> Response:
    return Response(status_code=status, headers={"location": address})


def check_host(scope: Scope, service: Service) -> None:
    """Refuse a request for another host: a foreign name may have been pointed to this machine."""
    given = values_of(scope["headers"], b"host")
    if len(given) != 1 or given[0].lower() not in service.options.hosts:
        raise RequestFailed(_FOREIGN)


def cookie_name(service: Service) -> str:
    """Return the name of the cookie; browsers keep `__Host-` cookies to one https host."""
    return "__Host-clawmark" if service.options.public_url else "clawmark-team"


def form_token(token: str) -> str:
    """Return what a form of a signed-in browser carries; all replicas make the same one."""
    return hmac.new(token.encode(), b"clawmark team form", hashlib.sha256).hexdigest()


def _sign_in_first(request: Request, problem: Problem, *, has_cookie: bool) -> Response:
    if request.query_params.get("format") == "json" or request.query_params.get("part"):
        return problem_page(request, problem)
    query = request.url.query
    wanted = request.url.path + (f"?{query}" if query else "")
    fields = {"next": wanted} if wanted != "/" else {}
    if has_cookie and problem != NO_TOKEN:
        fields["problem"] = "1"
    return redirect(f"{SIGN_IN}?{urlencode(fields)}" if fields else SIGN_IN)


def space_address(name: str) -> str:
    return f"/space/{quote(name, safe='')}"


@cache
def environment() -> Environment:
    """Return the templates of these pages over those of `clawmark web`, with its filters."""
    base = web_environment()
    loaders = [FileSystemLoader(_FOLDER), base.loader]
    made = base.overlay(loader=ChoiceLoader([one for one in loaders if one is not None]))
    made.filters["space_address"] = space_address
    return made
