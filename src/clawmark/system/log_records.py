"""Loggers whose records also go to the log file that was started.

Modules get their loggers here instead of from `logging`, so that a command which logs nothing does
not import `logging`."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from clawmark.system import log_file

PRIVATE = {"is_private": True}
"""As `extra` of a record: its message may quote what a plugin was given, and is not in the file."""
_LEVELS = {logging.INFO: "info", logging.WARNING: "warning"}


class LogFileHandler(logging.Handler):
    """Writes records to the current log file."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        log_file.write(
            _LEVELS.get(record.levelno, "error"),
            f"{record.name}: {_message(record)}{_facts(record)}",
            log_file.error_lines(error) if error is not None else (),
        )


_handlers: list[logging.Handler] = []
"""What `attach` has added; removed by `detach`."""


def get_logger(name: str) -> logging.Logger:
    """Return a logger below `clawmark`."""
    attach()
    return logging.getLogger(name)


def attach() -> None:
    """Send records to the log file, if one was started."""
    if _handlers or log_file.current() is None:
        return
    logger = logging.getLogger("clawmark")
    if not logger.hasHandlers() and logging.lastResort is not None:
        # With a handler, `logging` no longer prints warnings by itself.
        _handlers.append(logging.lastResort)
    _handlers.append(LogFileHandler(logging.INFO))
    for handler in _handlers:
        logger.addHandler(handler)
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.INFO)


def detach() -> None:
    """Undo `attach`."""
    logger = logging.getLogger("clawmark")
    for handler in _handlers:
        logger.removeHandler(handler)
    if _handlers:
        logger.setLevel(logging.NOTSET)
    _handlers.clear()


def _message(record: logging.LogRecord) -> str:
    """Return the message of a record; exceptions in it only by their kind."""
    if getattr(record, "is_private", False):
        return f"{record.module}.{record.funcName}"
    given = record.args if isinstance(record.args, tuple) else ()
    args = tuple(type(one).__name__ if isinstance(one, BaseException) else one for one in given)
    return str(record.msg) % args if args else str(record.msg)


def _facts(record: logging.LogRecord) -> str:
    """Return the facts of a record; `because` is the message of an error and left out."""
    facts = getattr(record, "facts", None)
    if not isinstance(facts, Mapping):
        return ""
    shown = [f"{name} {value}" for name, value in facts.items() if name != "because"]
    return f" ({', '.join(shown)})" if shown else ""
