"""Call the code of a plugin within a time budget; a failure is a value with one sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from clawmark.agent.tools.base import one_line
from clawmark.model.errors import ClawmarkError
from clawmark.system.cancellation import Cancelled
from clawmark.system.time_limit import TimeLimitExceeded, call_within

LONGEST_ERROR = 300
"""Characters of a plugin's error that are shown."""

_T = TypeVar("_T")


class Failed(NamedTuple):
    """A call that raised or took too long."""

    reason: str
    """The end of a sentence about the plugin, such as `failed (ValueError: no table)`."""
    is_late: bool = False


def call_plugin(call: Callable[[], _T], seconds: float, clean: Callable[[str], str]) -> _T | Failed:
    """Make a call in a separate thread, and wait for it at most `seconds`.

    A call that takes longer is abandoned: its thread continues, and its result is dropped.
    `clean` masks secrets in the text of an error."""

    def run() -> _T | Failed:
        try:
            return call()
        except Cancelled:
            raise
        except BaseException as error:  # the boundary of a plugin call
            return Failed(f"failed ({error_text(error, clean)})")

    try:
        return call_within(seconds, run, "plugin")
    except TimeLimitExceeded:
        return Failed(f"did not answer within {seconds:g} seconds", is_late=True)


def error_text(error: BaseException, clean: Callable[[str], str]) -> str:
    """Return the text of an error on one line, without secrets."""
    if isinstance(error, ClawmarkError):
        text = f"{error.message.rstrip('.')}. {error.hint}".strip().rstrip(".")
    else:
        text = f"{type(error).__name__}: {_message(error)}".removesuffix(": ")
    return one_line(clean(text), LONGEST_ERROR)


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # the boundary of a plugin call: the error is a class of the plugin
        return ""
