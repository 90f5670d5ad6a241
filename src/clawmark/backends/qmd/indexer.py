"""Keep QMD's index in step with the files: what is due, the collections, the export, the update."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from clawmark.backends.qmd.answers import Row, ask
from clawmark.backends.qmd.collections import Collection, ensure_collections, plan_collections
from clawmark.backends.qmd.process import Output, QmdProcess, failed
from clawmark.backends.qmd.record import Record, load_record, save_record
from clawmark.backends.qmd.transcript_export import Exported, export, retained
from clawmark.engine.sync.plan import flag_lost_roots, plan_sync, roots_to_store
from clawmark.model.errors import BackendError, BackendUnavailable
from clawmark.model.sync_report import SyncReport
from clawmark.model.values import (
    Degraded,
    FileStat,
    FileState,
    Scan,
    Skipped,
    SourceName,
    SyncPlan,
    is_media,
)
from clawmark.system import shared_json
from clawmark.system.backoff import Backoff
from clawmark.workspace import Workspace

BUSY_ATTEMPTS = 3
"""How often an update is tried that finds QMD's index locked."""
BUSY_PAUSE = Backoff(first=0.5, longest=4.0)
EMBED_PAUSE = Backoff(first=60.0, longest=3600.0)
IGNORED_FOLDERS = frozenset(("node_modules", ".git", ".cache", "vendor", "dist", "build"))
"""QMD indexes no files in folders with these names."""


class IndexerOptions(NamedTuple):
    """What is indexed and how long commands may take, in seconds."""

    agent: str
    own_memory: bool
    names: Mapping[str, str]
    """Configured names of folders, by their real path."""
    export_folder: str
    """Empty if transcripts are not searched."""
    retention_days: int
    uses_vectors: bool
    embed_interval: float
    command_seconds: float
    update_seconds: float
    embed_seconds: float


class Look(NamedTuple):
    """Disk and index compared."""

    scan: Scan
    plan: SyncPlan
    indexed: Mapping[str, FileStat]
    known: Mapping[str, SourceName]
    """The files of the memory that are there now."""
    last_sync: Mapping[str, object]


