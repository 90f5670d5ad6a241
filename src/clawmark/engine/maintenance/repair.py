"""What happens to an index that cannot be used: it is set aside, a new one takes its place, and
both are said.

A damaged, truncated, foreign or newer index comes in as the error it caused; a sentence for the
user goes out. The files are the truth, so nothing is lost by starting over. Filling the new index
is left to the sync that follows, which also takes the vectors that can still be read out of the old
one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

from clawmark.model.errors import (
    ClawmarkError,
    IndexBusy,
    IndexDamaged,
    IndexFromTheFuture,
    IndexStoreError,
)
from clawmark.store.sqlite.store import SqliteStore

T = TypeVar("T")

BROKEN = (IndexDamaged, IndexFromTheFuture)
ATTEMPTS = 5
"""Another process may set aside and begin again at the same moment; more than a few of these are no
coincidence.
"""


def healing(index: SqliteStore, act: Callable[[], T]) -> tuple[T, str]:
    """What `act` gives, and what had to be done for it: a sentence, or nothing.

    It is done again on the new index, and also when somebody deleted or replaced the index
    meanwhile."""
    done = ""
    for _ in range(ATTEMPTS):
        mark = index.mark()
        try:
            result = act()
        except BROKEN as error:
            done = heal(index, error) or done
        except IndexStoreError:
            if not index.was_replaced(mark):
                raise
        else:
            if not index.was_replaced(mark):
                return result, done
    return act(), done


def heal(index: SqliteStore, error: ClawmarkError) -> str:
    """Set the index aside that caused an error, and say so; nothing when another process has done
    it.
    """
    aside = index.set_aside("newer" if isinstance(error, IndexFromTheFuture) else "corrupt")
    if not aside:
        return ""
    name = os.path.basename(aside)
    sentence = (
        f"{error.message} It was set aside as {name}, and the index is built again from the files."
    )
    try:
        with index.transaction() as writer:
            healed = {"at": time.time_ns() // 1_000_000, "what": sentence, "aside": name}
            writer.set_facts("healed", healed)
    except IndexBusy:
        return sentence
    return sentence
