"""Turn the model of a view into its answer: an HTML page, or the same as JSON.

Templates escape everything. Text of the memory is also shown with its control and direction
characters spelled out, unless the filter `verbatim` says that it must not change."""

from __future__ import annotations

import hashlib
import os
import re
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response

from clawmark.model.as_json import as_json
from clawmark.net.server.requests import Rejection, Scope
from clawmark.web.blocks import render_block
from clawmark.web.markdown import citation_address, file_address, quote_path, visible
from clawmark.web.markdown import render as render_markdown

if TYPE_CHECKING:
    from clawmark.web.app import Site

FOLDER = os.path.dirname(__file__)
STATIC_FOLDER = os.path.join(FOLDER, "static")
HTML = "text/html; charset=utf-8"
JSON = "application/json"
_COMMAND = re.compile(r"`([^`\n]+)`")
_ONLY_COMMAND = re.compile(r"clawmark [a-z]+(?: [^.`\n]+)?")
_OPTION = re.compile(r"(?<=\s)(--?[a-z][a-z-]*)")


class Problem(NamedTuple):
    """What an error page says: one sentence, and the next step."""

    status: int
    message: str
    hint: str = ""


def page(request: Request, name: str, model: object, *, status: int = 200) -> Response:
    """Answer with a template and its `model`, or with `?format=json` with the model as JSON."""
    if request.query_params.get("format") == "json":
        return Response(to_json(model), status, media_type=JSON)
    return Response(
        render(name, model, request), status, media_type="text/html", headers={"vary": "cookie"}
    )


def form(request: Request) -> dict[str, str]:
    """Return the fields of a posted form, whose token has been checked."""
    fields: dict[str, str] = request.state.form
    return fields


def render(name: str, model: object, request: Request) -> bytes:
    """Render a template; `site` is the app's own state and `here` the path of the page."""
    site: Site = request.app.state.site
    text = (
        environment()
        .get_template(name)
        .render(model=model, site=site, here=request.url.path, query=request.query_params)
    )
    return text.encode("utf-8", "replace")


def to_json(model: object) -> bytes:
    """Return a model as JSON; lone surrogates, which JSON cannot hold, are replaced."""
    return msgspec.json.encode(_encodable(as_json(model)))


def show_rejection(scope: Scope, rejection: Rejection) -> tuple[str, bytes]:
    """Return the page for a request that was not accepted; it has no links into the memory."""
    problem = Problem(rejection.status, rejection.reason)
    if b"format=json" in scope["query_string"]:
        return JSON, to_json(problem)
    text = environment().get_template("rejected.html").render(model=problem)
    return HTML, text.encode("utf-8", "replace")


def with_home(text: str) -> str:
    """Return a sentence with the home folder of its paths as `~`."""
    home = os.path.expanduser("~").rstrip("/")
    return text.replace(f"{home}/", "~/") if home else text


@cache
def environment() -> Environment:
    """Return the environment of the templates; it is made once."""
    made = Environment(
        loader=FileSystemLoader(os.path.join(FOLDER, "templates")),
        autoescape=True,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=_show,
    )
    made.filters |= {
        "verbatim": lambda text: Markup(escape(text)),
        "file_address": file_address,
        "citation_address": citation_address,
        "plural": plural,
        "command": command,
        "commands": commands,
        "markdown": render_markdown,
        "block_html": render_block,
        "path_quote": quote_path,
        "home_path": with_home,
        "percent": lambda share: round(100 * share),
    }
    made.globals["static"] = static_address
    return made


def compile_templates() -> None:
    """Compile all templates, so that the first page does not wait for its own."""
    for name in environment().list_templates():
        environment().get_template(name)


@cache
def static_address(name: str) -> str:
    """Return the address of a static file; it changes with the content."""
    with open(os.path.join(STATIC_FOLDER, name), "rb") as file:
        return f"/static/{name}?v={hashlib.sha256(file.read()).hexdigest()[:12]}"


def plural(number: int, noun: str) -> str:
    """Format as `1 file` or `1,234 files`."""
    if number != 1:
        noun = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{number:,} {noun}"


def commands(text: str) -> Markup:
    """Return a sentence whose commands, which stand between backquotes, are set as code.

    A next step may also be a command and nothing else."""
    if _ONLY_COMMAND.fullmatch(text):
        return command(text)
    return Markup(_COMMAND.sub(lambda found: _code(found[1]), str(escape(visible(text)))))


def command(text: str) -> Markup:
    """Return a command as code."""
    return Markup(_code(str(escape(visible(text)))))


def _code(escaped: str) -> str:
    """Return code whose options are not broken after a hyphen, where lines are wrapped."""
    return "<code>" + _OPTION.sub(r'<span class="nowrap">\1</span>', escaped) + "</code>"


def _show(value: Any) -> Any:
    """Spell out the invisible characters of text; markup has been made safe already."""
    return visible(value) if type(value) is str else value


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_encodable(name): _encodable(inner) for name, inner in value.items()}
    return [_encodable(inner) for inner in value] if isinstance(value, list) else value