class Indexer:
    """Updates QMD's index, one update at a time for all processes."""

    def __init__(
        self,
        workspace: Workspace,
        process: QmdProcess,
        options: IndexerOptions,
        now_ns: Callable[[], int],
    ) -> None:
        self.workspace = workspace
        self.process = process
        self.options = options
        self._now_ns = now_ns
        self._path = os.path.join(process.folders.root, "record.json")
        self._updated_at = float("-inf")
        self._embed_failures = 0
        self._embed_after = 0.0
        self._version = ""

    def look(self) -> Look:
        """Compare disk and index, without starting QMD."""
        record = self._record()
        scan = self._scan()
        plan = plan_sync(scan, record.files)
        if plan.delete:  # a disk that is not mounted looks like one that was emptied
            scan = flag_lost_roots(scan, record.roots)
            plan = plan_sync(scan, record.files)
        return Look(
            scan=scan,
            plan=plan,
            indexed=record.files,
            known={state.path: state.source for state in scan.files},
            last_sync=record.last_sync,
        )

    def collections(self) -> tuple[Collection, ...]:
        """Return the collections that QMD should have now."""
        options = self.options
        return plan_collections(
            options.agent,
            self.workspace.root,
            self.workspace.extras(),
            own_memory=options.own_memory,
            names=options.names,
            sessions=options.export_folder,
        )

    def seconds_since_update(self) -> float:
        """Return how long ago this process finished an update."""
        return time.monotonic() - self._updated_at

    def version(self, *, cached: bool = False) -> str:
        """Return QMD's version; BackendUnavailable if it does not start.

        With `cached`, QMD is started only if it has not been: each prompt reads the status."""
        if cached and self._version:
            return self._version
        self.process.folders.make()
        done = self.process.run(("--version",), self.options.command_seconds)
        if done.code != 0:
            raise failed(done, ("--version",))
        self._version = done.out.strip().removeprefix("qmd ").partition(" ")[0][:40]
        return self._version

    def ask(self, arguments: Sequence[str], seconds: float) -> list[Row]:
        """Search; QMD is given its collections again if it has lost them."""
        self.process.folders.make()
        try:
            return ask(self.process, arguments, seconds)
        except BackendUnavailable as error:
            if "Collection not found" not in error.message:
                raise
        self.sync(force=False, embed=False)
        return ask(self.process, arguments, seconds)

    def sync(
        self,
        *,
        force: bool = False,
        seconds: float | None = None,
        reason: str = "manual",
        embed: bool = True,
    ) -> SyncReport:
        """Export transcripts, and have QMD index what has changed; `force` deletes its index first.

        Raises BackendUnavailable when QMD fails or takes longer than `seconds`."""
        began = time.monotonic()
        limit = self.options.update_seconds if seconds is None else seconds
        deadline = began + limit
        self.process.folders.make()
        with shared_json.locked(self._path, limit) as is_locked:
            if not is_locked:
                raise BackendUnavailable(
                    "Another process is updating QMD's index.", backend="qmd", hint="Try again."
                )
            if force:
                self._delete_index()
            look = self.look()
            exported = self._export(look)
            # An empty folder has no due files, but later ones are found only in its collection.
            wanted = self.collections()
            is_bound = tuple(one[:3] for one in wanted) == self._record().collections
            if look.plan.due or look.plan.recheck or not is_bound or not look.indexed:
                self._update(wanted, deadline)
            summary = self._summary(look.plan, reason, time.monotonic() - began)
            self._save(look, wanted, exported, summary)
        self._updated_at = time.monotonic()
        degraded = self._embed() if embed and self.options.uses_vectors else None
        return self._report(look, exported, degraded, time.monotonic() - began)

    def _record(self) -> Record:
        folders = self.process.folders
        return load_record(self._path, folders.index_file, folders.collections_file)

    def _scan(self) -> Scan:
        """Return the files that QMD should have."""
        scan, options = self.workspace.scan(), self.options
        transcripts = [state for state in scan.files if state.source == "sessions"]
        kept = retained(transcripts, self._now_ns(), options.retention_days)
        files, skipped = list[FileState](), list[Skipped]()
        leads = [one.lead for one in self.collections()]
        for state in scan.files:
            if state.source != "memory" or (_is_own(state.path) and not options.own_memory):
                continue
            reason = _skip_reason(state.path, leads)
            if reason:
                skipped.append(Skipped(state.path, reason))
            else:
                files.append(state)
        if options.export_folder:
            files += kept
        return scan._replace(files=tuple(sorted(files)), skipped=(*scan.skipped, *skipped))

    def _delete_index(self) -> None:
        folders = self.process.folders
        for folder in (folders.index_file, folders.collections_file):
            shutil.rmtree(os.path.dirname(folder), ignore_errors=True)
        folders.make()

    def _export(self, look: Look) -> Exported:
        earlier = self._record().exported
        transcripts, folder = self.workspace.sessions, self.options.export_folder
        if transcripts is None or not folder:
            return Exported((), ())
        changed = [state.path for state in (*look.plan.add, *look.plan.check)]
        states = [state for state in look.scan.files if state.source == "sessions"]
        return export(folder, transcripts, states, changed, earlier)

    def _update(self, wanted: Sequence[Collection], deadline: float) -> None:
        """Bring collections and documents up to date."""
        options, record = self.options, self._record()
        known = [name for name, _, _ in record.collections]
        if tuple(one[:3] for one in wanted) != record.collections:
            ensure_collections(
                self.process, wanted, known, min(options.command_seconds, _left(deadline))
            )
        for attempt in range(1, BUSY_ATTEMPTS + 1):
            done = self.process.run(("update",), min(options.update_seconds, _left(deadline)))
            if done.code == 0:
                return
            if attempt == BUSY_ATTEMPTS or not _is_busy(done):
                raise failed(done, ("update",))
            time.sleep(min(BUSY_PAUSE.wait(attempt), _left(deadline)))

    def _save(
        self,
        look: Look,
        collections: Sequence[Collection],
        exported: Exported,
        summary: Mapping[str, object],
    ) -> None:
        folders, before = self.process.folders, self._record()
        failed_paths = {failure.path for failure in exported.failures}
        seen = look.scan.taken_ns or self._now_ns()
        files = {
            state.path: _stat(state, seen)
            for state in look.scan.files
            if state.path not in failed_paths
        }
        files |= {path: look.indexed[path] for path in look.plan.kept}
        record = Record(
            files=files,
            collections=tuple(one[:3] for one in collections),
            exported=exported.names,
            roots=roots_to_store(look.scan, before.roots),
            last_sync=summary,
            embedded_at=before.embedded_at,
        )
        save_record(self._path, folders.index_file, folders.collections_file, record)

    def _embed(self) -> Degraded | None:
        """Run `qmd embed` when it is due; return why it failed."""
        options, now = self.options, time.time()
        record = self._record()
        if not options.embed_interval or now < self._embed_after:
            return None
        if now - record.embedded_at < options.embed_interval:
            return None
        self._link_models()
        try:
            done = self.process.run(("embed",), options.embed_seconds)
            error: BackendError | None = failed(done, ("embed",)) if done.code != 0 else None
        except BackendError as raised:
            error = raised
        if error is not None:
            self._embed_failures += 1
            self._embed_after = now + EMBED_PAUSE.wait(self._embed_failures)
            return Degraded(error.message, error.hint or "Run `qmd embed` by hand to see why.")
        self._embed_failures = 0
        with shared_json.locked(self._path, options.command_seconds) as is_locked:
            if is_locked:
                folders = self.process.folders
                record = self._record()._replace(embedded_at=now)
                save_record(self._path, folders.index_file, folders.collections_file, record)
        return None

    def _link_models(self) -> None:
        """Use the models that the user's own QMD has downloaded."""
        models = os.path.expanduser("~/.cache/qmd/models")
        link = os.path.join(os.path.dirname(self.process.folders.index_file), "models")
        if os.path.isdir(models) and not os.path.lexists(link):
            with suppress(OSError):
                os.symlink(models, link)

    def _summary(self, plan: SyncPlan, reason: str, seconds: float) -> dict[str, object]:
        return {
            "at": self._now_ns() // 1_000_000,
            "reason": reason,
            "added": len(plan.add),
            "updated": len(plan.check),
            "deleted": len(plan.delete),
            "seconds": round(seconds, 3),
        }

    def _report(
        self, look: Look, exported: Exported, degraded: Degraded | None, seconds: float
    ) -> SyncReport:
        plan = look.plan
        return SyncReport(
            added=len(plan.add),
            updated=len(plan.check),
            touched=len(plan.recheck),
            deleted=len(plan.delete),
            unchanged=plan.unchanged,
            chunks=0,
            embedded=0,
            reused=0,
            skipped=look.scan.skipped,
            failures=exported.failures,
            scan_failures=look.scan.failures,
            due_files=len(exported.failures),
            due_vectors=0,
            generation=0,
            degraded=degraded,
            seconds=seconds,
        )


def _is_own(path: str) -> bool:
    return path in ("MEMORY.md", "memory.md") or path.startswith("memory/")


def _skip_reason(path: str, leads: Sequence[str]) -> str:
    """Return why QMD does not index a file; empty if it does.

    `leads` are those of the collections: the folder of a collection itself may have any name."""
    if is_media(path):
        return "QMD indexes Markdown only"
    lead = max((lead for lead in leads if path.startswith(lead)), key=len, default="")
    ignored = [name for name in path[len(lead) :].split("/")[:-1] if name in IGNORED_FOLDERS]
    return f"QMD ignores folders called {ignored[0]}" if ignored else ""


def _stat(state: FileState, seen_ns: int) -> FileStat:
    return state.size, state.mtime_ns, state.inode, state.device, seen_ns


def _is_busy(done: Output) -> bool:
    return "SQLITE_BUSY" in done.err or "database is locked" in done.err


def _left(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())
