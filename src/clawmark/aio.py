"""`AsyncMemory`: the methods of `Memory`, run in worker threads and awaited.

The core is synchronous because SQLite, files and vector arithmetic block anyway; a server only has
to keep its event loop free. This module owns the threads; `Memory` does the work."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from clawmark.agent.tools import Payload, Tool
from clawmark.memory import Memory
from clawmark.model.errors import ClawmarkError
from clawmark.system.cancellation import Cancellation

if TYPE_CHECKING:
    from datetime import datetime

    from clawmark.agent.flush.flush import FlushOutcome
    from clawmark.agent.models.completer import Completer
    from clawmark.agent.notes.session_note import NoteOutcome, Reason
    from clawmark.agent.plugins.lifecycle import SessionHooks
    from clawmark.agent.review.box import ProposalBox
    from clawmark.agent.review.hunks import NoLongerApplies
    from clawmark.agent.review.proposals import Proposal
    from clawmark.agent.session.conversation import Conversation, HostOptions, UserTurn
    from clawmark.agent.session.session import Fields
    from clawmark.agent.tools.gate import Refusal
    from clawmark.backends.team.base import Appended, SpaceInfo
    from clawmark.backends.team.files.publishing import PublishPlan
    from clawmark.backends.team.files.pulling import Pulled
    from clawmark.composition.slot import SlotParts
    from clawmark.composition.team_memory import Team
    from clawmark.config.paths import Places
    from clawmark.config.schema import Loaded, Settings
    from clawmark.embed.base import Choice, Embedder
    from clawmark.engine.versions.workspace_history import FileChange, HistoryEntry
    from clawmark.history.journal import Journal
    from clawmark.model.sync_report import SpaceSync
    from clawmark.system.counters import Metrics

P = ParamSpec("P")
T = TypeVar("T")

WORKERS = 4
"""Threads per memory, so that searches are answered during a long sync."""


class Workers:
    """The threads of one memory."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(WORKERS, thread_name_prefix="clawmark")

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Make a call in a thread; once it has begun, it is finished even if cancelled."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(call, *args, **kwargs))

    async def run_cancellable(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Make a call that stops before its next step when it is cancelled."""
        cancellation = Cancellation()
        try:
            return await self.run(cancellation.run, partial(call, *args, **kwargs))
        except asyncio.CancelledError:
            cancellation.cancel()
            raise

    async def close(self) -> None:
        """Wait for the calls that run, and drop those that have not begun."""
        await asyncio.to_thread(self._threads.shutdown, wait=True, cancel_futures=True)


def _awaited(
    method: Callable[Concatenate[Memory, P], T], *, cancellable: bool = False
) -> Callable[Concatenate[AsyncMemory, P], Coroutine[Any, Any, T]]:
    """Return the method of `AsyncMemory` that runs a method of `Memory` in a thread."""

    @wraps(method)
    async def call(self: AsyncMemory, /, *args: P.args, **kwargs: P.kwargs) -> T:
        work = partial(method, self._opened, *args, **kwargs)
        workers = self._workers
        return await (workers.run_cancellable(work) if cancellable else workers.run(work))

    return call


class AsyncTool(NamedTuple):
    """A `Tool` whose call is awaited."""

    name: str
    description: str
    parameters: Payload
    call: Callable[[object], Awaitable[Payload]]


class AsyncHistory:
    """`Memory.history`, whose calls are awaited."""

    def __init__(self, memory: Memory, workers: Workers) -> None:
        self._memory = memory
        self._workers = workers

    async def versions(self, path: str | None = None, count: int = 20) -> list[HistoryEntry]:
        """Return the last versions in which a file or folder changed, or of all, newest first."""
        memory = self._memory
        return await self._workers.run(lambda: list(islice(memory.history.versions(path), count)))

    async def diff(self, path: str = "", old: str = "", new: str = "") -> str:
        """Return a unified diff between two versions, or of the last change."""
        return await self._workers.run(lambda: self._memory.history.diff(path, old, new))

    async def read(self, path: str, version: str) -> bytes | None:
        """Return a file as it was in a version; None if it did not exist."""
        return await self._workers.run(lambda: self._memory.history.read(path, version))

    async def restore(self, path: str, version: str) -> FileChange:
        """Write a file as it was in a version, also one that was deleted since."""
        return await self._workers.run(lambda: self._memory.history.restore(path, version))

    async def undo(self, *, anyone: bool = False, write: str = "") -> FileChange:
        """Take back the last write of an agent, of anyone, or the one with this id."""
        memory = self._memory
        return await self._workers.run(lambda: memory.history.undo(anyone=anyone, write=write))


class AsyncTeam:
    """`Memory.team`, whose calls are awaited."""

    def __init__(self, opened: Callable[[], Team], workers: Workers) -> None:
        self._opened = opened
        self._workers = workers

    async def spaces(self) -> tuple[SpaceInfo, ...]:
        """Return the spaces that the caller may read, by name."""
        return await self._workers.run(lambda: self._opened().spaces())

    async def append(self, space: str, text: str, *, key: str = "") -> Appended:
        """Append an entry to today's log of a space."""
        return await self._workers.run(lambda: self._opened().append(space, text, key=key))

    async def check_note(self, space: str, text: str) -> Refusal | None:
        """Return why the write gate refuses an entry, or None."""
        return await self._workers.run(lambda: self._opened().check_note(space, text))

    async def pull(self, *names: str) -> tuple[Pulled, ...]:
        """Copy spaces into the folder `spaces` of the workspace."""
        return await self._workers.run(lambda: self._opened().pull(*names))

    async def plan(self) -> tuple[tuple[PublishPlan, SpaceSync], ...]:
        """Return what a sync would publish and withdraw in each space."""
        return await self._workers.run(lambda: self._opened().plan())


class AsyncConversation:
    """A `Conversation` whose calls are awaited."""

    def __init__(self, conversation: Conversation, workers: Workers) -> None:
        self.conversation = conversation
        self._workers = workers

    @property
    def session_key(self) -> str:
        return self.conversation.session_key

    @property
    def session_id(self) -> str:
        """Read from one small file, without waiting."""
        return self.conversation.session_id

    @property
    def transcript(self) -> str:
        """The file that holds every message."""
        return self.conversation.transcript

    async def start(self) -> str:
        """Start or resume the session, and return the system prompt."""
        return await self._workers.run(self.conversation.start)

    async def on_user(self, message: str) -> UserTurn:
        """Process a message of the user before the model sees it."""
        return await self._workers.run(self.conversation.on_user, message)

    async def on_usage(self, tokens: int = 0, *, reply: str = "", succeeded: bool = True) -> None:
        """Record the model's reply and how full its context is."""
        await self._workers.run(
            self.conversation.on_usage, tokens, reply=reply, succeeded=succeeded
        )

    async def record(self, kind: str, fields: Fields) -> str:
        """Add a line to the transcript that is not a message, and return its id."""
        return await self._workers.run(self.conversation.record, kind, fields)

    async def before_compaction(self) -> FlushOutcome:
        """Flush if this cycle has not been flushed, and begin the next one."""
        return await self._workers.run(self.conversation.before_compaction)

    async def flush(self) -> FlushOutcome:
        """Flush now, on request."""
        return await self._workers.run(self.conversation.flush)

    async def end(self, reason: Reason = "exit") -> NoteOutcome:
        """Write the note of the session."""
        return await self._workers.run(self.conversation.end, reason)


class AsyncSessionHooks:
    """The lifecycle hooks of a session, awaited."""

    def __init__(self, opened: Callable[[], SessionHooks], workers: Workers) -> None:
        self._opened = opened
        self._workers = workers

    async def session_start(self) -> None:
        """The session starts, or continues in a new process."""
        await self._workers.run(lambda: self._opened().session_start())

    async def before_agent_start(self, message: str) -> str:
        """Return what to send before a message of the user: a fenced block, or an empty text."""
        return await self._workers.run(lambda: self._opened().before_agent_start(message))

    async def agent_end(
        self, messages: Iterable[tuple[str, str]], *, succeeded: bool = True
    ) -> None:
        """A turn is finished; `messages` are its roles and texts, in order."""
        await self._workers.run(lambda: self._opened().agent_end(messages, succeeded=succeeded))

    async def before_compaction(self) -> None:
        """The history is about to be shortened."""
        await self._workers.run(lambda: self._opened().before_compaction())

    async def session_end(self) -> None:
        """The session has ended."""
        await self._workers.run(lambda: self._opened().session_end())


class AsyncProposals:
    """The proposals of agents, awaited."""

    def __init__(self, opened: Callable[[], ProposalBox], workers: Workers) -> None:
        self._opened = opened
        self._workers = workers

    async def list(self, *, decided: bool = False) -> tuple[Proposal, ...]:
        """Return the pending proposals, the oldest first; with `decided`, the others too."""
        return await self._workers.run(lambda: self._opened().list(decided=decided))

    async def get(self, proposal_id: str) -> Proposal:
        """Return a proposal; raises ReviewError if there is none with this id."""
        return await self._workers.run(lambda: self._opened().get(proposal_id))

    async def accept(
        self, proposal_id: str, numbers: Iterable[int] | None = None
    ) -> Proposal | NoLongerApplies:
        """Write hunks to their files, all pending ones by default."""
        return await self._workers.run(lambda: self._opened().accept(proposal_id, numbers))

    async def reject(
        self, proposal_id: str, numbers: Iterable[int] | None = None, *, reason: str = ""
    ) -> Proposal:
        """Reject hunks, all pending ones by default; they are not proposed again."""
        return await self._workers.run(
            lambda: self._opened().reject(proposal_id, numbers, reason=reason)
        )

    async def edit(self, proposal_id: str, number: int, new: str) -> Proposal:
        """Change what a pending hunk writes."""
        return await self._workers.run(lambda: self._opened().edit(proposal_id, number, new))


class AsyncMemory:
    """A memory for programs with an event loop.

    `async with AsyncMemory.open(path) as memory:` closes it at the end; after `memory = await
    AsyncMemory.open(path)` the caller closes it. `search`, `recall` and tool calls stop before
    their next step when they are cancelled. Callbacks are called in a worker thread."""

    def __init__(self, opening: Callable[[], Memory]) -> None:
        self._opening = opening
        self._memory: Memory | None = None
        self._workers = Workers()

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
        """Prepare to open a workspace; `async with` or `await` opens it."""
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
            self._memory = await self._workers.run(self._opening)
        return self

    async def __aexit__(self, *_: object) -> None:
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

    @property
    def slot(self) -> SlotParts:
        return self._opened.slot

    @property
    def history(self) -> AsyncHistory:
        return AsyncHistory(self._opened, self._workers)

    @property
    def journal(self) -> Journal:
        return self._opened.journal

    @property
    def review(self) -> AsyncProposals:
        """The changes that agents have proposed, for the user to accept, reject or edit."""
        return AsyncProposals(lambda: self._opened.review, self._workers)

    @property
    def team(self) -> AsyncTeam:
        """The shared spaces of the team."""
        return AsyncTeam(lambda: self._opened.team, self._workers)

    search = _awaited(Memory.search, cancellable=True)
    recall = _awaited(Memory.recall, cancellable=True)
    read = _awaited(Memory.read)
    with_replaced = _awaited(Memory.with_replaced)
    append = _awaited(Memory.append)
    check_note = _awaited(Memory.check_note)
    replace = _awaited(Memory.replace)
    plan_forget = _awaited(Memory.plan_forget)
    forget = _awaited(Memory.forget)
    plan = _awaited(Memory.plan)
    sync = _awaited(Memory.sync)
    watch = _awaited(Memory.watch)
    session_started = _awaited(Memory.session_started)
    compacted = _awaited(Memory.compacted)
    keep_vectors = _awaited(Memory.keep_vectors)
    add_source = _awaited(Memory.add_source)
    remove_source = _awaited(Memory.remove_source)
    sources = _awaited(Memory.sources)
    absolute_path = _awaited(Memory.absolute_path)
    files = _awaited(Memory.files)
    recent = _awaited(Memory.recent)
    days = _awaited(Memory.days)
    passages = _awaited(Memory.passages)
    entry_origins = _awaited(Memory.entry_origins)
    log = _awaited(Memory.log)
    origins = _awaited(Memory.origins)
    sessions = _awaited(Memory.sessions)
    transcript = _awaited(Memory.transcript)
    session = _awaited(Memory.session)
    status = _awaited(Memory.status)
    probe = _awaited(Memory.probe)
    doctor = _awaited(Memory.doctor)
    verify = _awaited(Memory.verify)
    why_not = _awaited(Memory.why_not)
    spending = _awaited(Memory.spending)
    evaluate = _awaited(Memory.evaluate)
    heartbeat = _awaited(Memory.heartbeat)
    consolidate = _awaited(Memory.consolidate)
    contradictions = _awaited(Memory.contradictions)
    now = _awaited(Memory.now)
    today = _awaited(Memory.today)
    prompt = _awaited(Memory.prompt)
    plugins = _awaited(Memory.plugins)
    open_slot = _awaited(Memory.open_slot)

    async def make_questions(
        self, count: int = 50, *, completer: Completer | None = None
    ) -> list[dict[str, str]]:
        """Have a model write questions for `evaluate` from passages all over the notes."""
        memory = self._opened
        return await self._workers.run(
            lambda: list(memory.make_questions(count, completer=completer))
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
        """Return a session whose calls are awaited; the completer is called in a worker thread."""
        conversation = await self._workers.run(
            self._opened.conversation,
            session_key,
            completer=completer,
            context_window=context_window,
            append=append,
            recall=recall,
            host_options=host_options,
        )
        return AsyncConversation(conversation, self._workers)

    def tools(
        self,
        session_key: str | None = None,
        *,
        append: bool = False,
        chat_type: str = "",
        sandboxed: bool = False,
    ) -> list[AsyncTool]:
        """Return the tools, whose calls are awaited; making them does not wait for anything."""
        tools = self._opened.tools(
            session_key, append=append, chat_type=chat_type, sandboxed=sandboxed
        )
        return [self._awaitable(tool) for tool in tools]

    def lifecycle(
        self, session_key: str | None = None, *, chat_type: str = "", sandboxed: bool = False
    ) -> AsyncSessionHooks:
        """Return the lifecycle hooks of a session, whose calls are awaited."""
        memory = self._opened
        return AsyncSessionHooks(
            lambda: memory.lifecycle(session_key, chat_type=chat_type, sandboxed=sandboxed),
            self._workers,
        )

    async def close(self) -> None:
        """Wait for the calls that run, drop those that have not begun, and close the memory.

        Closing twice is allowed.
        """
        memory, self._memory = self._memory, None
        await self._workers.close()
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
            return await self._workers.run_cancellable(tool.call, given)

        return AsyncTool(
            name=tool.name, description=tool.description, parameters=tool.parameters, call=call
        )
