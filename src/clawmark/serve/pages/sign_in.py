"""Sign in with a token, and out again."""

from __future__ import annotations

import hmac
from typing import NamedTuple
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from clawmark.net.server.requests import Scope, values_of
from clawmark.serve.clients import cookie_of
from clawmark.serve.pages.view import (
    FORM_FIELD,
    PAGE,
    SIGN_IN,
    check_host,
    cookie_name,
    form_token,
    page,
    problem_page,
    redirect,
)
from clawmark.serve.problems import Problem, RequestFailed, invalid
from clawmark.serve.service import Service
from clawmark.web.security import parse_form

WEEK = 7 * 24 * 3600
MAX_FORM = 16 << 10
_OUTSIDE = Problem(
    status=403,
    type="ForeignForm",
    message="The form was sent from another site.",
    hint="Open the page itself.",
)
_OLD_FORM = Problem(
    status=403, type="OldForm", message="The form is out of date.", hint="Reload its page."
)


class SignInPage(NamedTuple):
    """The model of the sign-in page."""

    next: str
    problem: str = ""


def sign_in_routes(service: Service) -> list[Route]:
    """Return the routes for signing in and out."""

    async def show(request: Request) -> Response:
        request.scope["state"]["route"] = PAGE
        given = request.query_params
        problem = (
            "The token is no longer valid: it expired or was revoked." if "problem" in given else ""
        )
        try:
            check_host(request.scope, service)
        except RequestFailed as error:
            return problem_page(request, error.problem)
        return page(request, "team_sign_in.html", SignInPage(local(given.get("next", "")), problem))

    async def sign_in(request: Request) -> Response:
        scope = request.scope
        scope["state"]["route"] = PAGE
        try:
            fields = _form(scope, service)
            token = fields.get("token", "").strip()
            grant = await service.run(lambda: service.admit(scope, token))
        except RequestFailed as error:
            if error.problem.status != 401:
                return problem_page(request, error.problem)
            model = SignInPage(local(fields.get("next", "")), error.problem.message)
            return page(request, "team_sign_in.html", model, status=401)
        assert grant.caller
        made = redirect(local(fields.get("next", "")))
        _set_cookie(made, service, token, WEEK)
        return made

    async def sign_out(request: Request) -> Response:
        scope = request.scope
        scope["state"]["route"] = PAGE
        token = cookie_of(scope["headers"], cookie_name(service))
        try:
            fields = _form(scope, service)
            given = fields.get(FORM_FIELD, "").encode("utf-8", "replace")
            if not hmac.compare_digest(given, form_token(token).encode()):
                raise RequestFailed(_OLD_FORM)
        except RequestFailed as error:
            return problem_page(request, error.problem)
        made = redirect(SIGN_IN)
        _set_cookie(made, service, "", 0)
        return made

    return [
        Route(SIGN_IN, show, methods=["GET"]),
        Route(SIGN_IN, sign_in, methods=["POST"]),
        Route("/sign-out", sign_out, methods=["POST"]),
    ]


def local(address: str) -> str:
    """Return an address of this server to continue at; any other becomes the search page."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return "/search"
    is_local = not parts.scheme and not parts.netloc and address.isprintable()
    if not is_local or not address.startswith("/") or address[1:2] in ("/", "\\"):
        return "/search"
    return address


def _form(scope: Scope, service: Service) -> dict[str, str]:
    """Return the fields of a form that this site has sent."""
    check_host(scope, service)
    headers = scope["headers"]
    origins = values_of(headers, b"origin")
    own = {start + host for host in service.options.hosts for start in (b"http://", b"https://")}
    if len(origins) != 1 or origins[0].lower() not in own:
        raise RequestFailed(_OUTSIDE)
    body: bytes = scope["state"]["body"]
    types = [one.partition(b";")[0].strip().lower() for one in values_of(headers, b"content-type")]
    if types != [b"application/x-www-form-urlencoded"] or len(body) > MAX_FORM:
        raise RequestFailed(invalid("The body is not a form."))
    return parse_form(body)


def _set_cookie(made: Response, service: Service, value: str, seconds: int) -> None:
    made.set_cookie(
        cookie_name(service),
        value,
        max_age=seconds,
        path="/",
        secure=bool(service.options.public_url),
        httponly=True,
        samesite="lax",
    )
