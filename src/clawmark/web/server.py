"""Serve the web page on the loopback address until a signal arrives."""

from __future__ import annotations

import os
import socket
import sys
import webbrowser
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Thread
from typing import NamedTuple

import anyio.to_thread

from clawmark.backends.watching import Watching
from clawmark.memory import Memory
from clawmark.model.errors import ClawmarkError
from clawmark.model.reports import WatchEvent
from clawmark.net.server.connection_limits import Connections, Limits
from clawmark.net.server.listening import bind, listen
from clawmark.net.server.requests import host_headers
from clawmark.net.server.token_file import read_token_file
from clawmark.system.shutdown import shutdown_on_signals
from clawmark.web.app import Options, Site, make_app
from clawmark.web.render import compile_templates, show_rejection
from clawmark.web.security import TOKEN, Access, AccessControl, FirstTokens

HOST = "127.0.0.1"
PORT = 8378
KEY_FILE = "web-key"
THREADS = 8
"""Handlers that run at the same time."""


class Addresses(NamedTuple):
    """Where the page is."""

    printed: str
    """With a token that is valid while the server runs."""
    opened: str
    """With a token that is valid once."""


async def serve(
    memory: Memory, port: int | None, ready: Callable[[Addresses], None], *, watch: bool = True
) -> int:
    """Serve until a signal arrives and return the exit code; `ready` is called once listening.

    Without a `port`, it is the usual one, or a free one if that is taken."""
    shutdown = shutdown_on_signals()
    anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
    connections = Connections(Limits())
    with _bind(port) as listening:
        bound: int = listening.getsockname()[1]
        key = read_token_file(os.path.join(memory.places.state_dir, KEY_FILE))
        first = FirstTokens()
        access = Access(hosts=host_headers(HOST, bound), key=key, port=bound, first=first)
        app = make_app(memory, Options(form_token=access.form_token))
        site: Site = app.state.site
        site.watching = _watch(memory, site.events.publish) if watch else None
        async with app.router.lifespan_context(app):
            listener = await listen(
                listening, connections, AccessControl(app, access, show_rejection)
            )
            base = f"http://{HOST}:{bound}/?{TOKEN}="
            ready(Addresses(base + first.printed, base + first.make_single_use()))
            Thread(target=compile_templates, name="clawmark-web-templates", daemon=True).start()
            try:
                await shutdown.wait()
            finally:
                listener.close()
                connections.close()
    return shutdown.code


def has_screen(platform: str, environ: Mapping[str, str]) -> bool:
    """Whether a browser has a screen to open on; without one, Python would start a text browser,
    which takes over the terminal."""
    if platform in ("win32", "cygwin", "darwin"):
        return True
    return any(environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def open_browser(address: str) -> None:
    """Open the user's browser without waiting for it; a machine without one is not an error."""

    def show() -> None:
        with suppress(webbrowser.Error, OSError):
            webbrowser.open(address)

    if not has_screen(sys.platform, os.environ):
        return
    Thread(target=show, name="clawmark-web-browser", daemon=True).start()


def _bind(port: int | None) -> socket.socket:
    if port is not None:
        return bind(HOST, port)
    try:
        return bind(HOST, PORT)
    except ClawmarkError:  # another one is open there
        return bind(HOST, 0)


def _watch(memory: Memory, publish: Callable[[WatchEvent], None]) -> Watching | None:
    """Keep the index up to date while pages are open, unless search is switched off."""
    try:
        return memory.watch(publish)
    except ClawmarkError:
        return None
