"""Runs a whole sync: scan, plan, apply the text, then fill the vector spaces.

The spaces are filled from the instant embedder to the best one. The caller passes the parts and the
time limit; what is left is counted in the report. A rebuild makes the next generation next to the
one that answers and publishes it when it is complete; a killed rebuild is continued."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from clawmark.embed.base import Embedder
from clawmark.engine.sync.outcome import TextReport, VectorReport, add_reports
from clawmark.engine.sync.plan import (
    changed_since,
    flag_lost_roots,
    newest_first,
    plan_sync,
    roots_to_store,
)
from clawmark.engine.sync.scan import FEW_CHUNKS, SyncParts, SyncRequest, look
from clawmark.engine.sync.time_left import with_time_left
from clawmark.model.errors import EmbeddingError
from clawmark.model.sync_report import Progress, SyncReport
from clawmark.model.values import Degraded, FileState, Scan, Skipped, SyncPlan

if TYPE_CHECKING:
    from clawmark.store.base import WriteTransaction

# Files may change while a rebuild runs. After this many scans it is published, and the rest is left
# to an ordinary sync.
REBUILD_PASSES = 3
MOST_NAMED = 10_000
"""Above this many changed files, what the index has of all files is read, not of these alone."""
MOST_RECORDED = 500
"""New files whose text a sync hands to `on_text`; more are a workspace that was there before."""


def run_sync(parts: SyncParts, request: SyncRequest) -> SyncReport:
    """Make the index match the disk; `status` reports the running sync in every process."""
    show_caller = with_time_left(request.progress) if request.progress is not None else None
    facts = {"reason": request.reason, "startedAt": parts.now_ns() // 1_000_000}
    with parts.store.record_sync(facts) as record:
        if request.seconds is None:
            record()

        def show(progress: Progress) -> None:
            record(stage=progress.stage, done=progress.done, total=progress.total)
            if show_caller is not None:
                show_caller(progress)

        return _run(parts, request._replace(progress=show))


def _run(parts: SyncParts, request: SyncRequest) -> SyncReport:
    started = time.monotonic()
    deadline = None if request.seconds is None else started + request.seconds

    def out_of_time() -> bool:
        return (deadline is not None and time.monotonic() > deadline) or _is_cancelled(request)

    if request.seconds is None:
        parts.store.check(timeout=request.lock_timeout)
    with parts.store.snapshot() as snapshot:
        is_chunked_alike = snapshot.facts("identity").get("chunker") == parts.chunker.name
        has_chunks, building = snapshot.count_chunks() > 0, snapshot.building
        is_empty = not has_chunks and not snapshot.files(which="unsearched")
    if is_empty and not is_chunked_alike:
        # Written before the first file, so that a second process does not take the first for an
        # index of another kind.
        with parts.store.transaction(timeout=request.lock_timeout) as transaction:
            transaction.set_facts("identity", parts.identity())
    is_stale = has_chunks and not is_chunked_alike
    # A search has no time for a rebuild, and what it adds must be found at once, so it changes the
    # generation that answers.
    if request.force or (request.seconds is None and (is_stale or building)):
        scan, plan, text, built = _rebuild(parts, request, out_of_time)
    else:
        built = []
        scan, plan = request.look(parts)
        plan, left = _requested_part(parts, request, plan)
        text = _apply(parts, request, plan, out_of_time)
        text = text._replace(due_files=text.due_files + left)
        if text.added + text.updated + text.deleted:
            # Before the vectors, which may take long: deleted text is gone, and keyword search is
            # fast.
            _tidy(parts, request, force=text.deleted > 0)
    if request.seconds is None and parts.embedders:
        parts.store.recover_vectors(timeout=request.lock_timeout)
    if request.seconds is None:
        parts.workspace.sweep(scan)
    vectors = (
        [] if request.since_ns else _add_vector_reports(built, _fill(parts, request, out_of_time))
    )
    generation = _store_summary(parts, request, text, vectors, scan, started)
    _tidy(parts, request)
    return SyncReport(
        added=text.added,
        updated=text.updated,
        touched=text.touched,
        deleted=text.deleted,
        unchanged=plan.unchanged,
        chunks=text.chunks,
        embedded=sum(report.embedded for report in vectors),
        reused=sum(report.reused for report in vectors),
        skipped=(*scan.skipped, *text.skipped, *_refused(vectors)),
        failures=text.failures,
        scan_failures=scan.failures,
        due_files=text.due_files + text.unread,
        due_vectors=vectors[len(parts.embedders) - 1].due
        if len(vectors) >= len(parts.embedders) > 0
        else 0,
        generation=generation,
        degraded=_degraded(parts, vectors),
        seconds=time.monotonic() - started,
        jobs=next((report.jobs for report in vectors if report.jobs), ""),
    )


def _apply(
    parts: SyncParts,
    request: SyncRequest,
    plan: SyncPlan,
    out_of_time: Callable[[], bool],
    *,
    building: int = 0,
) -> TextReport:
    if not (plan.due or plan.recheck):
        return TextReport()
    # Imported late: a sync that finds nothing to do reads and cuts no text.
    from clawmark.engine.sync.text import CHUNKS_AT_ONCE, FEWEST_AT_ONCE, apply_text

    plan = plan._replace(add=tuple(newest_first(plan.add)))
    paths = [state.path for state in (*plan.add, *plan.check, *plan.recheck)]
    with parts.store.snapshot() as snapshot:
        answering = snapshot.files(paths if len(paths) <= MOST_NAMED else None)
        indexed = snapshot.files(which="rebuilt") if building else answering
        held = snapshot.count_chunks() if building else 0
    most = CHUNKS_AT_ONCE if request.seconds is None else CHUNKS_AT_ONCE // 2
    plan, transcripts = _split_transcripts(plan)
    text = apply_text(
        plan,
        indexed,
        answering=answering,
        reader=parts.workspace,
        media=parts.media,
        store=parts.store,
        chunker=parts.chunker,
        now_ns=parts.now_ns,
        progress=request.progress or _silent,
        out_of_time=out_of_time,
        building=building,
        lock_timeout=request.lock_timeout,
        at_once=max(FEWEST_AT_ONCE, min(most, held // 25)) if building else most,
        on_text=parts.on_text if len(plan.add) <= MOST_RECORDED else None,
    )
    if not transcripts or parts.workspace.sessions is None:
        return text
    # Imported late: most syncs have no transcripts.
    from clawmark.engine.sync.transcripts import Work, apply_transcripts

    work = Work(
        sessions=parts.workspace.sessions,
        store=parts.store,
        chunker=parts.chunker,
        now_ns=parts.now_ns,
        out_of_time=out_of_time,
        building=building,
        lock_timeout=request.lock_timeout,
    )
    return add_reports(
        text, apply_transcripts(transcripts, indexed, work, request.progress or _silent)
    )


def _split_transcripts(plan: SyncPlan) -> tuple[SyncPlan, list[FileState]]:
    """Split a plan into the part for memory files and the transcripts."""
    parts = (plan.add, plan.check, plan.recheck)
    transcripts = [state for states in parts for state in states if state.source == "sessions"]
    if not transcripts:
        return plan, transcripts
    add, check, recheck = (
        tuple(state for state in states if state.source != "sessions") for states in parts
    )
    return plan._replace(add=add, check=check, recheck=recheck), transcripts


def _requested_part(parts: SyncParts, request: SyncRequest, plan: SyncPlan) -> tuple[SyncPlan, int]:
    """Return the part of the plan that this request covers, and how many files it leaves due."""
    if request.deltas:
        return _without_small_growth(parts, plan)
    if not request.since_ns:
        return plan, 0
    part = changed_since(plan, request.since_ns)
    return part, plan.due - part.due


def _without_small_growth(parts: SyncParts, plan: SyncPlan) -> tuple[SyncPlan, int]:
    """Return the plan without transcripts that grew by little, and how many those are."""
    if parts.workspace.sessions is None or parts.deltas is None:
        return plan, 0
    # Imported late: as above.
    from clawmark.engine.sync.transcript_progress import leave_small_growth

    with parts.store.snapshot() as snapshot:
        return leave_small_growth(plan, snapshot.files(), parts.workspace.sessions, parts.deltas)


def _rebuild(
    parts: SyncParts, request: SyncRequest, out_of_time: Callable[[], bool]
) -> tuple[Scan, SyncPlan, TextReport, list[VectorReport]]:
    """Build the next generation; the old one answers until the new one is complete.

    The returned plan counts as unchanged what an interrupted rebuild had made before."""
    # Imported late: rebuilds are rare.
    from clawmark.engine.sync.publish import publish

    store = parts.store
    building = store.begin_rebuild(
        parts.identity(), timeout=request.lock_timeout, cancelled=request.cancelled
    )
    if not building:
        scan, plan = look(parts)
        return scan, plan, TextReport(due_files=plan.due), []
    total, known = TextReport(), 0
    for number in range(REBUILD_PASSES):
        with store.snapshot() as snapshot:
            built = {path: row[3:8] for path, row in snapshot.files(which="rebuilt").items()}
            answering, unsearched = snapshot.stats(), snapshot.files(which="unsearched")
            roots = snapshot.facts("roots")
        scan = parts.workspace.scan()
        scan = scan if request.force else flag_lost_roots(scan, roots)
        plan = plan_sync(scan, built)
        known = known if number else plan.unchanged
        # An interrupted rebuild may hold files that the answering generation never had. Files of a
        # source that is not searched do not go into the next generation.
        gone = sorted({*plan.delete, *plan_sync(scan, answering).delete, *unsearched})
        report = _apply(
            parts,
            request,
            plan._replace(delete=tuple(gone), was=(), recheck=()),
            out_of_time,
            building=building,
        )
        total = add_reports(total._replace(failures=(), due_files=0, unread=0), report)
        if report.due_files:
            return scan, plan._replace(unchanged=known), total, []
        if plan.due == len(report.failures):
            break
    plan = plan._replace(unchanged=known)
    vectors = _fill(parts, request, out_of_time)
    if _is_cancelled(request):
        return scan, plan, total, vectors
    publish(store, building, request.lock_timeout)
    _tidy(parts, request, force=True)
    return scan, plan, total, vectors


def _add_vector_reports(
    before: Sequence[VectorReport], after: Sequence[VectorReport]
) -> list[VectorReport]:
    """Return the later reports of the same spaces with the earlier counts added."""
    return [
        two._replace(
            embedded=one.embedded + two.embedded,
            reused=one.reused + two.reused,
            jobs=two.jobs or one.jobs,
            refused=(*one.refused, *two.refused),
        )
        for one, two in zip_longest(before, after, fillvalue=VectorReport())
    ]


def _fill(
    parts: SyncParts, request: SyncRequest, out_of_time: Callable[[], bool]
) -> list[VectorReport]:
    """Fill the spaces in order, and a fallback space if the best embedder failed."""
    reports = []
    for number, embedder in enumerate(parts.embedders):
        if _is_cancelled(request):
            break
        is_best = number == len(parts.embedders) - 1
        if number and not _may_fill(parts, request, embedder):
            continue
        if (
            request.reason == "manual"
            and request.seconds is None
            and hasattr(embedder, "forget_failures")
        ):
            embedder.forget_failures(refusal=request.force)
        reports.append(_fill_one(parts, request, embedder, out_of_time))
        if is_best and reports[-1].degraded is not None:
            reports.extend(_fill_fallbacks(parts, request, out_of_time))
    return reports


def _may_fill(parts: SyncParts, request: SyncRequest, embedder: Embedder) -> bool:
    """Return whether to fill a space.

    A sync with a time limit fills a local space that was ready once, or a very small one. It never
    calls a service."""
    if request.instant_only or request.seconds is None:
        return not request.instant_only
    if embedder.traits.remote:
        return False
    with parts.store.snapshot() as snapshot:
        ready = {space.identity for space in snapshot.spaces() if space.ready}
        return embedder.identity in ready or snapshot.count_chunks() <= FEW_CHUNKS


def _fill_fallbacks(
    parts: SyncParts, request: SyncRequest, out_of_time: Callable[[], bool]
) -> Iterator[VectorReport]:
    """Fill fallback spaces until one works."""
    for embedder in parts.fallbacks:
        report = _fill_one(parts, request, embedder, out_of_time)
        yield report
        if report.degraded is None:
            return


def _fill_one(
    parts: SyncParts, request: SyncRequest, embedder: Embedder, out_of_time: Callable[[], bool]
) -> VectorReport:
    if _is_complete(parts, embedder):
        return VectorReport()
    # Imported late: a complete space needs neither threads nor vector arithmetic.
    from clawmark.engine.sync.vectors import fill_space

    return fill_space(
        embedder,
        store=parts.store,
        progress=request.progress or _silent,
        out_of_time=out_of_time,
        lock_timeout=request.lock_timeout,
        media=parts.media.find(parts.store, embedder) if parts.media is not None else None,
    )


def _refused(vectors: Sequence[VectorReport]) -> list[Skipped]:
    return [skipped for report in vectors for skipped in report.refused]


def _is_complete(parts: SyncParts, embedder: Embedder) -> bool:
    """Check without the write lock, so that a sync with nothing to do writes and loads nothing."""
    try:
        identity = embedder.identity
    except EmbeddingError:
        return False
    with parts.store.snapshot() as snapshot:
        spaces = [space for space in snapshot.spaces() if space.identity == identity]
        return bool(spaces) and spaces[0].ready and snapshot.count_due(spaces[0].id) == 0


def _store_summary(
    parts: SyncParts,
    request: SyncRequest,
    text: TextReport,
    vectors: Sequence[VectorReport],
    scan: Scan,
    started: float,
) -> int:
    """Store the identity and a summary for `status`, unless nothing changed and nothing is new."""
    changed = (
        text.added
        + text.updated
        + text.deleted
        + sum(report.embedded + report.reused for report in vectors)
    )
    with parts.store.snapshot() as snapshot:
        stored, last = snapshot.facts("identity"), snapshot.facts("last_sync")
        known, generation = snapshot.facts("roots"), snapshot.generation
        is_building = snapshot.building > 0
        roots = roots_to_store(scan, known, list(snapshot.files(which="unsearched")))
    identity = parts.identity()
    # Only a rebuild changes how the text is chunked.
    identity["chunker"] = stored.get("chunker", identity["chunker"])
    trouble = {
        "skipped": len(scan.skipped),
        "failed": len(text.failures),
        "unlisted": len(scan.failures),
    }
    is_news = changed or any(last.get(name) != count for name, count in trouble.items())
    if is_news or stored != identity or roots != known:
        with parts.store.transaction(timeout=request.lock_timeout) as transaction:
            if not is_building:
                transaction.set_facts("identity", identity)
            _drop_other_spaces(parts, transaction)
            transaction.set_facts("roots", roots)
            transaction.set_facts(
                "last_sync",
                {
                    "at": parts.now_ns() // 1_000_000,
                    "reason": request.reason,
                    "seconds": round(time.monotonic() - started, 3),
                    "added": text.added,
                    "updated": text.updated,
                    "deleted": text.deleted,
                    "chunks": text.chunks,
                    "embedded": sum(report.embedded for report in vectors),
                    "reused": sum(report.reused for report in vectors),
                    **trouble,
                    "lockWaits": parts.store.lock_waits,
                    "degraded": next(
                        (report.degraded.reason for report in vectors if report.degraded), ""
                    ),
                    "standIn": _fallback_label(parts, vectors),
                },
            )
        parts.store.trim_cache(timeout=request.lock_timeout)
    return generation


def _fallback_label(parts: SyncParts, vectors: Sequence[VectorReport]) -> str:
    """The label of the fallback embedder that replaced the best one, or an empty string."""
    tried = len(vectors) - len(parts.embedders)
    if tried <= 0 or vectors[-1].degraded is not None:
        return ""
    return parts.fallbacks[tried - 1].traits.label


def _drop_other_spaces(parts: SyncParts, transaction: WriteTransaction) -> None:
    """Drop the spaces of embedders that are no longer configured, once the configured ones are
    ready."""
    wanted = {embedder.identity for embedder in parts.embedders}
    kept = wanted | {embedder.identity for embedder in parts.fallbacks}
    spaces = transaction.spaces()
    if wanted <= {space.identity for space in spaces if space.ready}:
        for space in spaces:
            if space.identity not in kept:
                transaction.drop_space(space.id)


def _tidy(parts: SyncParts, request: SyncRequest, *, force: bool = False) -> None:
    """Clean up the store; a search has no time for that."""
    if request.seconds is None:
        parts.store.tidy(timeout=request.lock_timeout, cancelled=request.cancelled, force=force)


def _degraded(parts: SyncParts, vectors: Sequence[VectorReport]) -> Degraded | None:
    """Return why vectors are missing, and what a local fallback would cost: no other model is used
    unless it is configured."""
    found = next((report.degraded for report in vectors if report.degraded), None)
    if (
        found is None
        or parts.fallbacks
        or not (parts.embedders and parts.embedders[-1].traits.remote)
    ):
        return found
    # Imported late: only a service that fails needs it.
    from clawmark.embed.local.weights import TEACHER, find_pack, has_numpy

    with parts.store.snapshot() as snapshot:
        chunks = snapshot.count_chunks()
    needs = "" if find_pack(TEACHER) and has_numpy() else " and `pip install 'clawmark[local]'`"
    offer = (
        f'With memorySearch.fallback "local"{needs} {chunks:,} passages '
        f"would be embedded on this machine, at no cost."
    )
    return found._replace(fix=f"{found.fix} {offer}".strip())


def _is_cancelled(request: SyncRequest) -> bool:
    return request.cancelled is not None and request.cancelled()


def _silent(_: Progress) -> None:
    return None
