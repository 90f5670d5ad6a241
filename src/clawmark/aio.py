"""`AsyncMemory`: the verbs of `Memory`, awaited.

In: the same arguments as `Memory`. Out: the same values, once a worker thread has them. What a verb
does is left to `Memory`; this module owns the threads and nothing else. The core stays synchronous
because SQLite, files and vector arithmetic block anyway; a server must only not block its event
loop meanwhile."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

from clawmark.agent.tools import Payload, Tool
from clawmark.memory import Memory
from clawmark.model.errors import ClawmarkError
from clawmark.system.cancellation import Asker

if TYPE_CHECKING:
    from datetime import datetime

    from clawmark.agent.flush.flush import FlushOutcome
    from clawmark.agent.models.completer import Completer
    from clawmark.agent.notes.session_note import NoteOutcome, Reason
    from clawmark.agent.prompt.sections import Prompt
    from clawmark.agent.session.conversation import Conversation, HostOptions, UserTurn
    from clawmark.agent.session.session import Fields
    from clawmark.agent.tools.gate import Refusal
    from clawmark.backends.watching import Watching
    from clawmark.config.paths import Places
    from clawmark.config.schema import Loaded, Settings
    from clawmark.embed.base import Choice, Embedder
    from clawmark.engine.maintenance.evaluate import Question
    from clawmark.engine.maintenance.spending import Spending
    from clawmark.model.documents import Excerpt, Written
    from clawmark.model.reports import (
        Evaluation,
        Finding,
        Probe,
        Progress,
        SourceReport,
        Status,
        SyncReport,
        Transcript,
        VerifyReport,
        WatchEvent,
    )
    from clawmark.model.values import Found, Identity, Scan, SyncPlan, Vector
    from clawmark.system.counters import Metrics
    from clawmark.text.transcripts.records import TranscriptMessage

P = ParamSpec("P")
T = TypeVar("T")

WORKERS = 4
"""Threads per memory: a long sync must leave room for searches, and two cores serve no more than
this.
"""


class AsyncTool(NamedTuple):
    """A `Tool` whose call is awaited."""

    name: str
    description: str
    parameters: Payload
    call: Callable[[object], Awaitable[Payload]]


class AsyncConversation:
    """A `Conversation` whose calls are awaited."""

    def __init__(self, conversation: Conversation, run: Callable[..., Awaitable[Any]]) -> None:
        self.conversation = conversation
        self._run = run

    @property
    def session_key(self) -> str:
        return self.conversation.session_key

    @property
    def session_id(self) -> str:
        """Read from one small file: nothing to wait for."""
        return self.conversation.session_id

    @property
    def transcript(self) -> str:
        """Where everything that is said is kept."""
        return self.conversation.transcript

    async def start(self) -> str:
        """Begin or go on; the system prompt."""
        system: str = await self._run(self.conversation.start)
        return system

    async def on_user(self, message: str) -> UserTurn:
        """Take in what the user says, before the model does."""
        turn: UserTurn = await self._run(self.conversation.on_user, message)
        return turn

    async def on_usage(self, tokens: int = 0, *, reply: str = "") -> None:
        """Note how full the context is after an answer, and the answer."""
        await self._run(self.conversation.on_usage, tokens, reply=reply)

    async def record(self, kind: str, fields: Fields) -> str:
        """Add a line to the transcript that is no message of the two; the line's id."""
        line: str = await self._run(self.conversation.record, kind, fields)
        return line

    async def before_compaction(self) -> FlushOutcome:
        """Flush if this cycle has not been flushed, and begin the next one."""
        outcome: FlushOutcome = await self._run(self.conversation.before_compaction)
        return outcome

    async def flush(self) -> FlushOutcome:
        """Flush now because somebody asks for it."""
        outcome: FlushOutcome = await self._run(self.conversation.flush)
        return outcome

    async def end(self, reason: Reason = "exit") -> NoteOutcome:
        """Leave a note of the session."""
        outcome: NoteOutcome = await self._run(self.conversation.end, reason)
        return outcome


