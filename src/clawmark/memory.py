"""The memory of one agent: the object that programs use.

    with Memory.open("~/agent") as memory:
        for hit in memory.search("which database did we pick?").hits:
            print(hit.citation, hit.snippet)

`composition` builds the parts it works with.
"""

from __future__ import annotations

import os
from _thread import RLock  # a lock without `threading`, which costs a cold search 1 ms
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from clawmark import composition
from clawmark.composition import agent as agent_parts
from clawmark.composition.managers import lease_manager
from clawmark.composition.upkeep import Upkeep
from clawmark.config.paths import Places, resolve_places
from clawmark.config.schema import Loaded, Settings
from clawmark.embed.base import Choice, Embedder
from clawmark.engine.sync.scan import look_ahead
from clawmark.model.errors import WorkspaceError
from clawmark.model.values import Found, Scan, SyncPlan
from clawmark.system.counters import Metrics
from clawmark.workspace import Workspace
from clawmark.workspace.daily import format_entry

if TYPE_CHECKING:
    from datetime import datetime

    from clawmark.agent.heartbeat.turn import HeartbeatReport
    from clawmark.agent.models.completer import Completer
    from clawmark.agent.plugins.lifecycle import SessionHooks
    from clawmark.agent.prompt.context import ContextReader
    from clawmark.agent.prompt.sections import Prompt
    from clawmark.agent.prompt.trust_gate import TrustGate
    from clawmark.agent.session.conversation import Conversation, HostOptions
    from clawmark.agent.tools import Tool
    from clawmark.agent.tools.gate import Refusal
    from clawmark.backends.watching import Watching
    from clawmark.composition.history.as_of import EarlierMemory
    from clawmark.composition.slot import SlotParts
    from clawmark.model import reports
    from clawmark.model.documents import Excerpt, Written
    from clawmark.model.provenance import Origin

# Imports inside the methods below are late because a cold `clawmark search` needs none of them.


