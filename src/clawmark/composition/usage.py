"""The search that agents use: it counts which entries of the daily logs answer them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from clawmark.config.paths import Places
from clawmark.model.values import OWN_MEMORY

if TYPE_CHECKING:
    from clawmark.memory import Memory
    from clawmark.model.values import Found


_is_counted = ContextVar("is_counted", default=True)


@contextmanager
def not_counted() -> Iterator[None]:
    """Call tools without counting: a person looks at what an agent would be given."""
    token = _is_counted.set(False)
    try:
        yield
    finally:
        _is_counted.reset(token)


def usage_file(places: Places) -> str:
    """Return the file with the counts."""
    return os.path.join(places.state_dir, "agents", places.agent_id, "usage.json")


def counting_search(memory: Memory) -> Callable[..., Found]:
    """Return `Memory.search` with counting; a count never delays or changes the answer.

    It searches the shared spaces only if it is given `space`: what others wrote must not be
    recalled unasked."""

    def search(text: str, **options: object) -> Found:
        found = memory.search(text, **{"space": OWN_MEMORY} | options)  # type: ignore[arg-type]
        if not _is_counted.get():
            return found
        # Imported late: a hook that calls no tool does not need it.
        from clawmark.agent.consolidation.usage import UsageCounts, used_entries

        counts = UsageCounts(usage_file(memory.places))
        counts.record(used_entries(text, found.hits), memory.today())
        return found

    return search
