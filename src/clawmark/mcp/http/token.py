"""The token of the HTTP server: made at the first start, kept in the state folder, readable by its
owner alone.

In: the state folder. Out: the token's bytes. It is compared in `guard`, and stands in no address,
log or message."""

from __future__ import annotations

import os
import secrets
import stat

from clawmark.model.errors import ConfigError
from clawmark.system.private_files import make_private_folder

FILE = "mcp-token"
STRONG_BYTES = 32
"""What a server that others can reach asks for; a token we make has 43 characters that stand for 32
random bytes.
"""
_LONGEST = 4096


def token_path(state_dir: str) -> str:
    """Where the token is kept."""
    return os.path.join(state_dir, FILE)


def read_token(state_dir: str) -> bytes:
    """The token, made now when there is none yet."""
    path = token_path(state_dir)
    try:
        return _read(path)
    except FileNotFoundError:
        _make(path)
        return _read(path)


def _read(path: str) -> bytes:
    try:
        descriptor = os.open(
            path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        )
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unusable(path, f"it cannot be opened: {error.strerror}") from error
    try:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            raise _unusable(path, "it is not a file")
        if hasattr(os, "geteuid") and (info.st_mode & 0o077 or info.st_uid != os.geteuid()):
            raise _unusable(path, "others may have read it")
        token = os.read(descriptor, _LONGEST).strip()
    finally:
        os.close(descriptor)
    if not token or not all(0x21 <= byte <= 0x7E for byte in token):
        raise _unusable(path, "it holds no token of visible characters")
    return token


def _make(path: str) -> None:
    """Write a new token beside its place and link it there, so that nobody ever reads half of one."""
    make_private_folder(os.path.dirname(path))
    beside = f"{path}.{secrets.token_hex(8)}"
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(STRONG_BYTES) + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(beside, path)
        except FileExistsError:
            return  # another server was first; its token counts
        finally:
            os.unlink(beside)
    except OSError as error:
        raise ConfigError(
            f"The token {path} cannot be made: {error.strerror}.", hint="Name another --state-dir."
        ) from error


def _unusable(path: str, reason: str) -> ConfigError:
    return ConfigError(
        f"The token {path} is not used: {reason}.",
        hint="Delete it, and the next start makes a new one.",
    )
