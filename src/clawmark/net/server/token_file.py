"""The secret of an HTTP server in a file: made at the first start, readable by the owner only."""

from __future__ import annotations

import os
import secrets
import stat

from clawmark.model.errors import ConfigError
from clawmark.system.private_files import make_private_folder

STRONG_BYTES = 32
"""The minimum for a server that other machines can reach; our tokens encode 32 random bytes."""
_MAX_BYTES = 4096


def read_token_file(path: str) -> bytes:
    """Return the token in a file; create it if there is none yet."""
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
            raise _unusable(path, "other users may have read it")
        token = os.read(descriptor, _MAX_BYTES).strip()
    finally:
        os.close(descriptor)
    if not token or not all(0x21 <= byte <= 0x7E for byte in token):
        raise _unusable(path, "it does not hold a token of printable characters")
    return token


def _make(path: str) -> None:
    """Write a temporary file and link it into place, so that a token is never read half written."""
    make_private_folder(os.path.dirname(path))
    temporary = f"{path}.{secrets.token_hex(8)}"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(STRONG_BYTES) + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)
        except FileExistsError:
            return  # another server was faster; its token is used
        finally:
            os.unlink(temporary)
    except OSError as error:
        raise ConfigError(
            f"The token file {path} cannot be created: {error.strerror}.",
            hint="Choose another --state-dir.",
        ) from error


def _unusable(path: str, reason: str) -> ConfigError:
    return ConfigError(
        f"The token file {path} is not used: {reason}.",
        hint="Delete it; the next start creates a new one.",
    )
