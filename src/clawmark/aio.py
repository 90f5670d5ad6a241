"""`AsyncMemory`: the verbs of `Memory`, awaited.

In: the same arguments as `Memory`. Out: the same values, once a worker thread has them. What a verb does is left to
`Memory`; this module owns the threads and nothing else. The core stays synchronous because SQLite, files and vector
arithmetic block anyway; a server must only not block its event loop meanwhile.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, ParamSpec, TypeVar

from clawmark.errors import ClawmarkError
from clawmark.memory import Memory
from clawmark.tools import Payload, Tool

if TYPE_CHECKING:
    from datetime import datetime

    from clawmark.backends.spending import Spending
    from clawmark.config.paths import Places
    from clawmark.config.schema import Loaded, Settings
    from clawmark.documents import Excerpt, Written
    from clawmark.embed.base import Choice, Embedder
    from clawmark.observe import Metrics
    from clawmark.reports import Finding, Progress, Status, SyncReport, VerifyReport
    from clawmark.types import Found, Scan, SyncPlan

P = ParamSpec("P")
T = TypeVar("T")

WORKERS = 4
"""Threads per memory: a long sync must leave room for searches, and two cores serve no more than this."""


class AsyncTool(NamedTuple):
    """A `Tool` whose call is awaited."""

    name: str
    description: str
    parameters: Payload
    call: Callable[[object], Awaitable[Payload]]


class AsyncMemory:
    """A memory for programs with an event loop.

    `async with AsyncMemory.open(path) as memory:` closes it at the end; `memory = await AsyncMemory.open(path)` leaves
    that to you.
    """

    def __init__(self, opening: Callable[[], Memory]) -> None:
        self._opening = opening
        self._memory: Memory | None = None
        self._workers = ThreadPoolExecutor(WORKERS, thread_name_prefix="clawmark")

    @classmethod
    def open(
        cls,
        workspace: str | os.PathLike[str] | None = None,
        *,
        agent: str | None = None,
        config: str | os.PathLike[str] | None = None,
        state_dir: str | os.PathLike[str] | None = None,
        embedder: Embedder | None = None,
        provider: str | None = None,
        overrides: Mapping[str, object] | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> AsyncMemory:
        """Take down what to open; `async with` or `await` opens it."""
        return cls(
            partial(
                Memory.open,
                workspace,
                agent=agent,
                config=config,
                state_dir=state_dir,
                embedder=embedder,
                provider=provider,
                overrides=overrides,
                clock=clock,
            )
        )

    def __await__(self) -> Generator[object, None, AsyncMemory]:
        return self.__aenter__().__await__()

    async def __aenter__(self) -> AsyncMemory:
        if self._memory is None:
            self._memory = await self._run(self._opening)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def places(self) -> Places:
        return self._opened.places

    @property
    def settings(self) -> Settings:
        return self._opened.settings

    @property
    def loaded(self) -> Loaded:
        return self._opened.loaded

    @property
    def choice(self) -> Choice:
        return self._opened.choice

    @property
    def metrics(self) -> Metrics:
        return self._opened.metrics

    async def search(
        self,
        text: str,
        *,
        max_results: int | None = None,
        min_score: float | None = None,
        explain: bool = False,
        freshen: bool = True,
    ) -> Found:
        """Find the passages that answer a question."""
        return await self._run(
            self._opened.search, text, max_results=max_results, min_score=min_score, explain=explain, freshen=freshen
        )

    async def read(self, path: str, *, start: int | None = None, lines: int | None = None) -> Excerpt:
        """Read lines of a memory file."""
        return await self._run(self._opened.read, path, start=start, lines=lines)

    async def append(self, text: str, *, to: str = "") -> Written:
        """Add to today's log, or to another memory file; on disk when it returns."""
        return await self._run(self._opened.append, text, to=to)

    async def plan(self) -> tuple[SyncPlan, Scan]:
        """What a sync would do."""
        return await self._run(self._opened.plan)

    async def sync(
        self,
        *,
        force: bool = False,
        progress: Callable[[Progress], None] | None = None,
        instant_only: bool = False,
    ) -> SyncReport:
        """Bring the index in step with the files. `progress` is called in the worker thread."""
        return await self._run(self._opened.sync, force=force, progress=progress, instant_only=instant_only)

    async def status(self) -> Status:
        """Measure and report the state of workspace and index."""
        return await self._run(self._opened.status)

    async def spending(self) -> Spending:
        """What a full sync would send to the best embedder, and for how much."""
        return await self._run(self._opened.spending)

    async def doctor(self, *, fix: bool = False) -> list[Finding]:
        """Look for problems, and repair what can be repaired when asked to."""
        return await self._run(self._opened.doctor, fix=fix)

    async def verify(self) -> VerifyReport:
        """Re-derive every row of the index from its file and compare."""
        return await self._run(self._opened.verify)

    async def today(self) -> str:
        """Today's date where the user lives."""
        return await self._run(self._opened.today)

    def tools(self, session_key: str = "") -> list[AsyncTool]:
        """Both tools with awaitable calls. Making them waits for nothing, so this one is no coroutine."""
        return [self._awaitable(tool) for tool in self._opened.tools(session_key)]

    async def close(self) -> None:
        """Wait for the verbs that run, drop those that have not begun, and close the memory. Closing twice is fine."""
        memory, self._memory = self._memory, None
        await asyncio.to_thread(self._workers.shutdown, wait=True, cancel_futures=True)
        if memory is not None:
            await asyncio.to_thread(memory.close)

    @property
    def _opened(self) -> Memory:
        if self._memory is None:
            raise ClawmarkError(
                "This AsyncMemory is not open.", hint="Use it inside `async with AsyncMemory.open(...) as memory:`."
            )
        return self._memory

    def _awaitable(self, tool: Tool) -> AsyncTool:
        async def call(given: object) -> Payload:
            return await self._run(tool.call, given)

        return AsyncTool(tool.name, tool.description, tool.parameters, call)

    async def _run(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._workers, partial(verb, *args, **kwargs))
