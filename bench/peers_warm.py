"""The part of `peers.py` that asks one open `Memory`; the shared driver starts it."""

from __future__ import annotations

import time

from warmlib import CFG, measure  # of the shared folder, on PYTHONPATH

began = time.perf_counter()

from clawmark import Memory  # noqa: E402  # the import is part of what is measured

with Memory.open(CFG["workspace"], background=False) as memory:

    def search(query: str) -> list[str]:
        return [hit.path for hit in memory.search(query, max_results=CFG["k"]).hits]

    measure(search, (time.perf_counter() - began) * 1000)
