"""Make missing vectors of passages in the background, for the callers whose requests showed some.

A write leaves them if the embedder is slow, and so does a search by a better embedder than before.
A lock in the database keeps replicas from embedding the same space twice."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from clawmark.backends.team.direct import DirectSpaces
from clawmark.model.errors import ClawmarkError
from clawmark.serve.metrics import Metrics
from clawmark.store.postgres.servers import Server

_LOCK = 0x434C454D
"""The first key of the advisory locks: `CLEM`. The second one is made from the space."""
RETRY_SECONDS = 30.0


class DueVectors:
    """A thread that embeds; `add` names a caller, whose writable spaces are looked at."""

    def __init__(
        self,
        server: Server,
        make_spaces: Callable[[str], DirectSpaces],
        metrics: Metrics,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        self._server = server
        self._make_spaces = make_spaces
        self._metrics = metrics
        self._retry_seconds = retry_seconds
        self._condition = threading.Condition()
        self._callers = dict[str, None]()
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="clawmark-embed", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def add(self, caller: str) -> None:
        with self._condition:
            self._callers[caller] = None
            self._condition.notify()

    def stop(self, seconds: float) -> None:
        """End the thread; a batch that is being embedded is waited for."""
        self._is_stopped.set()
        with self._condition:
            self._condition.notify()
        if self._thread.is_alive():
            self._thread.join(seconds)

    def _run(self) -> None:
        while not self._is_stopped.is_set():
            caller = self._next()
            if caller is None:
                return
            try:
                is_done = self._embed(caller)
            except ClawmarkError as error:
                logging.getLogger("clawmark.serve").warning("%s %s", error.message, error.hint)
                is_done = False
            except Exception as error:  # boundary of the thread: the server goes on without vectors
                logging.getLogger("clawmark.serve").error(
                    "Embedding failed with %s.", type(error).__name__
                )
                is_done = False
            if not is_done and not self._is_stopped.wait(self._retry_seconds):
                self.add(caller)

    def _next(self) -> str | None:
        with self._condition:
            while not self._callers and not self._is_stopped.is_set():
                self._condition.wait()
            if self._is_stopped.is_set():
                return None
            caller = next(iter(self._callers))
            del self._callers[caller]
            return caller

    def _embed(self, caller: str) -> bool:
        """Embed what is due in the spaces that a caller may write; False if something is left."""
        spaces, is_done = self._make_spaces(caller), True
        for space in spaces.spaces():
            if space.may_write and not self._is_stopped.is_set():
                is_done = self._embed_space(spaces, space.name) and is_done
        return is_done

    def _embed_space(self, spaces: DirectSpaces, name: str) -> bool:
        with self._server.direct() as connection:
            found = connection.execute(
                "SELECT pg_try_advisory_lock(%s, hashtext(%s))", (_LOCK, name)
            ).fetchone()
            if found is None or not found[0]:
                return True  # another replica does it
            due = spaces.embed_due(name, out_of_time=self._is_stopped.is_set)
        self._metrics.add("clawmark_embedding_runs_total")
        return not due.vectors
