"""Carry out an uninstallation; one that was interrupted is finished by the next one.

Coding agents are disconnected first, while their receipts exist, and the settings are removed last,
because they say where everything else is."""

from __future__ import annotations

import os
import shutil
from typing import NamedTuple

from clawmark.cli.uninstall.plan import BACKUPS, Connection, UninstallPlan
from clawmark.hooks.install import carry_out
from clawmark.model.errors import ClawmarkError


class Outcome(NamedTuple):
    """What was removed, and what could not be, each with the reason."""

    removed: tuple[str, ...]
    failed: tuple[str, ...]


def uninstall(plan: UninstallPlan) -> Outcome:
    """Remove what the plan names; a failure does not stop the rest."""
    removed, failed = list[str](), list[str]()
    for connection in plan.connections:
        reason = _disconnect(connection)
        (failed if reason else removed).append(
            f"{connection.name}: {reason}" if reason else connection.name
        )
    is_connected = bool(failed)
    for one in plan.removals:
        if is_connected and one.what == BACKUPS:
            continue  # the receipts are needed to try again
        reason = _remove(one.path)
        (failed if reason else removed).append(f"{one.path}: {reason}" if reason else one.path)
    for folder in plan.folders:
        _remove_if_empty(folder)
    return Outcome(tuple(removed), tuple(failed))


def _disconnect(connection: Connection) -> str:
    """Take our entries out of the files of a coding agent; return why that failed, if it did."""
    try:
        carry_out(connection.plan, connection.receipt, connection.folder, mode=0o600)
    except ClawmarkError as error:
        return f"{error.message} {error.hint}".rstrip()
    except OSError as error:
        return f"{error.strerror or error}."
    return ""


def _remove(path: str) -> str:
    """Remove a file or a folder, but nothing behind a link; return why that failed, if it did."""
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"{error.strerror or error}."
    return ""


def _remove_if_empty(folder: str) -> None:
    try:
        os.rmdir(folder)
    except OSError:
        return  # it has other files, or does not exist
