"""Report what is wrong and, on request, make the safe repairs: replace a damaged index, index what
is due, restrict permissions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from clawmark.embed.base import Embedder
from clawmark.engine.maintenance.repair import BROKEN, heal
from clawmark.engine.parts import IndexParts
from clawmark.engine.sync.scan import SyncRequest, look
from clawmark.model.errors import ClawmarkError, IndexDamaged, NotText, WorkspaceError
from clawmark.model.reports import Finding, Probe, Status
from clawmark.model.sync_report import SyncReport
from clawmark.store.sqlite.schema import FIX_HINT

SHOWN = 5
SUFFIXES = ("", "-wal", "-shm")
"""The database, its log and its shared-memory file."""


def _ok(what: str) -> Finding:
    return Finding("ok", what, "")


def _note(what: str, next_step: str = "") -> Finding:
    return Finding("note", what, next_step)


def _problem(what: str, next_step: str) -> Finding:
    return Finding("problem", what, next_step)


def examine(
    parts: IndexParts,
    sync: Callable[[SyncRequest], SyncReport],
    status: Callable[[], Status],
    *,
    fix: bool,
    probes: Sequence[Probe] = (),
    backend_probes: Sequence[Probe] = (),
) -> list[Finding]:
    """Return the findings in the order a person would look: configuration, files, index, embedder,
    engine.

    Without `probes`, the embedder is reported as configured but not called. `backend_probes` are
    those of a backend that answers instead of the built-in one. Without an index, only
    configuration and files are examined.
    """
    findings = [
        _problem(warning, "Correct the key or remove it.") for warning in parts.setup.warnings
    ]
    if not parts.setup.has_index:
        return [*findings, *_files(parts, status())]
    healed = _heal(parts, sync, fix=fix)
    findings.extend(healed)
    if any(finding.level == "problem" and not finding.fixed for finding in healed):
        return findings
    facts = status()
    findings.extend(probe_finding(probe) for probe in backend_probes)
    if facts.fallback is not None:
        what = f"The built-in backend answers instead of {facts.fallback.from_}."
        findings.append(_note(what, f"{facts.fallback.from_} is tried again after a pause."))
    findings.extend(_files(parts, facts))
    findings.extend(_due(parts, sync, facts, fix=fix))
    if not facts.search_enabled:
        findings.append(
            _note("Memory search is switched off.", "Set memorySearch.enabled to true to search.")
        )
    findings.extend(probe_finding(probe) for probe in probes)
    if not probes and facts.backend == "builtin":
        findings.extend(_embedder(parts.embedders, facts))
    findings.extend(_engine(parts.setup.state_dir, facts))
    findings.extend(_private(facts.index_path, fix=fix))
    return findings


def _heal(
    parts: IndexParts, sync: Callable[[SyncRequest], SyncReport], *, fix: bool
) -> list[Finding]:
    """Check the index; with `fix`, replace one that cannot be used by a new one."""
    try:
        with parts.store.snapshot(thorough=True) as reader:
            problems = reader.integrity_problems()
            if problems:
                # Raised inside the snapshot, so that the store knows which file is damaged.
                raise IndexDamaged(
                    f"The index {parts.store.path} is damaged ({problems[0]}).", hint=FIX_HINT
                )
        return [_ok("The index is sound.")]
    except BROKEN as raised:
        error: ClawmarkError = raised
    if not fix:
        next_step = (
            "`clawmark index` and every search set it aside and build "
            "it again; so does `clawmark doctor --fix`."
        )
        return [_problem(error.message, next_step)]
    healed = heal(parts.store, error)
    added = sync(SyncRequest(instant_only=True)).added
    what = f"{healed or error.message} Files indexed again: {added}."
    return [_problem(what, "")._replace(fixed=True)]


def _files(parts: IndexParts, facts: Status) -> Iterator[Finding]:
    if not os.path.isdir(facts.workspace):
        yield _problem(
            f"The workspace {facts.workspace} does not exist.", f"clawmark init {facts.workspace}"
        )
        return
    for failure in facts.scan_failures:
        where = failure.path or facts.workspace
        yield _problem(
            f"{where} could not be listed: {failure.reason}",
            "Correct its permissions; the indexed files below it are kept until then.",
        )
    if facts.due_files:
        yield from _unreadable(parts)
    if facts.skipped:
        some = "; ".join(f"{skipped.path}: {skipped.reason}" for skipped in facts.skipped[:SHOWN])
        more = f" and {len(facts.skipped) - SHOWN} more" if len(facts.skipped) > SHOWN else ""
        yield _note(
            f"Skipped: {len(facts.skipped):,} ({some}{more}).",
            "clawmark status --verbose lists all.",
        )
    linked = parts.workspace.hard_linked(parts.workspace.scan())
    if linked:
        yield _note(
            f"Files with other names elsewhere (hard links): {len(linked):,} "
            f"({', '.join(linked[:SHOWN])}).",
            "",
        )
    if not facts.files and not facts.due_files and parts.setup.has_index:
        yield _note("There is no memory yet.", '`clawmark remember "something worth keeping"`')


def _unreadable(parts: IndexParts) -> Iterator[Finding]:
    """Report due files that cannot be read: no sync would index them."""
    workspace = parts.workspace
    _, plan = look(parts.sync)
    for state in (*plan.add, *plan.check):
        try:
            if state.source == "sessions" and workspace.sessions is not None:
                with workspace.sessions.open(state.path):
                    continue
            workspace.read_document(state)
        except (NotText, FileNotFoundError):  # a sync records it as not text, or as deleted
            continue
        except WorkspaceError as error:
            yield _problem(error.message, error.hint)


def _due(
    parts: IndexParts, sync: Callable[[SyncRequest], SyncReport], facts: Status, *, fix: bool
) -> Iterator[Finding]:
    due = {
        f"Not indexed yet: {facts.due_files:,} of the files.": facts.due_files > 0,
        "A rebuild was interrupted; the old generation answers.": facts.rebuilding,
        f"Best vectors are due for "
        f"{facts.due_vectors:,} of {facts.chunks:,} chunks.": facts.due_vectors > 0,
    }
    present = [what for what, is_so in due.items() if is_so]
    # A repair sends nothing to a paid service; `clawmark index` does.
    is_sent = bool(parts.embedders) and parts.embedders[-1].traits.remote
    if present and fix:
        sync(SyncRequest(instant_only=is_sent))
    for what in present:
        is_fixed = fix and not (is_sent and what.startswith("Best vectors"))
        step = "" if is_fixed else "clawmark index"
        yield _note(what, step)._replace(fixed=is_fixed)
    if not present:
        yield _ok("Every file is indexed.")


def probe_finding(probe: Probe) -> Finding:
    """Turn the outcome of a probe into a finding."""
    subject = probe.part.capitalize()
    if probe.state == "failed":
        return _problem(f"{subject}: {probe.name} does not work: {probe.reason}", probe.next_step)
    if probe.state == "off":
        return _note(f"{subject}: not used ({probe.reason}).")
    if probe.part == "backend":
        return _ok(f"{subject}: {probe.name} {probe.model} answers.")
    if probe.part == "spaces":
        return _ok(f"{subject}: {probe.name} in {probe.milliseconds:.0f} ms.")
    what = (
        f"{probe.name} made a vector of {probe.dims} numbers"
        if probe.dims
        else f"{probe.name} scored two known vectors"
    )
    return _ok(f"{subject}: {what} in {probe.milliseconds:.0f} ms.")


def _embedder(embedders: Sequence[Embedder], facts: Status) -> Iterator[Finding]:
    """Report the configured embedder, without calling it."""
    if facts.degraded is not None:
        yield _note(facts.degraded.reason, facts.degraded.fix)
    if not embedders:
        yield _ok(f"Embedder: {facts.embedder} ({facts.embedder_reason}).")
        return
    label = embedders[-1].traits.label
    what = f"Embedder: {label} is configured ({facts.embedder_reason}); it was not called."
    yield _note(what, "`clawmark doctor --probe` embeds one word with it.")
    for embedder in embedders:
        refusal = getattr(embedder, "refusal", None)
        trouble = getattr(embedder, "trouble", "")
        if refusal is not None:
            yield _problem(refusal.reason, refusal.fix)
        elif trouble:
            label = embedder.traits.label
            yield _problem(
                f"{label} failed a moment ago: {trouble}", "`clawmark index` asks it again at once."
            )


def _engine(state_dir: str, facts: Status) -> Iterator[Finding]:
    if not facts.sqlite_safe:
        yield _problem(
            f"SQLite {facts.sqlite_version} can lose commits (WAL-reset bug).",
            "pip install --upgrade apsw",
        )
    if facts.shared_disk:
        what = (
            f"The index is on {facts.shared_disk}, which other machines "
            f"may share: searches may wait for a writer."
        )
        yield _note(what, "Choose a folder on a local disk with --state-dir.")
    if facts.containment != "descriptor":
        yield _note(
            "This system cannot open files by descriptor; paths are checked by name instead."
        )
    folder = state_dir if os.path.isdir(state_dir) else os.path.dirname(state_dir)
    if not os.access(folder, os.W_OK):
        yield _problem(
            f"{state_dir} cannot be written to.", "Choose another folder with --state-dir."
        )


def _private(index_path: str, *, fix: bool) -> Iterator[Finding]:
    """Check that the index, which holds the text of the notes, is readable by its owner only."""
    if not hasattr(os, "geteuid"):  # Windows has other permissions
        return
    folder = os.path.dirname(index_path)
    modes = {
        path: info
        for path in (folder, *(index_path + end for end in SUFFIXES))
        if (info := _stat(path))
    }
    is_ours = all(info.st_uid == os.geteuid() for info in modes.values())
    if not is_ours:
        what = (
            f"{folder} or an index in it belongs to another user: files "
            f"written by one may not be readable by the other."
        )
        yield _note(what, "Run Clawmark as one user, or give each a --state-dir.")
    is_open = [path for path, info in modes.items() if info.st_mode & 0o077]
    if not is_open:
        return
    fixed = fix and is_ours
    for path in is_open if fixed else ():
        os.chmod(path, modes[path].st_mode & 0o700)
    yield Finding(
        level="problem",
        what=f"Other users of this machine may open {is_open[0]}.",
        next_step="" if fixed else f"chmod -R go= {folder}",
        fixed=fixed,
    )


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None
