"""The part of `Memory` that reports and maintains: sources, transcripts, status and checks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from clawmark import composition
from clawmark.composition import agent as agent_parts
from clawmark.model.errors import ConfigError
from clawmark.model.values import parse_citation

if TYPE_CHECKING:
    from datetime import datetime

    from clawmark.agent.consolidation.run import ConsolidationReport
    from clawmark.agent.consolidation.superseded import Contradiction
    from clawmark.agent.forget.parts import ForgetParts
    from clawmark.agent.forget.values import ForgetPlan, ForgetReport
    from clawmark.agent.models.completer import Completer
    from clawmark.agent.review.box import ProposalBox
    from clawmark.backends.base import MemoryBackend
    from clawmark.backends.builtin import BuiltinBackend
    from clawmark.composition.history.session_reports import SessionReport
    from clawmark.composition.slot import SlotParts
    from clawmark.composition.team_memory import Team
    from clawmark.config.paths import Places
    from clawmark.config.schema import Settings
    from clawmark.engine.maintenance.evaluate import Question
    from clawmark.engine.maintenance.listing import Listing
    from clawmark.engine.maintenance.spending import Spending
    from clawmark.engine.parts import IndexParts
    from clawmark.engine.sync.scan import SyncRequest
    from clawmark.engine.versions.workspace_history import WorkspaceHistory
    from clawmark.history.journal import Journal
    from clawmark.memory import Memory
    from clawmark.model import reports
    from clawmark.model.documents import DayAmount, Excerpt, IndexedFile, MemoryEntry, MemoryFile
    from clawmark.model.provenance import EntryOrigin, LogEntry, Provenance
    from clawmark.model.sync_report import Progress
    from clawmark.model.values import Found, Hit, Identity, Vector
    from clawmark.model.why_not import WhyNot
    from clawmark.text.transcripts.records import TranscriptMessage
    from clawmark.workspace import Workspace
    from clawmark.workspace.transcripts.files import TranscriptFiles

# Imports inside the methods below are late because a cold `clawmark search` needs none of them.


class Upkeep:
    """What `Memory` does besides searching, reading and writing."""

    places: Places
    _clock: Callable[[], datetime] | None
    _parts: IndexParts
    _builtin: BuiltinBackend
    _backend: MemoryBackend
    _other: MemoryBackend | None
    _history: WorkspaceHistory | None = None

    if TYPE_CHECKING:  # provided by `Memory`

        @property
        def settings(self) -> Settings: ...
        @property
        def workspace(self) -> Workspace: ...
        @property
        def slot(self) -> SlotParts: ...

        search: Callable[..., Found]
        read: Callable[..., Excerpt]
        sync: Callable[..., reports.SyncReport]
        today: Callable[[], str]
        _now: Callable[[], datetime]

    @property
    def _memory(self) -> Memory:
        """This object: only `Memory` inherits from this class."""
        return cast("Memory", self)

    @property
    def team(self) -> Team:
        """The shared spaces of the team; ConfigError if none is configured."""
        from clawmark.composition.team_memory import open_team

        return open_team(self._memory, self._memory._lease.manager.team)

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

    def days(self) -> tuple[DayAmount, ...]:
        """Return how much the memory files hold of each day, the oldest first."""
        return self._listing().days()

    def passages(self, path: str) -> IndexedFile:
        """Return the passages of a file that the built-in index holds, in order."""
        from clawmark.engine.maintenance.passages import indexed_file

        return indexed_file(self._parts, path)

    def entry_origins(self, entries: Sequence[MemoryEntry]) -> tuple[EntryOrigin, ...]:
        """Return whose words each entry has, and the write it came from."""
        from clawmark.composition.history.trust import find_origins

        return find_origins(self._memory, entries)

    def _listing(self) -> Listing:
        from clawmark.engine.maintenance.listing import Listing

        return Listing(self.workspace, self._now())

    @property
    def journal(self) -> Journal:
        """The journal of writes: who wrote which entry when, and from what."""
        return composition.make_journal(self.places, self.settings, self._clock)

    def log(
        self, count: int = 20, *, path: str = "", since: str = "", kind: str = "", session: str = ""
    ) -> tuple[LogEntry, ...]:
        """Return the newest records of the journal, newest first, with the text that is still
        there.

        `path` is a file, a folder or a pattern, `since` a day as for `search`."""
        from clawmark.composition.history.journal_reports import read_log

        return read_log(
            self.workspace,
            self.journal,
            count,
            path=path,
            since=since,
            kind=kind,
            session=session,
            today=self.today,
        )

    def origins(self, hits: Iterable[Hit]) -> tuple[Provenance | None, ...]:
        """Return where each hit came from; None if it is not text of a memory file, or if the
        journal cannot be read."""
        from clawmark.composition.history.records import origins_of

        return origins_of(self.workspace, self.journal, hits)

    def _with_origins(self, found: Found) -> Found:
        """Return an answer whose hits say where they came from."""
        hits = zip(found.hits, self.origins(found.hits), strict=True)
        return found._replace(hits=tuple(hit._replace(origin=one) for hit, one in hits))

    @property
    def history(self) -> WorkspaceHistory:
        """The versions of the memory files: list them, compare them, restore a file, undo a
        write."""
        if self._history is None:
            self._history = composition.open_history(
                self.places, self.settings, self.workspace, self._now
            )
        return self._history

    def with_replaced(self, found: Found) -> Found:
        """Return an answer whose hits have what their lines replaced: "now B, was A until …"."""
        from clawmark.composition.history.as_of import add_replaced

        return found._replace(hits=add_replaced(self._memory, self._parts, found))

    def sessions(self) -> tuple[reports.Transcript, ...]:
        """Return the agent's transcripts, the latest first, whether or not they are searched."""
        from clawmark.engine.maintenance.transcripts import list_transcripts

        flushed, _ = agent_parts.flush_times(self.places)
        return tuple(
            one._replace(flush=flushed.get(os.path.basename(one.path)))
            for one in list_transcripts(self._parts, self.transcript_files)
        )

    def transcript(self, name: str) -> tuple[str, tuple[TranscriptMessage, ...]]:
        """Return the path of a transcript and its messages, with secrets masked.

        `name` is its path, its file name or the beginning of that."""
        from clawmark.engine.maintenance.transcripts import read_transcript

        return read_transcript(self.transcript_files, name)

    def session(self, name: str) -> SessionReport:
        """Return one session: its messages, what it took from the memory, and what was written to
        the memory from it; `name` as for `transcript`."""
        from clawmark.composition.history.session_reports import report_session

        return report_session(self._memory, name)

    @property
    def transcript_files(self) -> TranscriptFiles:
        """The agent's transcripts as files, whether or not they are searched."""
        return self.workspace.sessions or composition.open_sessions(self.places, self.settings)

    def plan_forget(
        self,
        text: str = "",
        *,
        path: str = "",
        lines: str = "",
        session: str = "",
        source: str = "",
        since: str = "",
    ) -> ForgetPlan:
        """Find every place where something lives that is to be forgotten; nothing is changed.

        Exactly one argument is given: a `text` that entries contain, a `path`, `lines` as a
        citation, the id of a `session`, an added folder or import (`source`), or a day `since` when
        agents wrote. `WorkspaceError` if there is no such thing."""
        from clawmark.composition.history.forget import Selection, finish_interrupted, make_plan

        parts = self._forget_parts()
        finish_interrupted(parts)
        selection = Selection(
            text=text, path=path, lines=lines, session=session, source=source, since=since
        )
        return make_plan(parts, selection)

    def forget(self, plan: ForgetPlan) -> ForgetReport:
        """Remove everything that a plan lists, for good, and say what cannot be reached.

        If the process is killed, the next `sync`, `append` or `forget` finishes it."""
        from clawmark.composition.history.forget import forget

        return forget(self._forget_parts(), plan)

    def _finish_forget(self) -> None:
        """Finish what a killed process has begun to forget; a failure is logged, and the next
        command tries again."""
        if os.path.exists(os.path.join(self._agent_folder, "forget.json")):
            from clawmark.composition.history.forget import finish_or_log

            finish_or_log(self._forget_parts())

    def _forget_parts(self) -> ForgetParts:
        from clawmark.composition.history.forget import make_parts

        return make_parts(
            self._memory, self._parts.store, lambda: self._builtin.sync(instant_only=True)
        )

    def _lift_forgotten(self, text: str) -> None:
        """Let automatic writes keep a text again that was forgotten: the user has written it."""
        if os.path.exists(os.path.join(self._agent_folder, "tombstones.json")):
            composition.make_tombstones(self.places).lift(text)

    @property
    def _agent_folder(self) -> str:
        return os.path.join(self.places.state_dir, "agents", self.places.agent_id)

    def status(self) -> reports.Status:
        """Measure the state of the workspace and the index."""
        _, latest = agent_parts.flush_times(self.places)
        status = self._backend.status()._replace(flush=latest, proposals=self.review.count())
        problems = " ".join(finding.what for finding in self._journal_findings())
        return self.slot.complete_status(status._replace(journal=problems))

    def _journal_findings(self, *, fix: bool = False) -> list[reports.Finding]:
        from clawmark.composition.history.journal_reports import journal_findings

        return journal_findings(self.journal, self._parts, fix=fix)

    @property
    def review(self) -> ProposalBox:
        """The changes that agents have proposed, for the user to accept, reject or edit."""
        from clawmark.composition.history.review import make_box

        return make_box(self.places, self.settings, self.workspace)

    def probe(self) -> tuple[reports.Probe, ...]:
        """Embed one word with the configured provider, and score two known vectors.

        A service is called. A failure is a `Probe` with a reason and a next step, not an exception.
        """
        return self._backend.probe()

    def doctor(self, *, fix: bool = False, probe: bool = False) -> list[reports.Finding]:
        """Report problems and what to do; `fix` makes safe repairs, `probe` calls the embedder."""
        from clawmark.composition.history import forget, review
        from clawmark.engine.maintenance.doctor import examine, probe_finding
        from clawmark.engine.maintenance.log_findings import log_findings

        # An embedding service may charge for a call, so it is not called unasked.
        probes = self._builtin.probe() if probe else ()
        other = self._other
        found = examine(
            self._parts,
            self._builtin.run_sync if other is None else self._run_sync,
            self._backend.status,
            fix=fix,
            probes=probes,
            backend_probes=other.probe() if other is not None else (),
        )
        team = self._memory._lease.manager.team
        about_history = composition.history_findings(self.places, self.settings, fix=fix)
        return [
            *found,
            *self._journal_findings(fix=fix),
            *self.slot.findings(),
            *(map(probe_finding, team.probes()) if team is not None else ()),
            *about_history,
            *forget.findings(self.places),
            *review.findings(self.review),
            *log_findings(self.places.state_dir, self.settings.memory.log),
        ]

    def consolidate(
        self,
        *,
        days: int = 0,
        completer: Completer | None = None,
        model: str = "",
        rules_only: bool = False,
        dry_run: bool = False,
        progress: Callable[[Progress], None] | None = None,
    ) -> ConsolidationReport:
        """Propose what should change in MEMORY.md after the logs of the last days.

        Rules find what is said twice, superseded, expired, or said on several days. A model, the
        configured one by default, reviews the result; `rules_only` does without. The changes wait
        for the user as a proposal, and nothing else is written. `days` is by default
        `memory.consolidation.days`."""
        from clawmark.composition.history.consolidation import run_consolidation

        return run_consolidation(
            self._memory,
            completer,
            model=model,
            rules_only=rules_only,
            days=days,
            dry_run=dry_run,
            progress=progress,
        )

    def contradictions(self) -> tuple[Contradiction, ...]:
        """Return the statements of MEMORY.md and of last year's logs that contradict each other."""
        from clawmark.composition.history.consolidation import find_contradictions

        return find_contradictions(self._memory)

    def _run_sync(self, request: SyncRequest) -> reports.SyncReport:
        return self._backend.sync(instant_only=request.instant_only)

    def keep_vectors(self, identity: Identity, vectors: Mapping[str, Vector]) -> None:
        """Add vectors made elsewhere to the cache, by the SHA-256 hex of their text."""
        composition.require_index(self.settings)
        with self._parts.store.transaction() as writer:
            writer.cache_vectors(identity, vectors)

    def verify(self) -> reports.VerifyReport:
        """Derive every row of the built-in index from its file again and compare; ConfigError if
        another backend answers.
        """
        from clawmark.engine.maintenance.verify import verify

        composition.require_index(self.settings)
        if self._other is not None:
            backend = self.settings.memory.backend
            raise ConfigError(
                f"There is nothing to verify: memory.backend is {backend}, and only the built-in "
                "index can be compared with the files.",
                key="memory.backend",
                hint="`clawmark index --force` makes the index of the backend again.",
            )
        return verify(self._parts)

    def why_not(
        self,
        query: str,
        path: str,
        line: int | None = None,
        *,
        max_results: int | None = None,
        min_score: float | None = None,
        since: str | None = None,
        until: str | None = None,
        within: str | None = None,
        source: str | None = None,
    ) -> WhyNot:
        """Return why a search does not find a file or a line: the step that drops it, its rank and
        score there, and what brings it up.

        `path` is a path or a citation; of a file, the passage counts that comes closest. The other
        arguments are those of `search`, where `within` is called `path`. ConfigError if another
        backend answers."""
        from clawmark.backends.why_not import explain_absence
        from clawmark.text.filters import make_filters

        composition.require_index(self.settings)
        if self._other is not None:
            raise ConfigError(
                f"memory.backend is {self.settings.memory.backend}, and only the built-in backend "
                "can say why a passage is missing.",
                key="memory.backend",
                hint="Search with the flag --explain instead.",
            )
        filters = make_filters(
            since=since, until=until, path=within, source=source, today=self.today
        )
        options = self.settings.memory_search.query
        asked = composition.make_query(options, query, max_results, min_score, self.today)
        cited = parse_citation(path)
        if line is None and cited.lines is not None:
            path, line = cited.path, cited.start
        asked = asked._replace(filters=filters)
        return explain_absence(self._builtin, self.search, asked, path, line)

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

        composition.require_index(self.settings)
        writer = agent_parts.make_question_writer(self.settings, completer)
        self._builtin.sync(instant_only=True)  # its passages are asked about, whoever answers
        redactor = composition.redactor_of(self.settings.memory_search)
        return make_questions(writer, self._parts.store, redactor, count)
