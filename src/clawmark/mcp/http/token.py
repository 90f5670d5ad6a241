"""The token of the HTTP server, in a file of the state folder.

It never appears in an address, a log or a message."""

from __future__ import annotations

import os

from clawmark.net.server.token_file import STRONG_BYTES as STRONG_BYTES
from clawmark.net.server.token_file import read_token_file

FILE = "mcp-token"


def token_path(state_dir: str) -> str:
    return os.path.join(state_dir, FILE)


def read_token(state_dir: str) -> bytes:
    """Return the token; create it if there is none yet."""
    return read_token_file(token_path(state_dir))