class AsyncMemory:
    """A memory for programs with an event loop.

    `async with AsyncMemory.open(path) as memory:` closes it at the end; `memory = await
    AsyncMemory.open(path)` leaves that to you."""

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
        background: bool = True,
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
                background=background,
            )
        )

    def __await__(self) -> Generator[object, None, AsyncMemory]:
        return self.__aenter__().__await__()

    async def __aenter__(self) -> AsyncMemory:
        if self._memory is None:
            self._memory = await self._run(self._opening)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
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
        since: str | None = None,
        until: str | None = None,
        path: str | None = None,
        source: str | None = None,
        explain: bool = False,
        freshen: bool = True,
    ) -> Found:
        """Find the passages that answer a question; a search that is cancelled stops before its
        next step.
        """
        return await self._run_while_awaited(
            self._opened.search,
            text,
            max_results=max_results,
            min_score=min_score,
            since=since,
            until=until,
            path=path,
            source=source,
            explain=explain,
            freshen=freshen,
        )

    async def read(
        self,
        path: str,
        *,
        start: int | None = None,
        lines: int | None = None,
        max_chars: int = 12_000,
    ) -> Excerpt:
        """Read lines of a memory file."""
        return await self._run(
            self._opened.read, path, start=start, lines=lines, max_chars=max_chars
        )

    async def append(self, text: str, *, to: str = "", day: str = "") -> Written:
        """Add to today's log, or to another memory file; on disk when it returns."""
        return await self._run(self._opened.append, text, to=to, day=day)

    async def check_note(self, text: str, *, to: str = "", day: str = "") -> Refusal | None:
        """Why the write gate would refuse this entry; None when it may be added."""
        return await self._run(self._opened.check_note, text, to=to, day=day)

    async def replace(self, path: str, text: str, base_hash: str, *, force: bool = False) -> str:
        """Put a new text in the place of the one with `base_hash`; the hash of the new one."""
        return await self._run(self._opened.replace, path, text, base_hash, force=force)

    async def plan(self, *, force: bool = False) -> tuple[SyncPlan, Scan]:
        """What a sync would do."""
        return await self._run(self._opened.plan, force=force)

    async def sync(
        self,
        *,
        force: bool = False,
        progress: Callable[[Progress], None] | None = None,
        instant_only: bool = False,
        seconds: float | None = None,
    ) -> SyncReport:
        """Bring the index in step with the files. `progress` is called in the worker thread."""
        verb = self._opened.sync
        return await self._run(
            verb, force=force, progress=progress, instant_only=instant_only, seconds=seconds
        )

    async def watch(
        self, on_event: Callable[[WatchEvent], None] | None = None, *, files: bool | None = None
    ) -> Watching:
        """Keep the index in step from here on; `on_event` is called in another thread.

        Closing the memory ends it too.
        """
        return await self._run(self._opened.watch, on_event, files=files)

    async def session_started(self, session_key: str | None = None) -> bool:
        """Bring the index up to date because a session begins."""
        return await self._run(self._opened.session_started, session_key)

    async def compacted(self) -> None:
        """Bring the index up to date because a conversation was compacted."""
        await self._run(self._opened.compacted)

    async def add_source(
        self, folder: str | os.PathLike[str], *, name: str = "", patterns: Sequence[str] = ()
    ) -> SourceReport:
        """Search a folder of Markdown too."""
        return await self._run(self._opened.add_source, folder, name=name, patterns=patterns)

    async def remove_source(self, name: str) -> str:
        """Stop searching an added folder."""
        return await self._run(self._opened.remove_source, name)

    async def sources(self) -> tuple[SourceReport, ...]:
        """The folders that were added, and the configured extra paths."""
        return await self._run(self._opened.sources)

    async def absolute_path(self, path: str) -> str:
        """Where the file of a path or a citation is on disk."""
        return await self._run(self._opened.absolute_path, path)

    async def sessions(self) -> tuple[Transcript, ...]:
        """The transcripts of the agent's conversations."""
        return await self._run(self._opened.sessions)

    async def transcript(self, name: str) -> tuple[str, tuple[TranscriptMessage, ...]]:
        """The path of a transcript and what was said in it."""
        return await self._run(self._opened.transcript, name)

    async def status(self) -> Status:
        """Measure and report the state of workspace and index."""
        return await self._run(self._opened.status)

    async def keep_vectors(self, identity: Identity, vectors: Mapping[str, Vector]) -> None:
        """Keep vectors made elsewhere, so that the same text is not embedded again."""
        await self._run(self._opened.keep_vectors, identity, vectors)

    async def spending(self) -> Spending:
        """What a full sync would send to the best embedder, and for how much."""
        return await self._run(self._opened.spending)

    async def doctor(self, *, fix: bool = False, probe: bool = False) -> list[Finding]:
        """Look for problems, and repair what can be repaired when asked to."""
        return await self._run(self._opened.doctor, fix=fix, probe=probe)

    async def probe(self) -> tuple[Probe, ...]:
        """Really use the embedder and the vector engine once, and report how that went."""
        return await self._run(self._opened.probe)

    async def evaluate(
        self,
        questions: Iterable[Mapping[str, object] | Question],
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> Evaluation:
        """How well the memory answers questions whose answers are known."""
        return await self._run(self._opened.evaluate, questions, progress=progress)

    async def make_questions(
        self, count: int = 50, *, completer: Completer | None = None
    ) -> list[dict[str, str]]:
        """Questions for `evaluate`, written by the model from passages all over the notes."""
        return await self._run(
            lambda: list(self._opened.make_questions(count, completer=completer))
        )

    async def verify(self) -> VerifyReport:
        """Re-derive every row of the index from its file and compare."""
        return await self._run(self._opened.verify)

    async def today(self) -> str:
        """Today's date where the user lives."""
        return await self._run(self._opened.today)

    async def prompt(
        self, session_key: str | None = None, *, append: bool = False, chat_type: str = ""
    ) -> Prompt:
        """The memory's part of a session's system prompt."""
        return await self._run(self._opened.prompt, session_key, append=append, chat_type=chat_type)

    async def recall(
        self,
        text: str,
        session_key: str | None = None,
        *,
        max_results: int = 3,
        min_score: float | None = None,
        chat_type: str = "",
    ) -> str:
        """What the memory holds about a message, as one block of quoted data."""
        return await self._run_while_awaited(
            self._opened.recall,
            text,
            session_key,
            max_results=max_results,
            min_score=min_score,
            chat_type=chat_type,
        )

    async def conversation(
        self,
        session_key: str = "agent:main:main",
        *,
        completer: Completer | None = None,
        context_window: int = 0,
        append: bool = False,
        recall: bool = False,
        host_options: HostOptions | None = None,
    ) -> AsyncConversation:
        """A session with this memory, its calls awaited; the completer is called in a worker
        thread.
        """
        verb = partial(
            self._opened.conversation,
            completer=completer,
            context_window=context_window,
            host_options=host_options,
        )
        return AsyncConversation(
            await self._run(verb, session_key, append=append, recall=recall), self._run
        )

    def tools(
        self, session_key: str | None = None, *, append: bool = False, chat_type: str = ""
    ) -> list[AsyncTool]:
        """The tools with awaitable calls.

        Making them waits for nothing, so this one is no coroutine.
        """
        return [
            self._awaitable(tool)
            for tool in self._opened.tools(session_key, append=append, chat_type=chat_type)
        ]

    async def close(self) -> None:
        """Wait for the verbs that run, drop those that have not begun, and close the memory.

        Closing twice is fine.
        """
        memory, self._memory = self._memory, None
        await asyncio.to_thread(self._workers.shutdown, wait=True, cancel_futures=True)
        if memory is not None:
            await asyncio.to_thread(memory.close)

    @property
    def _opened(self) -> Memory:
        if self._memory is None:
            raise ClawmarkError(
                "This AsyncMemory is not open.",
                hint="Use it inside `async with AsyncMemory.open(...) as memory:`.",
            )
        return self._memory

    def _awaitable(self, tool: Tool) -> AsyncTool:
        async def call(given: object) -> Payload:
            return await self._run_while_awaited(tool.call, given)

        return AsyncTool(
            name=tool.name, description=tool.description, parameters=tool.parameters, call=call
        )

    async def _run_while_awaited(
        self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The same for a verb that may be given up on the way: it hears of it when nobody awaits it
        any more.
        """
        asker = Asker()
        try:
            return await self._run(asker.serve, partial(verb, *args, **kwargs))
        except asyncio.CancelledError:
            asker.leave()
            raise

    async def _run(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Have a thread do it; cancelled before it began it never does, afterwards it is done all
        the same.
        """
        return await asyncio.get_running_loop().run_in_executor(
            self._workers, partial(verb, *args, **kwargs)
        )
