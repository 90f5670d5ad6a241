"""Routes whose address ends with the path of a file.

The name of a file may have line breaks, which Starlette's own `{path:path}` does not match."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from starlette.convertors import PathConvertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


class _FileConvertor(PathConvertor):
    regex = "(?s:.*)"


register_url_convertor("file", _FileConvertor())


def file_route(
    view: str, handler: Callable[[Request], Response], methods: Sequence[str] = ("GET",)
) -> Route:
    """Return the route of `/view/some/file.md`; the handler gets the path parameter `path`."""
    return Route(f"/{view}/{{path:file}}", handler, methods=list(methods))
