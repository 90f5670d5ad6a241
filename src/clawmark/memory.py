"""The library's front door.

    with Memory.open("~/agent") as memory:
        for hit in memory.search("which database did we pick?").hits:
            print(hit.citation, hit.snippet)

The verbs are here; what they work with is put together in `assembly`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from clawmark.backends.source_file import SourceFile
from clawmark.composition import build, keys_of, make_query, open_sessions, redactor_of
from clawmark.config.load import load
from clawmark.config.paths import Places, resolve_places
from clawmark.config.schema import NO_QMD, Loaded, Settings
from clawmark.embed.base import Embedder
from clawmark.model.errors import ConfigError, WorkspaceError
from clawmark.model.values import NO_FILTERS, Degraded, Found, Identity, Scan, SyncPlan, Vector
from clawmark.system.counters import Metrics
from clawmark.workspace import Workspace

if TYPE_CHECKING:
    from datetime import datetime

    from clawmark.agent.models.completer import Completer
    from clawmark.agent.prompt.context import ContextReader
    from clawmark.agent.prompt.sections import Prompt
    from clawmark.agent.session.conversation import Conversation, HostOptions
    from clawmark.agent.tools import Notebook, Tool
    from clawmark.agent.tools.gate import Refusal
    from clawmark.backends.source_file import SourceFile
    from clawmark.backends.watching import Watching
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
    from clawmark.text.transcripts.records import TranscriptMessage
    from clawmark.workspace.transcripts.files import TranscriptFiles


class Memory:
    """The memory of one agent: search it, read it, add to it."""

    def __init__(
        self,
        places: Places,
        loaded: Loaded,
        embedder: Embedder | None = None,
        provider: str | None = None,
        clock: Callable[[], datetime] | None = None,
        background: bool = True,
    ) -> None:
        self.places = places
        self.loaded = loaded
        self._clock = clock
        self._sessions_seen: set[str] = set()
        self._context: ContextReader | None = None
        self._watchings: list[Watching] = []
        self._backend, self.choice = build(places, loaded.settings, embedder, provider, background)

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
    ) -> Memory:
        """Open a workspace; nothing is read, loaded or created until it is needed.

        `embedder` or `provider` stand in for the configured provider; `overrides` are settings by
        their dotted key, as `{"memorySearch.query.maxResults": 3}`; `clock` tells the time where a
        day matters (today's log, the age of a note). With `background` a search that finds more due
        than it has time for leaves the rest to a thread, begun only then."""
        places = resolve_places(_text(workspace), agent, _text(config), _text(state_dir))
        loaded = load(places, overrides or {})
        return cls(places, loaded, embedder, provider, clock, background)

    @property
    def settings(self) -> Settings:
        return self.loaded.settings

    @property
    def metrics(self) -> Metrics:
        return self._backend.parts.metrics

    @property
    def workspace(self) -> Workspace:
        """The files themselves: guarded reading and durable writing."""
        return self._backend.parts.workspace

    def search(
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
        """Find what the memory holds about something; an empty answer says why.

        `since` and `until` are days (`2026-02-24`, or `7d` and `2w` before today), both inclusive;
        passages without a date pass neither. `path` is a pattern such as `memory/projects/**`,
        `source` is `memory`, `sessions` or the name of an added folder."""
        if not self.settings.memory_search.enabled:
            raise ConfigError(
                "Memory search is switched off: memorySearch.enabled is false.",
                key="memorySearch.enabled",
                hint="Set it to true, or remove it, to search; everything else works as it is.",
            )
        filters = NO_FILTERS
        if since or until or path or source:
            from clawmark.text.filters import make_filters

            filters = make_filters(
                since=since, until=until, path=path, source=source, today=self.today
            )
        options = self.settings.memory_search.query
        query = make_query(options, text, max_results, min_score, self.today)._replace(
            filters=filters, explain=explain
        )
        found = self._backend.search(query, freshen=freshen)
        if self.settings.memory.backend != "builtin" and found.degraded is None:
            found = found._replace(
                degraded=Degraded(NO_QMD, 'Set memory.backend to "builtin", or remove it.')
            )
        return found

    def read(
        self,
        path: str,
        *,
        start: int | None = None,
        lines: int | None = None,
        max_chars: int = 12_000,
    ) -> Excerpt:
        """Lines of a memory file, by its path or by a citation; 120 of them unless `lines` says
        otherwise.
        """
        return self._backend.read(path, start, lines, max_chars)

    def append(self, text: str, *, to: str = "", day: str = "") -> Written:
        """Add an entry to the log of a day (today's by default), or to `MEMORY.md`; it is on disk
        when this returns.

        Only redaction masks are refused. `check_note` applies the write gate that agents and
        `clawmark remember` have."""
        from clawmark.text.write_check import check_write
        from clawmark.workspace.daily import format_entry

        problem = check_write(text)
        if problem is not None:
            raise WorkspaceError(problem.message, hint=problem.hint)
        workspace = self._backend.parts.workspace
        return (
            workspace.append(to, format_entry(text))
            if to
            else workspace.remember(text, day or self.today())
        )

    def check_note(self, text: str, *, to: str = "", day: str = "") -> Refusal | None:
        """Return why the write gate would refuse this entry (a duplicate, a secret, noise …), or
        None.

        Pass the same `day` to `append`, so that midnight between the two calls makes no difference.
        """
        return self._notebook().check(text, to, day or self.today())

    def replace(self, path: str, text: str, base_hash: str, *, force: bool = False) -> str:
        """Put a new text in the place of the one with `base_hash` ("" for no file yet); the hash of
        the new one.

        `WriteConflict` names both hashes when the file is another by now. The last three texts are
        kept in the state folder. A text with a redaction mask, or without most lines of the old
        one, is refused; the latter is allowed with `force`."""
        from clawmark.workspace.versions import check_replacement

        workspace = self._backend.parts.workspace
        current = workspace.read_exact(path)
        if (
            current is None or current.hash == base_hash
        ):  # otherwise it is a conflict, whatever the text says
            check_replacement(path, text, current.text if current is not None else "", force=force)
        return workspace.replace(path, text, base_hash)

    def plan(self, *, force: bool = False) -> tuple[SyncPlan, Scan]:
        """What `sync` would do now."""
        return self._backend.plan(force=force)

    def sync(
        self,
        *,
        force: bool = False,
        progress: Callable[[Progress], None] | None = None,
        instant_only: bool = False,
        seconds: float | None = None,
    ) -> SyncReport:
        """Bring the index in step; `force` builds the next generation, with `seconds` it stops then
        and waits for nobody.
        """
        from clawmark.engine.sync.run import SyncRequest

        return self._backend.sync(
            SyncRequest(
                force=force,
                instant_only=instant_only,
                seconds=seconds,
                lock_timeout=10.0 if seconds is None else 0.0,
                progress=progress,
            )
        )

    def watch(
        self, on_event: Callable[[WatchEvent], None] | None = None, *, files: bool | None = None
    ) -> Watching:
        """Keep the index in step from here on, in the background; close what this returns to stop.

        `on_event` is told, in another thread, what changes and what is done about it. `files` says
        whether the files are watched; without it, what `sync.watch` says. The interval of
        `sync.intervalMinutes` counts either way."""
        from clawmark.backends.watching import Watching

        wanted = self.settings.memory_search.sync.watch if files is None else files
        watching = Watching(self._backend, files=wanted, on_event=on_event)
        self._watchings.append(watching)
        return watching

    def session_started(self, session_key: str | None = None) -> bool:
        """Bring the index up to date because a session begins, once for each key; whether that was
        done or begun.
        """
        options = self.settings.memory_search
        if (
            not (options.enabled and options.sync.on_session_start)
            or session_key in self._sessions_seen
        ):
            return False
        if session_key is not None:
            self._sessions_seen.add(session_key)
        self._backend.freshen_for("session-start")
        return True

    def compacted(self) -> None:
        """Bring the index up to date because a conversation was compacted: its words are in the
        transcript, and here now.
        """
        options = self.settings.memory_search
        if options.enabled:
            self._backend.freshen_for(
                "post-compaction", deltas=not options.sync.sessions.post_compaction_force
            )

    def add_source(
        self, folder: str | os.PathLike[str], *, name: str = "", patterns: Sequence[str] = ()
    ) -> SourceReport:
        """Search a folder of Markdown too; its files are cited as `name:path`, read and never
        written.

        The name is made of the folder's unless it is given. `patterns` (`*`, `?`, `[]`, `**`) take
        a part of the folder. Every process that has this memory open searches it from its next look
        on. `ConfigError` says why it cannot be."""
        from clawmark.backends.sources import add_source

        added = add_source(self._source_file(), self.workspace, os.fspath(folder), name, patterns)
        self.workspace.changes += 1
        return next(one for one in self.sources() if one.name == added.name)

    def remove_source(self, name: str) -> str:
        """Stop searching an added folder, which is returned; its files are not touched."""
        from clawmark.backends.sources import remove_source

        removed = remove_source(self._source_file(), name)
        self.workspace.changes += 1
        return removed.path

    def sources(self) -> tuple[SourceReport, ...]:
        """The folders that were added, and the configured extra paths, with what is in them now."""
        from clawmark.backends.sources import report_sources

        return report_sources(self.workspace)

    def _source_file(self) -> SourceFile:
        return SourceFile(self._backend.parts.source_file)

    def absolute_path(self, path: str) -> str:
        """Where the file of a path or a citation is on disk; `PathDenied` for what is not memory."""
        return self.workspace.absolute(path)

    def sessions(self) -> tuple[Transcript, ...]:
        """The transcripts of the agent's conversations, the latest first, whether they are a source
        or not.
        """
        from clawmark.backends.transcripts import list_transcripts

        return list_transcripts(self._backend.parts, self._transcripts())

    def transcript(self, name: str) -> tuple[str, tuple[TranscriptMessage, ...]]:
        """The path of a transcript and what was said in it, secrets masked; by its path, its name
        or the start of that.
        """
        from clawmark.backends.transcripts import read_transcript

        return read_transcript(self._transcripts(), name)

    def _transcripts(self) -> TranscriptFiles:
        return self._backend.parts.workspace.sessions or open_sessions(self.places, self.settings)

    def status(self) -> Status:
        """The answers to the operational questions."""
        from clawmark.engine.maintenance.status import status

        return status(
            self._backend.parts, self.places, self.loaded, self.choice, self._backend.last_error
        )

    def keep_vectors(self, identity: Identity, vectors: Mapping[str, Vector]) -> None:
        """Keep vectors made elsewhere, by the SHA-256 hex of their text, so that the same text is
        not embedded again.
        """
        with self._backend.parts.store.writing() as writer:
            writer.put_cached(identity, vectors)

    def spending(self) -> Spending:
        """What a full sync would send to the best embedder, and for how much; nothing is sent to
        find out.
        """
        from clawmark.engine.maintenance.spending import spending

        return spending(self._backend)

    def doctor(self, *, fix: bool = False, probe: bool = False) -> list[Finding]:
        """What is wrong, why, and what to do; `fix` does what is safe to do, `probe` adds the
        outcome of `probe()`.
        """
        from clawmark.engine.maintenance.doctor import examine

        probes = self.probe() if probe else ()
        return examine(self._backend, self.places, self.loaded, self.choice, fix=fix, probes=probes)

    def probe(self) -> tuple[Probe, ...]:
        """Embed one word with the configured provider and have the vector engine score two known
        vectors.

        A service is really asked. A failure is a `Probe` with the reason and the next step, never
        an exception."""
        from clawmark.engine.maintenance.probe import probe

        return probe(self._backend.parts, self.choice, self.settings.memory_search.store.vector)

    def verify(self) -> VerifyReport:
        """Derive every row from its file again and compare."""
        from clawmark.engine.maintenance.verify import verify

        return verify(self._backend.parts)

    def evaluate(
        self,
        questions: Iterable[Mapping[str, object] | Question],
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> Evaluation:
        """How well the memory answers questions whose answers are known, with the configured
        threshold.

        A question is `{"question": …, "path": "memory/x.md#L3-L5"}`, or has the expected `text` in
        place of a path."""
        from clawmark.engine.maintenance.evaluate import DEPTH, as_questions, evaluate

        most, tell = (
            max(DEPTH, self.settings.memory_search.query.max_results),
            progress or (lambda *_: None),
        )
        return evaluate(
            as_questions(questions),
            lambda text: self.search(text, max_results=most),
            self.read,
            tell,
        )

    def make_questions(
        self, count: int = 50, *, completer: Completer | None = None
    ) -> Iterator[dict[str, str]]:
        """Questions for `evaluate`, written by the model from passages all over the notes, each
        with its lines.

        Without a `completer` the configured model writes them; `ConfigError` when there is none.
        """
        from clawmark.agent.models.question_maker import make_questions
        from clawmark.agent.session.setup import needed_model

        completer = completer or needed_model(
            self.settings.runtime, os.environ, "write the questions"
        )
        self.sync(instant_only=True)
        return make_questions(
            completer, self._backend.parts.store, redactor_of(self.settings.memory_search), count
        )

    def tools(
        self, session_key: str | None = None, *, append: bool = False, chat_type: str = ""
    ) -> list[Tool]:
        """`memory_search` and `memory_get` as tools for any agent, and with `append` also
        `memory_append`.

        The session key decides whom they answer and whether with citations; a `chat_type` the host
        has noted can only make it less. Without a key, it is the caller's own memory. `tools.allow`
        and `tools.deny` leave tools out; so does `memorySearch.enabled: false`, for the first two.
        """
        from clawmark.agent.tools import make_tools

        absent = set(self.settings.tools.denied)
        if not self.settings.memory_search.enabled:
            absent |= {"memory_search", "memory_get"}

        query = self.settings.memory_search.query
        tools = make_tools(
            lambda text, most, least, filters: self.search(
                text, max_results=most, min_score=least, **filters._asdict()
            ),
            lambda path, start, lines: self.read(path, start=start, lines=lines),
            citations=self.settings.memory.citations,
            session_key=session_key,
            max_results=query.max_results,
            min_score=query.min_score,
            sources=self.settings.memory_search.sources,
            chat_type=chat_type,
            shared=self.settings.memory.shared_sessions,
            notebook=self._notebook() if append else None,
        )
        return [tool for tool in tools if tool.name not in absent]

    def _notebook(self) -> Notebook:
        from clawmark.agent.tools import Notebook

        read_lines, redactor = (
            self._backend.parts.workspace.read_lines,
            redactor_of(self.settings.memory_search),
        )
        return Notebook(
            today=self.today,
            read_lines=read_lines,
            append=lambda entry, to, day: self.append(entry, to=to, day=day),
            redactor=redactor,
        )

    def prompt(
        self, session_key: str | None = None, *, append: bool = False, chat_type: str = ""
    ) -> Prompt:
        """The memory's part of a session's system prompt, as the files are now; `append` when it
        has `memory_append`.
        """
        from clawmark.agent.prompt.context import ContextReader, Limits
        from clawmark.agent.prompt.sections import Facts, build_prompt, with_pulse
        from clawmark.agent.tools.policy import access_of
        from clawmark.engine.maintenance.status import pulse

        settings, startup, parts = self.settings, self.settings.startup_context, self._backend.parts
        citations, shared = settings.memory.citations, settings.memory.shared_sessions
        access = access_of(session_key, chat_type=chat_type, citations=citations, shared=shared)
        days = startup.daily_memory_days if startup.enabled else 0
        most, most_in_all = settings.bootstrap_max_chars, settings.bootstrap_total_max_chars
        limits = Limits(
            per_file=most,
            total=most_in_all,
            log_days=days,
            per_log=startup.max_file_chars,
            all_logs=startup.max_total_chars,
        )
        self._context = self._context or ContextReader(parts.workspace.root)
        facts = Facts(
            agent=self.places.agent_id,
            session_key=session_key or "",
            workspace=self.places.workspace,
            today=self.today(),
            timezone=settings.user_timezone,
        )
        context = self._context.read(access.kind, facts.today, limits)
        if not access.reads:
            return build_prompt(context, tools=(), cites=access.cites, facts=facts)
        tools = [tool.name for tool in self.tools(session_key, append=append, chat_type=chat_type)]
        if settings.memory_search.enabled:
            facts = with_pulse(facts, lambda: pulse(parts))
        return build_prompt(context, tools=tools, cites=access.cites, facts=facts)

    def recall(
        self,
        text: str,
        session_key: str | None = None,
        *,
        max_results: int = 3,
        min_score: float | None = None,
        chat_type: str = "",
    ) -> str:
        """What the memory holds about a message, as one block of quoted data; empty outside private
        sessions.

        Only what is worth a place that nobody asked for; with `min_score`, everything from that
        score on."""
        from clawmark.agent.prompt.recall import recall_block, recalled
        from clawmark.agent.prompt.recall_rule import says_something, worth_recalling
        from clawmark.text.recalled.blocks import strip_recalled
        from clawmark.text.transcripts.session_keys import is_private, kind_of

        asked = strip_recalled(text).strip()
        if not self.settings.memory_search.enabled:
            return ""
        if not is_private(kind_of(session_key, chat_type)) or (
            min_score is None and not says_something(asked)
        ):
            return ""
        found = self.search(
            asked, max_results=max_results, min_score=min_score or 0.0, explain=min_score is None
        )
        hits = worth_recalling(found) if min_score is None else found.hits
        return recall_block([recalled(hit) for hit in hits])

    def conversation(
        self,
        session_key: str = "agent:main:main",
        *,
        completer: Completer | None = None,
        context_window: int = 0,
        append: bool = False,
        recall: bool = False,
        host_options: HostOptions | None = None,
    ) -> Conversation:
        """A session with this memory, for a host that talks to a model: its prompt, its flush, its
        note.

        Without a `completer` the configured model flushes; `context_window` is how many tokens the
        host's model holds. With `append` the prompt tells of `memory_append`, with `recall` each
        message brings what the memory has about it."""
        from clawmark.agent.session.conversation import Conversation, SessionCallbacks, open_parts

        options, workspace = self.settings.memory_search, self._backend.parts.workspace
        keys = keys_of(options)
        folder = self.places.conversations_dir
        parts = open_parts(
            self.settings.runtime, folder, workspace, keys, self._now, completer, context_window
        )

        def chat_type() -> str:
            """What the host says now, else what was noted when it last said something: a group
            stays one.
            """
            return (
                host_options.chat_type
                if host_options and host_options.chat_type
                else parts.store.get(session_key).chat_type
            )

        callbacks = SessionCallbacks(
            prompt=lambda: self.prompt(session_key, append=append, chat_type=chat_type()).text,
            recall=lambda text: (
                self.recall(text, session_key, chat_type=chat_type()) if recall else ""
            ),
            started=lambda: self.session_started(session_key),
            compacted=self.compacted,
        )
        return Conversation(
            session_key=session_key, parts=parts, callbacks=callbacks, host_options=host_options
        )

    def today(self) -> str:
        """Today's date where the user lives."""
        return self._now().date().isoformat()

    def _now(self) -> datetime:
        from datetime import datetime

        if self._clock is not None:
            return self._clock()
        from calendar import timegm

        zone = self.settings.user_timezone
        seconds = timegm(
            time.gmtime()
        )  # datetime.now() counts nanoseconds, and stays at the year 2262 for ever
        if not zone:
            return datetime.fromtimestamp(seconds).astimezone()
        from zoneinfo import ZoneInfo

        return datetime.fromtimestamp(seconds, ZoneInfo(zone))

    def close(self) -> None:
        """End what runs in the background, and close the index and the workspace."""
        for watching in self._watchings:
            watching.close()
        self._backend.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _text(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.path.expanduser(os.fspath(path))
