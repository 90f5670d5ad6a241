"""Explains what is wrong and, when asked, does what is safe: set a damaged index aside, index what
is due, finish a tier.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from clawmark.backends.builtin import BuiltinBackend
from clawmark.config.paths import Places
from clawmark.config.schema import Loaded
from clawmark.embed.base import Choice
from clawmark.engine.maintenance.repair import BROKEN, heal
from clawmark.engine.maintenance.status import status
from clawmark.engine.sync.run import SyncRequest
from clawmark.model.errors import ClawmarkError, IndexDamaged, NotText, WorkspaceError
from clawmark.model.reports import Finding, Probe, Status
from clawmark.store.sqlite.schema import FIX_HINT

SHOWN = 5
SUFFIXES = ("", "-wal", "-shm")
"""The index, its log and the memory shared over it."""


def examine(
    backend: BuiltinBackend,
    places: Places,
    loaded: Loaded,
    choice: Choice,
    *,
    fix: bool,
    probes: Sequence[Probe] = (),
) -> list[Finding]:
    """Every finding in the order a person would look: configuration, files, index, embedder,
    engine.

    Without `probes` nothing is said to work that was not asked.
    """
    findings = [
        Finding("problem", warning, "Correct the key or remove it.") for warning in loaded.warnings
    ]
    healed = _heal(backend, places, fix=fix)
    findings.extend(healed)
    if any(finding.level == "problem" and not finding.fixed for finding in healed):
        return findings
    facts = status(backend.parts, places, loaded, choice)
    findings.extend(_files(backend, facts))
    findings.extend(_due(backend, facts, fix=fix))
    if not facts.search_enabled:
        findings.append(
            Finding(
                "note",
                "Memory search is switched off.",
                "Set memorySearch.enabled to true to search.",
            )
        )
    findings.extend(
        [probe_finding(probe) for probe in probes] if probes else _embedder(backend, facts)
    )
    findings.extend(_engine(places, facts))
    findings.extend(_private(places, fix=fix))
    return findings


def _heal(backend: BuiltinBackend, places: Places, *, fix: bool) -> list[Finding]:
    """A damaged or foreign index is set aside and built again from the files: nothing in it is
    irreplaceable.
    """
    try:
        with backend.parts.store.reading(thorough=True) as reader:
            problems = reader.integrity_problems()
            if problems:
                # Raised inside the snapshot, so that the index knows which file it was.
                raise IndexDamaged(
                    f"The index {places.index_path} is damaged ({problems[0]}).", hint=FIX_HINT
                )
        return [Finding("ok", "The index is sound.", "")]
    except BROKEN as raised:
        error: ClawmarkError = raised
    if not fix:
        next_step = (
            "`clawmark index` and every search set it aside and build "
            "it again; so does `clawmark doctor --fix`."
        )
        return [Finding("problem", error.message, next_step)]
    healed = heal(backend.parts.store, error)
    report = backend.sync(SyncRequest(instant_only=True))
    return [
        Finding(
            "problem",
            f"{healed or error.message} Files indexed again: {report.added}.",
            "",
            fixed=True,
        )
    ]


def _files(backend: BuiltinBackend, facts: Status) -> Iterator[Finding]:
    if not os.path.isdir(facts.workspace):
        yield Finding(
            "problem",
            f"The workspace {facts.workspace} does not exist.",
            f"clawmark init {facts.workspace}",
        )
        return
    for failure in facts.scan_failures:
        where = failure.path or facts.workspace
        yield Finding(
            "problem",
            f"{where} could not be listed: {failure.reason}",
            "Nothing below it was taken for deleted; mend it.",
        )
    if facts.due_files:
        yield from _unreadable(backend)
    if facts.skipped:
        some = "; ".join(f"{skipped.path}: {skipped.reason}" for skipped in facts.skipped[:SHOWN])
        more = f" and {len(facts.skipped) - SHOWN} more" if len(facts.skipped) > SHOWN else ""
        yield Finding(
            "note",
            f"Left alone: {len(facts.skipped):,} ({some}{more}).",
            "clawmark status --verbose lists all.",
        )
    linked = backend.parts.workspace.hard_linked(backend.parts.workspace.scan())
    if linked:
        yield Finding(
            "note",
            f"Files with other names elsewhere (hard links): {len(linked):,} "
            f"({', '.join(linked[:SHOWN])}).",
            "",
        )
    if not facts.files and not facts.due_files:
        yield Finding(
            "note", "There is no memory yet.", 'clawmark remember "something worth keeping"'
        )


def _unreadable(backend: BuiltinBackend) -> Iterator[Finding]:
    """Files that stay due because nobody can read them: no sync would help."""
    workspace = backend.parts.workspace
    plan, _ = backend.plan()
    for state in (*plan.add, *plan.check):
        try:
            if state.source == "sessions" and workspace.sessions is not None:
                with workspace.sessions.open(state.path):
                    continue
            workspace.read_document(state)
        except (NotText, FileNotFoundError):  # known as soon as it is indexed, or gone
            continue
        except WorkspaceError as error:
            yield Finding("problem", error.message, error.hint)


def _due(backend: BuiltinBackend, facts: Status, *, fix: bool) -> Iterator[Finding]:
    due = {
        f"Not indexed yet: {facts.due_files:,} of the files.": facts.due_files > 0,
        "A rebuild was interrupted; the old generation answers.": facts.rebuilding,
        f"Best vectors are due for "
        f"{facts.due_vectors:,} of {facts.chunks:,} chunks.": facts.due_vectors > 0,
    }
    present = [what for what, is_so in due.items() if is_so]
    embedders = backend.parts.embedders
    # Sending notes to a service, and paying for it, is no repair: whoever wants that says `clawmark
    # index`.
    is_sent = bool(embedders) and embedders[-1].traits.remote
    if present and fix:
        backend.sync(SyncRequest(instant_only=is_sent))
    for what in present:
        is_fixed = fix and not (is_sent and what.startswith("Best vectors"))
        yield Finding("note", what, "" if is_fixed else "clawmark index", fixed=is_fixed)
    if not present:
        yield Finding("ok", "Every file is indexed.", "")


def probe_finding(probe: Probe) -> Finding:
    """What a probe found, as a finding."""
    subject = "Embeddings" if probe.part == "embeddings" else "Vectors"
    if probe.state == "failed":
        return Finding(
            "problem", f"{subject}: {probe.name} does not work: {probe.reason}", probe.next_step
        )
    if probe.state == "off":
        return Finding("note", f"{subject}: not used ({probe.reason}).", "")
    what = (
        f"{probe.name} made a vector of {probe.dims} numbers"
        if probe.dims
        else f"{probe.name} scored two known vectors"
    )
    return Finding("ok", f"{subject}: {what} in {probe.milliseconds:.0f} ms.", "")


def _embedder(backend: BuiltinBackend, facts: Status) -> Iterator[Finding]:
    """What is configured to make vectors; whether it answers is not known without asking it."""
    if facts.degraded is not None:
        yield Finding("note", facts.degraded.reason, facts.degraded.fix)
    embedders = backend.parts.embedders
    if not embedders:
        yield Finding("ok", f"Embedder: {facts.embedder} ({facts.embedder_reason}).", "")
        return
    label = embedders[-1].traits.label
    what = f"Embedder: {label} is configured ({facts.embedder_reason}); it was not asked."
    yield Finding("note", what, "`clawmark doctor --probe` embeds one word with it.")
    for embedder in embedders:
        refusal = getattr(embedder, "refusal", None)
        trouble = getattr(embedder, "trouble", "")
        if refusal is not None:
            yield Finding("problem", refusal.reason, refusal.fix)
        elif trouble:
            label = embedder.traits.label
            yield Finding(
                "problem",
                f"{label} failed a moment ago: {trouble}",
                "`clawmark index` asks it again at once.",
            )


def _engine(places: Places, facts: Status) -> Iterator[Finding]:
    if not facts.sqlite_safe:
        yield Finding(
            "problem",
            f"SQLite {facts.sqlite_version} can lose commits (WAL-reset bug).",
            "pip install --upgrade apsw",
        )
    if facts.shared_disk:
        what = (
            f"The index is on {facts.shared_disk}, which other machines "
            f"may share: searches may wait for a writer."
        )
        yield Finding("note", what, "Choose a folder on a local disk with --state-dir.")
    if facts.containment != "descriptor":
        yield Finding(
            "note",
            "This system cannot open files by descriptor; paths are checked by name instead.",
            "",
        )
    if not os.access(
        places.state_dir if os.path.isdir(places.state_dir) else os.path.dirname(places.state_dir),
        os.W_OK,
    ):
        yield Finding(
            "problem",
            f"{places.state_dir} cannot be written to.",
            "Choose another folder with --state-dir.",
        )


def _private(places: Places, *, fix: bool) -> Iterator[Finding]:
    """The index holds what the notes say, and is meant for their owner alone; Windows has other
    permissions.
    """
    if not hasattr(os, "geteuid"):
        return
    folder = os.path.dirname(places.index_path)
    modes = {
        path: info
        for path in (folder, *(places.index_path + end for end in SUFFIXES))
        if (info := _stat(path))
    }
    is_ours = all(info.st_uid == os.geteuid() for info in modes.values())
    if not is_ours:
        what = (
            f"{folder} or an index in it belongs to another user: what "
            f"one of you writes the other may not read."
        )
        yield Finding("note", what, "Run Clawmark as one user, or give each a --state-dir.")
    is_open = [path for path, info in modes.items() if info.st_mode & 0o077]
    if not is_open:
        return
    fixed = fix and is_ours
    for path in is_open if fixed else ():
        os.chmod(path, modes[path].st_mode & 0o700)
    step = "" if fixed else f"chmod -R go= {folder}"
    yield Finding(
        "problem", f"Other users of this machine may open {is_open[0]}.", step, fixed=fixed
    )


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None
