"""The memory of one agent: the object that programs use.

    with Memory.open("~/agent") as memory:
        for hit in memory.search("which database did we pick?").hits:
            print(hit.citation, hit.snippet)

`composition` builds the parts it works with.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from clawmark import composition
from clawmark.composition import agent as agent_parts
from clawmark.config.paths import Places, resolve_places
from clawmark.config.schema import Loaded, Settings
from clawmark.embed.base import Choice, Embedder
from clawmark.engine.sync.scan import look_ahead
from clawmark.model.errors import WorkspaceError
from clawmark.model.values import NO_FILTERS, Found, Identity, Scan, SyncPlan, Vector
from clawmark.system.counters import Metrics
from clawmark.workspace import Workspace

if TYPE_CHECKING:
    from datetime import datetime

    from clawmark.agent.models.completer import Completer
    from clawmark.agent.prompt.context import ContextReader
    from clawmark.agent.prompt.sections import Prompt
    from clawmark.agent.session.conversation import Conversation, HostOptions
    from clawmark.agent.tools import Tool
    from clawmark.agent.tools.gate import Refusal
    from clawmark.backends.watching import Watching
    from clawmark.engine.maintenance.evaluate import Question
    from clawmark.engine.maintenance.listing import Listing
    from clawmark.engine.maintenance.spending import Spending
    from clawmark.model import reports
    from clawmark.model.documents import Excerpt, MemoryEntry, MemoryFile, Written
    from clawmark.text.transcripts.records import TranscriptMessage
    from clawmark.workspace.transcripts.files import TranscriptFiles

# Imports inside the methods below are late because a cold `clawmark search` needs none of them.


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
        self._now = composition.make_clock(loaded.settings, clock)
        self._sessions_seen: set[str] = set()
        self._context: ContextReader | None = None
        self._watchings: list[Watching] = []
        self._builtin = composition.build(places, loaded, embedder, provider, background=background)
        self._parts = self._builtin.parts
        self._backend = composition.choose_backend(self._builtin, loaded.settings)

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
        """Open a workspace; files, index and models are opened when they are first needed.

        `embedder` or `provider` replaces the configured provider. `overrides` are settings by their
        dotted key, such as `{"memorySearch.query.maxResults": 3}`. `clock` gives the current time
        for daily logs and the age of notes. With `background`, a thread finishes the indexing that
        a search has no time for; it starts when there is something to do."""
        places = resolve_places(_text(workspace), agent, _text(config), _text(state_dir))
        loaded = Loaded(Settings(), {}, ())
        if overrides or places.has_settings:
            # Imported late: without a file, a cold search does not need the table of keys.
            from clawmark.config.load import load

            loaded = load(places, overrides or {})
        return cls(places, loaded, embedder, provider, clock, background)

    @property
    def settings(self) -> Settings:
        return self.loaded.settings

    @property
    def choice(self) -> Choice:
        """The embedders that were chosen, and why."""
        return self._parts.choice

    @property
    def metrics(self) -> Metrics:
        return self._parts.metrics

    @property
    def workspace(self) -> Workspace:
        """The files themselves: guarded reading and durable writing."""
        return self._parts.workspace

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
        """Find the passages that answer a question; an empty answer says why.

        `since` and `until` are days (`2026-02-24`, or `7d` and `2w` before today), both inclusive;
        passages without a date are left out. `path` is a pattern such as `memory/projects/**`,
        `source` is `memory`, `sessions` or the name of an added folder."""
        filters = NO_FILTERS
        if since or until or path or source:
            # Imported late: it needs datetime, and most searches have no filter.
            from clawmark.text.filters import make_filters

            filters = make_filters(
                since=since, until=until, path=path, source=source, today=self.today
            )
        options = self.settings.memory_search.query
        query = composition.make_query(options, text, max_results, min_score, self.today)
        query = query._replace(filters=filters, explain=explain)
        return self._backend.search(query, freshen=freshen)

    def read(
        self,
        path: str,
        *,
        start: int | None = None,
        lines: int | None = None,
        max_chars: int = 12_000,
    ) -> Excerpt:
        """Return lines of a memory file, by its path or a citation; 120 lines by default."""
        return self._backend.read(path, start, lines, max_chars)

    def recall(
        self,
        text: str,
        session_key: str | None = None,
        *,
        max_results: int = 3,
        min_score: float | None = None,
        chat_type: str = "",
    ) -> str:
        """Return what the memory holds about a message, as one block of quoted data; empty outside
        private sessions.

        Only passages that are clearly relevant are included; with `min_score`, every passage from
        that score on."""
        return agent_parts.recall_text(
            self,
            text,
            session_key,
            max_results=max_results,
            min_score=min_score,
            chat_type=chat_type,
        )

    def append(self, text: str, *, to: str = "", day: str = "") -> Written:
        """Add an entry to the log of a day (today's by default), or to the file `to`; it is on disk
        when this returns.

        Only text with redaction masks is refused. `check_note` applies the write gate that agents
        and `clawmark remember` have."""
        from clawmark.text.write_check import check_write
        from clawmark.workspace.daily import format_entry

        problem = check_write(text)
        if problem is not None:
            raise WorkspaceError(problem.message, hint=problem.hint)
        if to:
            return self.workspace.append(to, format_entry(text))
        return self.workspace.remember(text, day or self.today())

    def check_note(self, text: str, *, to: str = "", day: str = "") -> Refusal | None:
        """Return why the write gate refuses an entry (a duplicate, a secret, noise …), or None.

        Pass the same `day` to `append`, so that midnight between the two calls makes no difference.
        """
        return agent_parts.make_notebook(self).check(text, to, day or self.today())

    def replace(self, path: str, text: str, base_hash: str, *, force: bool = False) -> str:
        """Replace the text that has `base_hash` ("" for a new file), and return the new hash.

        `WriteConflict` names both hashes when the file has changed since. The last three texts are
        kept in the state folder. A text with a redaction mask is refused, and so is one without
        most lines of the old text, unless `force` is given."""
        from clawmark.workspace.versions import check_replacement

        current = self.workspace.read_exact(path)
        # With another hash, `replace` below reports the conflict.
        if current is None or current.hash == base_hash:
            check_replacement(path, text, current.text if current is not None else "", force=force)
        return self.workspace.replace(path, text, base_hash)

    def plan(self, *, force: bool = False) -> tuple[SyncPlan, Scan]:
        """Return what `sync` would do now."""
        scan, plan = look_ahead(self._parts.sync, force=force)
        return plan, scan

    def sync(
        self,
        *,
        force: bool = False,
        progress: Callable[[reports.Progress], None] | None = None,
        instant_only: bool = False,
        seconds: float | None = None,
    ) -> reports.SyncReport:
        """Index what has changed; `force` indexes every file again.

        With `seconds`, it stops after that time and does not wait for other processes."""
        return self._backend.sync(
            force=force, progress=progress, instant_only=instant_only, seconds=seconds
        )

    def watch(
        self,
        on_event: Callable[[reports.WatchEvent], None] | None = None,
        *,
        files: bool | None = None,
    ) -> Watching:
        """Keep the index up to date in the background until the returned object is closed.

        `on_event` is called in another thread. `files` says whether files are watched; the default
        is `sync.watch`. The interval of `sync.intervalMinutes` applies in both cases."""
        from clawmark.backends.watching import Watching

        wanted = self.settings.memory_search.sync.watch if files is None else files
        watching = Watching(self._builtin, files=wanted, on_event=on_event)
        self._watchings.append(watching)
        return watching

    def session_started(self, session_key: str | None = None) -> bool:
        """Bring the index up to date, once for each session; return whether that was started."""
        is_wanted = self.settings.memory_search.sync.on_session_start
        if not is_wanted or session_key in self._sessions_seen:
            return False
        if session_key is not None:
            self._sessions_seen.add(session_key)
        return self._backend.refresh("session-start")

    def compacted(self) -> None:
        """Bring the index up to date after a compaction, so that the transcript can be searched."""
        forced = self.settings.memory_search.sync.sessions.post_compaction_force
        self._backend.refresh("post-compaction", deltas=not forced)

    def keep_vectors(self, identity: Identity, vectors: Mapping[str, Vector]) -> None:
        """Add vectors made elsewhere to the cache, by the SHA-256 hex of their text."""
        with self._parts.store.transaction() as writer:
            writer.cache_vectors(identity, vectors)

    def add_source(
        self, folder: str | os.PathLike[str], *, name: str = "", patterns: Sequence[str] = ()
    ) -> reports.SourceReport:
        """Search a folder of Markdown too; its files are cited as `name:path` and never written.

        The default name is made from the folder's. `patterns` (`*`, `?`, `[]`, `**`) select a part
        of the folder. Every process that has this memory open searches it from its next look at the
        disk on. `ConfigError` says why a folder cannot be added."""
        from clawmark.engine.maintenance.sources import add_source

        sources = composition.source_file(self.places)
        added = add_source(sources, self.workspace, os.fspath(folder), name, patterns)
        self.workspace.changes += 1
        return next(one for one in self.sources() if one.name == added.name)

    def remove_source(self, name: str) -> str:
        """Stop searching an added folder, and return its path; its files are not touched."""
        from clawmark.engine.maintenance.sources import remove_source

        removed = remove_source(composition.source_file(self.places), name)
        self.workspace.changes += 1
        return removed.path

    def sources(self) -> tuple[reports.SourceReport, ...]:
        """Return the added folders and the configured extra paths, with what is in them now."""
        from clawmark.engine.maintenance.sources import report_sources

        return report_sources(self.workspace)

    def absolute_path(self, path: str) -> str:
        """Return the absolute path of a memory file or citation; `PathDenied` for other files."""
        return self.workspace.absolute(path)

    def files(self, *patterns: str) -> tuple[MemoryFile, ...]:
        """Return the memory files, or those that match a path, a folder or a pattern."""
        return self._listing().files(patterns)

    def recent(
        self, count: int = 10, *, since: str = "", until: str = "", path: str = ""
    ) -> tuple[MemoryEntry, ...]:
        """Return the newest entries of the memory files, newest first; filters as for `search`."""
        return self._listing().recent(count, since=since, until=until, path=path)

    def _listing(self) -> Listing:
        from clawmark.engine.maintenance.listing import Listing

        return Listing(self.workspace, self._now())

    def sessions(self) -> tuple[reports.Transcript, ...]:
        """Return the agent's transcripts, the latest first, whether or not they are searched."""
        from clawmark.engine.maintenance.transcripts import list_transcripts

        return list_transcripts(self._parts, self._transcripts())

    def transcript(self, name: str) -> tuple[str, tuple[TranscriptMessage, ...]]:
        """Return the path of a transcript and its messages, with secrets masked.

        `name` is its path, its file name or the beginning of that."""
        from clawmark.engine.maintenance.transcripts import read_transcript

        return read_transcript(self._transcripts(), name)

    def _transcripts(self) -> TranscriptFiles:
        return self.workspace.sessions or composition.open_sessions(self.places, self.settings)

    def status(self) -> reports.Status:
        """Measure the state of the workspace and the index."""
        return self._backend.status()

    def probe(self) -> tuple[reports.Probe, ...]:
        """Embed one word with the configured provider, and score two known vectors.

        A service is called. A failure is a `Probe` with a reason and a next step, not an exception.
        """
        return self._backend.probe()

    def doctor(self, *, fix: bool = False, probe: bool = False) -> list[reports.Finding]:
        """Report problems and what to do; `fix` makes safe repairs, `probe` calls the embedder."""
        from clawmark.engine.maintenance.doctor import examine

        probes = self.probe() if probe else ()
        return examine(self._parts, self._builtin.run_sync, self.status, fix=fix, probes=probes)

    def verify(self) -> reports.VerifyReport:
        """Derive every row of the index from its file again and compare."""
        from clawmark.engine.maintenance.verify import verify

        return verify(self._parts)

    def spending(self) -> Spending:
        """Count what a full sync would send to the best embedder, and what it would cost."""
        from clawmark.engine.maintenance.spending import spending

        self.sync(instant_only=True)  # only what is cut into chunks can be counted
        return spending(self._parts)

    def evaluate(
        self,
        questions: Iterable[Mapping[str, object] | Question],
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> reports.Evaluation:
        """Measure how well the memory answers questions whose answers are known.

        A question is `{"question": …, "path": "memory/x.md#L3-L5"}`, or has the expected `text`
        instead of a path."""
        from clawmark.engine.maintenance.evaluate import DEPTH, as_questions, evaluate

        most = max(DEPTH, self.settings.memory_search.query.max_results)
        return evaluate(
            as_questions(questions),
            lambda text: self.search(text, max_results=most),
            self.read,
            progress or (lambda *_: None),
        )

    def make_questions(
        self, count: int = 50, *, completer: Completer | None = None
    ) -> Iterator[dict[str, str]]:
        """Have a model write questions for `evaluate` from passages all over the notes.

        Without a `completer`, the configured model writes them; `ConfigError` when there is none.
        """
        from clawmark.agent.models.question_maker import make_questions

        writer = agent_parts.make_question_writer(self.settings, completer)
        self.sync(instant_only=True)
        redactor = composition.redactor_of(self.settings.memory_search)
        return make_questions(writer, self._parts.store, redactor, count)

    def tools(
        self, session_key: str | None = None, *, append: bool = False, chat_type: str = ""
    ) -> list[Tool]:
        """Return `memory_search` and `memory_get` as tools for any agent, and with `append` also
        `memory_append`.

        The session key decides what may be read and whether answers have citations; a `chat_type`
        that the host has noted can only reduce it. Without a key, everything may be read.
        `tools.allow` and `tools.deny` leave tools out, and so does `memorySearch.enabled: false`.
        """
        return agent_parts.make_tools(self, session_key, append=append, chat_type=chat_type)

    def prompt(
        self, session_key: str | None = None, *, append: bool = False, chat_type: str = ""
    ) -> Prompt:
        """Return the memory's part of a session's system prompt; `append` as for `tools`."""
        from clawmark.agent.prompt.context import ContextReader
        from clawmark.engine.maintenance.status import brief_status

        self._context = self._context or ContextReader(self.workspace.root)
        return agent_parts.make_prompt(
            self,
            self._context,
            session_key,
            append=append,
            chat_type=chat_type,
            brief_status=lambda: brief_status(self._parts),
        )

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
        """Return a session for a host that talks to a model: its prompt, its flush, its note.

        Without a `completer`, the configured model flushes. `context_window` is the size of the
        host's model in tokens. With `append`, the prompt describes `memory_append`; with `recall`,
        each message brings what the memory holds about it."""
        return agent_parts.make_conversation(
            self,
            session_key,
            completer=completer,
            context_window=context_window,
            append=append,
            recall=recall,
            host_options=host_options,
            now=self._now,
        )

    def today(self) -> str:
        """Return today's date in the user's time zone."""
        return self._now().date().isoformat()

    def close(self) -> None:
        """Stop watching and background work, and close the index and the workspace."""
        for watching in self._watchings:
            watching.close()
        self._backend.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _text(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.path.expanduser(os.fspath(path))