class Memory(Upkeep):
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
        self.context_reader: ContextReader | None = None
        self.trust_gate: TrustGate | None = None
        self._watchings: list[Watching] = []
        self._clock = clock
        self._slot: SlotParts | None = None
        self._slot_lock = RLock()
        self._lease = lease_manager(
            places, loaded, embedder, provider, background=background, clock=clock
        )
        manager = self._lease.manager
        self._builtin, self._backend = manager.builtin, manager.backend
        self._parts = self._builtin.parts
        is_builtin = manager.own is self._builtin or loaded.settings.memory.backend == "builtin"
        is_other = loaded.settings.memory_search.enabled and not is_builtin
        self._other = self._backend if is_other else None
        """The backend that answers instead of the built-in one."""

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
        a search has no time for; it starts when there is something to do. Memories of the same
        folder with the same settings share index, worker and embedders while they are open."""
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
    def slot(self) -> SlotParts:
        """The memory plugins in use, made when they are first needed."""
        return self.open_slot()

    def open_slot(self, *, log: bool = True) -> SlotParts:
        """Make the memory plugins; `log` logs why a configured one is not used."""
        with self._slot_lock:
            if self._slot is None:
                self._slot = agent_parts.build_slot(self, log=log)
            return self._slot

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
        space: str | None = None,
        as_of: str | None = None,
        explain: bool = False,
        freshen: bool = True,
    ) -> Found:
        """Find the passages that answer a question; an empty answer says why.

        `since` and `until` are days (`2026-02-24`, or `7d` and `2w` before today), both inclusive;
        passages without a date are left out. `path` is a pattern such as `memory/projects/**`,
        `source` is `memory`, `sessions` or the name of an added folder, `space` a shared space, or
        `-` for the workspace without its spaces. `as_of` searches the memory
        files as they were at the end of a day, which then counts as today, or at an ISO 8601 time;
        `VersionMissing` if no version of that time is known. `explain` adds how the
        answer was found, and to each hit where it came from."""
        earlier = self._at(as_of) if as_of else None
        today = self.today if earlier is None else earlier.today
        given = {"since": since, "until": until, "path": path, "source": source, "space": space}
        filters = composition.read_filters(self.settings, given, today)
        options = self.settings.memory_search.query
        query = composition.make_query(options, text, max_results, min_score, today)
        query = query._replace(filters=filters, explain=explain)
        if earlier is not None and self.settings.memory_search.enabled:
            composition.require_index(self.settings)
            found = earlier.search(query)
        else:
            found = self._backend.search(query, freshen=freshen)
        return self._with_origins(found) if explain else found

    def read(
        self,
        path: str,
        *,
        start: int | None = None,
        lines: int | None = None,
        max_chars: int = 12_000,
        as_of: str | None = None,
    ) -> Excerpt:
        """Return lines of a memory file, by its path or a citation; 120 lines by default.

        With `as_of`, they are as they were on that day, as for `search`."""
        if as_of:
            return self._at(as_of).read(path, start, lines, max_chars)
        return self._backend.read(path, start, lines, max_chars)

    def _at(self, as_of: str) -> EarlierMemory:
        # Only searches of an earlier day import it.
        from clawmark.composition.history.as_of import EarlierMemory

        return EarlierMemory(self, self._parts, as_of)

    def recall(
        self,
        text: str,
        session_key: str | None = None,
        *,
        max_results: int = 3,
        min_score: float | None = None,
        chat_type: str = "",
        sandboxed: bool = False,
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
            sandboxed=sandboxed,
        )

    def append(
        self,
        text: str,
        *,
        to: str = "",
        day: str = "",
        at: datetime | None = None,
        origin: Origin | None = None,
    ) -> Written:
        """Add an entry to the log of a day (today's by default), or to the file `to`; it is on disk
        when this returns.

        An entry of today's log starts with the time; `at` is that time, for a caller that has
        called `now` already. Only text with redaction masks is refused. `check_note` applies the
        write gate that agents and `clawmark remember` have. `origin` says who writes, for the
        journal; by default the user. What an agent writes may be kept as a proposal, which raises
        KeptForReview."""
        from clawmark.text.write_check import check_write

        self._finish_forget()
        problem = check_write(text)
        if problem is not None:
            raise WorkspaceError(problem.message, hint=problem.hint)
        if origin is None or origin.trust == "owner":
            self._lift_forgotten(text)
        if to:
            return self.workspace.append(to, format_entry(text), origin=origin)
        moment = at or self._now()  # read once, so that the day and the time agree
        today = moment.date().isoformat()
        has_time = self.settings.memory.daily_log.times and day in ("", today)
        time = f"{moment:%H:%M}" if has_time else ""
        return self.workspace.remember(text, day or today, time, origin=origin)

    def check_note(self, text: str, *, to: str = "", day: str = "") -> Refusal | None:
        """Return why the write gate refuses an entry (a duplicate, a secret, noise …), or None.

        Pass the same day to `append` (`day`, or `at` with the time), so that midnight between the
        two calls makes no difference.
        """
        return agent_parts.make_notebook(self).check(text, to, day or self.today())

    def replace(
        self,
        path: str,
        text: str,
        base_hash: str,
        *,
        force: bool = False,
        origin: Origin | None = None,
    ) -> str:
        """Replace the text that has `base_hash` ("" for a new file), and return the new hash.

        `WriteConflict` names both hashes when the file has changed since. The last three texts are
        kept in the state folder. A text with a redaction mask is refused, and so is one without
        most lines of the old text, unless `force` is given. `origin` is that of the new entries, by
        default the user; entries that stay keep theirs."""
        from clawmark.workspace.versions import check_replacement

        current = self.workspace.read_exact(path)
        # With another hash, `replace` below reports the conflict.
        if current is None or current.hash == base_hash:
            check_replacement(path, text, current.text if current is not None else "", force=force)
        return self.workspace.replace(path, text, base_hash, origin=origin)

    def plan(self, *, force: bool = False) -> tuple[SyncPlan, Scan]:
        """Return what `sync` would do now."""
        make_plan = getattr(self._other, "plan", None)
        known: tuple[SyncPlan, Scan] | None = make_plan() if make_plan is not None else None
        if known is not None:
            return known
        scan, plan = look_ahead(self._parts.sync, force=force)
        return plan, scan

    def sync(
        self,
        *,
        force: bool = False,
        progress: Callable[[reports.Progress], None] | None = None,
        instant_only: bool = False,
        seconds: float | None = None,
        as_of: str | None = None,
    ) -> reports.SyncReport:
        """Index what has changed; `force` indexes every file again.

        With `seconds`, it stops after that time and does not wait for other processes. With
        `as_of`, it indexes the files of an earlier day instead, with all their vectors; the other
        arguments except `progress` do not apply."""
        if as_of:
            composition.require_index(self.settings)
            return self._at(as_of).sync(progress)
        self._finish_forget()
        report = self._backend.sync(
            force=force, progress=progress, instant_only=instant_only, seconds=seconds
        )
        if self._other is not None:  # the built-in backend does it itself
            self._builtin.record(report)
        return report

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

        composition.require_index(self.settings)
        wanted = self.settings.memory_search.sync.watch if files is None else files
        watching = Watching(
            self._builtin,
            files=wanted,
            on_event=on_event,
            other=self._other,
            pull=composition.periodic_pull(self.settings, self._lease.manager.team),
        )
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

    def tools(
        self,
        session_key: str | None = None,
        *,
        append: bool = False,
        chat_type: str = "",
        sandboxed: bool = False,
    ) -> list[Tool]:
        """Return the tools of the memory plugin: of memory-core these are `memory_search`,
        `memory_get`, and with `append` also `memory_append`.

        The session key decides what may be read and whether answers have citations; a `chat_type`
        that the host has noted can only reduce it. Without a key, everything may be read.
        `tools.*` leaves tools out, and so does `memorySearch.enabled: false`. `sandboxed` says that
        the host runs the session in a sandbox: `agents.defaults.sandbox.workspaceAccess` applies.
        """
        return agent_parts.make_tools(
            self, session_key, append=append, chat_type=chat_type, sandboxed=sandboxed
        )

    def plugins(self) -> tuple[reports.PluginReport, ...]:
        """Return the installed memory plugins, what each is used for, and why it is not used."""
        return self.slot.report()

    def lifecycle(
        self, session_key: str | None = None, *, chat_type: str = "", sandboxed: bool = False
    ) -> SessionHooks:
        """Return the lifecycle hooks of a session, for a host that does not use `conversation`.

        The host calls `session_start`, `before_agent_start`, `agent_end`, `before_compaction` and
        `session_end`, which call the memory plugins in use and never raise."""
        return self.slot.hooks(session_key, chat_type, sandboxed=sandboxed)

    def prompt(
        self,
        session_key: str | None = None,
        *,
        append: bool = False,
        chat_type: str = "",
        mode: str = "full",
        time: bool = False,
        sandboxed: bool = False,
    ) -> Prompt:
        """Return the memory's part of a session's system prompt; other arguments as for `tools`.

        The `mode` `minimal` leaves out how to use the memory and the last days, for sub-agents;
        `none` is empty. The date is always in the prompt; with `time`, it ends with the time, and
        only that differs from minute to minute."""
        from clawmark.engine.maintenance.status import brief_status

        return agent_parts.make_prompt(
            self,
            session_key,
            append=append,
            chat_type=chat_type,
            mode=mode,
            time=time,
            sandboxed=sandboxed,
            brief_status=lambda: brief_status(self._parts, self._other),
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

    def heartbeat(
        self,
        *,
        completer: Completer | None = None,
        model: str = "",
        apply: bool = False,
        days: int = 7,
        force: bool = False,
    ) -> HeartbeatReport:
        """Let a model go through HEARTBEAT.md and curate MEMORY.md from the logs of the last days.

        The model is not asked if nothing has changed since the last heartbeat, unless `force` is
        given. `agents.defaults.heartbeat.curation` says what happens with the changes it proposes;
        `apply` writes them. Raises ConfigError if there is no model, and CompletionError if it
        fails."""
        return agent_parts.run_heartbeat(
            self, completer, model=model, apply=apply, days=days, force=force
        )

    def now(self) -> datetime:
        """Return the current time in the user's time zone."""
        return self._now()

    def today(self) -> str:
        """Return today's date in the user's time zone."""
        return self.now().date().isoformat()

    def close(self) -> None:
        """Stop watching; the last memory of a folder also stops its background work and closes its
        index.
        """
        for watching in self._watchings:
            watching.close()
        if self._slot is not None:
            self._slot.slot.close()
        self._lease.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _text(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.path.expanduser(os.fspath(path))
