"""Replace an index that cannot be used by a new one.

A damaged, truncated, foreign or newer index is moved aside under a new name. Nothing is lost: the
next sync fills the new index from the files, and reuses the vectors that can be read from the old
one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from clawmark.model.errors import (
    ClawmarkError,
    IndexBusy,
    IndexDamaged,
    IndexFromTheFuture,
    IndexStoreError,
)

if TYPE_CHECKING:
    from clawmark.store.base import ManagedStore

T = TypeVar("T")

BROKEN = (IndexDamaged, IndexFromTheFuture)
ATTEMPTS = 5
"""Another process may replace the index at the same moment, but not more often than this."""


def healing(index: ManagedStore, act: Callable[[], T]) -> tuple[T, str]:
    """Return the result of `act` and a sentence about the repair it needed, or an empty one.

    `act` is called again on a new index, and when the index was deleted or replaced during the
    call."""
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


def heal(index: ManagedStore, error: ClawmarkError) -> str:
    """Move the index that caused an error aside and describe that; empty when another process has
    done it.
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
