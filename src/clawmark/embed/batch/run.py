"""Large first indexes through a provider's batch jobs: due texts in, vectors out, for half the
price and in one order.

One job takes the whole delta, or as many as the provider's limits make of it. Every job is written
down before it can cost anything, so a killed run is taken up where it was; every vector is stored
as soon as it is checked. What a job did not give is left to plain calls, and jobs that keep failing
are given up for the run. Embedding by plain calls, and when a batch is worth it, is left to the
caller."""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from clawmark.embed.batch import gemini as batch_gemini
from clawmark.embed.batch import openai as batch_openai
from clawmark.embed.batch import order as batch_order
from clawmark.embed.batch.calls import Calls, Dialect, Job
from clawmark.embed.batch.collect import Collector
from clawmark.embed.batch.state import Entry, Register, hashes_in
from clawmark.embed.services.wire import Provider, provider_key
from clawmark.model.errors import EmbeddingError, EmbeddingRejected, EmbeddingUnavailable
from clawmark.model.values import Vector
from clawmark.net.retry import Policy
from clawmark.system import shared_json as statefile
from clawmark.text.chunking.tokens import estimate_tokens
from clawmark.text.secrets.redact import Redactor

if TYPE_CHECKING:
    from clawmark.embed.services.ledger import Ledger
    from clawmark.net.client import HttpClient

MOST_FAILURES = 2
MOST_TROUBLES = 3
"""Polls in a row without an answer, each of them retried, before a run stops waiting."""
SHORTEST_PAUSE = 0.1
LOST_SECONDS = 48 * 3600.0
"""Providers end a job after a day; one that still runs after two, or cannot be read by then, will
never be of use.
"""
FORGOTTEN_SECONDS = 30 * 86400.0
OFF = "Batch jobs are off (memorySearch.remote.batch.enabled)."
TIDYING = Policy(attempts=1, total=10.0, each=10.0)

DIALECTS: dict[str, Callable[[Provider], Dialect]] = {
    "openai": batch_openai.dialect,
    "gemini": batch_gemini.dialect,
    "voyage": batch_openai.voyage_dialect,
}


class BatchOptions(NamedTuple):
    """`memorySearch.remote.batch`, complete."""

    enabled: bool
    wait: bool = True
    """False: jobs are handed in and looked after once; what they cover stays due until a later run.
    """
    concurrency: int = 2
    poll_ms: int = 2000
    timeout_minutes: int = 60
    smallest: int = 200
    """Fewer due texts are not worth a job."""


class BatchOutcome(NamedTuple):
    """What became of the texts, by hash; every one of them is in exactly one of the three."""

    vectors: dict[str, Vector]
    failed: tuple[str, ...]
    """Left to plain calls."""
    reason: str
    """Why batch jobs were not used, or did not do all of it; empty when they did."""
    waiting: tuple[str, ...] = ()
    """Covered by jobs that are still under way and will be paid for: no plain calls for these, the
    next run has them.
    """


def run_batches(
    provider: Provider,
    texts: Mapping[str, str],
    options: BatchOptions,
    *,
    folder: str,
    client: HttpClient,
    store: Callable[[dict[str, Vector]], None],
    progress: Callable[[int, int], None],
    ledger: Ledger | None = None,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
    now: Callable[[], float] = time.time,
) -> BatchOutcome:
    """Embed the texts (by hash) with batch jobs as far as they go; raises only what `store` and
    `progress` raise.

    `folder` belongs to one index: a job taken up again stores its vectors there and nowhere else.
    """
    key = provider_key(provider.key_facts)
    path = os.path.join(folder, f"{key}.json")
    identity = (provider.name, provider.model, key)
    reason = _reason_not_to(provider, texts, options, path)
    if reason:
        return BatchOutcome({}, tuple(texts), reason)
    with contextlib.ExitStack() as stack:
        try:
            is_held = stack.enter_context(statefile.locked(path, 0.0))
        except OSError as error:
            return BatchOutcome(
                {}, tuple(texts), f"The folder for batch jobs cannot be used: {error.strerror}."
            )
        if not is_held:
            theirs = hashes_in(path, identity)
            return BatchOutcome(
                vectors={},
                failed=tuple(text for text in texts if text not in theirs),
                reason="Another process waits for batch jobs of this provider.",
                waiting=tuple(text for text in texts if text in theirs),
            )
        calls = Calls(provider=provider, client=client, sleep=sleep, clock=clock)
        return _Run(
            calls,
            texts,
            options,
            Register(path, identity),
            store,
            progress,
            ledger,
            sleep,
            clock,
            now,
        ).go()


def _reason_not_to(
    provider: Provider, texts: Mapping[str, str], options: BatchOptions, path: str
) -> str:
    if provider.name not in DIALECTS:
        return f"{provider.name} has no batch jobs."
    # Whatever the settings say now, jobs that are under way are paid for.
    if os.path.lexists(path):
        return ""
    if not options.enabled:
        return OFF
    return f"{len(texts)} texts are not worth a batch job." if len(texts) < options.smallest else ""


class _Wait:
    """A job under way, since when this run waits for it, and how much of it is done by its own
    account.
    """

    def __init__(self, entry: Entry, since: float) -> None:
        self.entry = entry
        self.since = since
        self.done = 0


class _Run:
    """One run: what is under way, what is left to hand in, and what came of it."""

    def __init__(
        self,
        calls: Calls,
        texts: Mapping[str, str],
        options: BatchOptions,
        register: Register,
        store: Callable[[dict[str, Vector]], None],
        progress: Callable[[int, int], None],
        ledger: Ledger | None,
        sleep: Callable[[float], None],
        clock: Callable[[], float],
        now: Callable[[], float],
    ) -> None:
        self._provider = calls.provider
        self._dialect = DIALECTS[calls.provider.name](calls.provider)
        self._calls, self._texts, self._options, self._register = calls, texts, options, register
        self._collector = Collector(
            calls=calls, dialect=self._dialect, dims=calls.provider.dims, store=store
        )
        self._progress, self._ledger = progress, ledger
        self._sleep, self._clock, self._now = sleep, clock, now
        self._rest: deque[str] = deque()
        self._active: list[_Wait] = []
        self._vectors: dict[str, Vector] = {}
        self._settled, self._reported = 0, -1
        self._troubles = self._failures = 0
        self._is_off = not options.enabled
        self._reason = "" if options.enabled else OFF

    def go(self) -> BatchOutcome:
        self._register.load()
        self._take_up()
        covered = {text for entry in self._register.entries for text in entry.hashes}
        self._rest.extend(text for text in self._texts if text not in covered)
        while True:
            self._hand_in()
            has_news = self._look_after()
            if not self._active and not self._rest:
                break
            if not has_news:
                if not self._options.wait or self._troubles >= MOST_TROUBLES:
                    break
                self._sleep(max(self._options.poll_ms / 1000, SHORTEST_PAUSE))
        under_way = {
            text for entry in self._register.entries for text in entry.hashes
        } - self._vectors.keys()
        failed = tuple(
            text for text in self._texts if text not in self._vectors and text not in under_way
        )
        return BatchOutcome(
            vectors=self._vectors,
            failed=failed,
            reason=self._reason,
            waiting=tuple(text for text in self._texts if text in under_way),
        )

    # --- jobs that an earlier run left

    def _take_up(self) -> None:
        """Wait for what is under way already; sweep what is done, was never sent, or belongs to
        texts long gone.
        """
        gone = []
        for entry in list(self._register.entries):
            if entry.is_done or not entry.upload:
                self._tidy(entry)
                gone.append(entry)
            elif self._texts.keys().isdisjoint(entry.hashes):
                gone += [entry] if self._now() - entry.since > FORGOTTEN_SECONDS else []
            elif entry.job:
                self._active.append(_Wait(entry, self._clock()))
            else:
                self._start(entry, may_exist=True)
        self._register.drop(gone)

    # --- new jobs

    def _hand_in(self) -> None:
        # Who does not wait has no turn to come back for the rest.
        most = max(1, self._options.concurrency) if self._options.wait else len(self._texts)
        while self._rest and not self._is_off and len(self._active) < most:
            if len(self._rest) < self._options.smallest:
                self._reason = self._reason or f"{len(self._rest)} texts are not worth a batch job."
                self._rest.clear()
            else:
                self._submit()
        if self._is_off:
            self._rest.clear()

    def _submit(self) -> None:
        hashes, body = batch_order.pack(self._rest, self._texts, self._calls, self._dialect)
        # Planned before it is sent: another process then leaves these texts alone.
        entry = Entry(hashes, self._now())
        try:
            self._allow(self._tokens(entry))
        except EmbeddingUnavailable as error:
            return self._turn_off(error.message)
        if not self._register.add(entry):
            self._register.drop([entry])
            return self._turn_off("The folder for batch jobs cannot be written to.")
        try:
            upload = self._dialect.upload(self._calls, body)
        except EmbeddingError as error:
            return self._give_up(entry, error)
        entry = self._register.replace(entry, entry._replace(upload=upload))
        return self._start(entry, may_exist=False)

    def _allow(self, tokens: int) -> None:
        if self._ledger is not None:
            self._ledger.allow(tokens)

    def _tokens(self, entry: Entry) -> int:
        return sum(
            estimate_tokens(self._texts[text]) for text in entry.hashes if text in self._texts
        )

    def _start(self, entry: Entry, *, may_exist: bool) -> None:
        """Make a job of an upload, or find the one that was made of it."""
        job = ""
        try:
            if may_exist:
                job = batch_order.find(self._calls, self._dialect, entry.upload)
            if not job:
                if may_exist:
                    self._allow(self._tokens(entry))
                job = batch_order.create(self._calls, self._dialect, entry.upload, self._sleep)
        except EmbeddingError as error:
            return self._give_up(entry, error)
        except batch_order.Unsure as error:
            return self._fail(str(error))
        self._active.append(
            _Wait(self._register.replace(entry, entry._replace(job=job)), self._clock())
        )
        if self._ledger is not None:
            self._ledger.record(
                self._provider.name, self._provider.model, 1, len(entry.hashes), self._tokens(entry)
            )
            self._ledger.flush()
        return None

    def _give_up(self, entry: Entry, error: EmbeddingError) -> None:
        """There is no job and will be none: its texts go to plain calls."""
        status = self._calls.status
        self._register.drop([entry])
        self._tidy(entry)
        if status in (404, 405) and isinstance(error, EmbeddingRejected):
            self._turn_off(
                f"{self._provider.name} has no batch jobs at this address (status {status})."
            )
        else:
            self._fail(error.message)

    # --- jobs under way

    def _look_after(self) -> bool:
        """Ask after every job once; whether one of them is not under way any more."""
        before = len(self._active)
        for wait in list(self._active):
            try:
                job = self._dialect.poll(self._calls, wait.entry.job)
            except EmbeddingError as error:
                self._trouble(wait, error)
                continue
            self._troubles = 0
            if job.state != "running":
                self._finish(wait, job)
                continue
            wait.done = min(job.done, len(wait.entry.hashes))
            if self._is_lost(wait.entry):
                self._finish(wait, Job("failed", reason="it runs for more than two days"))
            elif self._clock() - wait.since > self._options.timeout_minutes * 60:
                self._active.remove(wait)
                minutes = self._options.timeout_minutes
                self._fail(
                    f"A batch job was not done within {minutes} minutes; the next sync takes it "
                    f"up again."
                )
        self._report()
        return len(self._active) < before

    def _trouble(self, wait: _Wait, error: EmbeddingError) -> None:
        """No news of a job: it is gone, or nobody can be asked now."""
        if self._calls.status in (404, 410):
            self._finish(wait, Job("failed", reason="it is gone"))
            return
        self._troubles += 1
        self._reason = error.message
        if self._troubles >= MOST_TROUBLES:
            self._turn_off(error.message)

    def _finish(self, wait: _Wait, job: Job) -> None:
        """Take in what a job gave; the files at the provider are deleted when all of it is stored."""
        entry = wait.entry
        self._active.remove(wait)
        found: dict[str, Vector] = {}
        complaint = ""
        try:
            if job.output:
                found, complaint = self._collector.collect(job.output, entry.hashes)
            elif job.errors:
                complaint = self._collector.first_complaint(job.errors)
        except EmbeddingError as error:
            if job.output and self._calls.status not in (404, 410) and not self._is_lost(entry):
                # The output is there and paid for: the next run reads it.
                return self._fail(error.message)
            complaint = error.message
        self._vectors.update(
            (text, vector) for text, vector in found.items() if text in self._texts
        )
        self._settled += sum(text in self._texts for text in entry.hashes)
        entry = self._register.replace(entry, entry._replace(output=job.output, is_done=True))
        why = Redactor(self._provider.secrets).clean(
            job.reason or complaint or "it gave no vectors"
        )
        if job.state == "failed" or not found:
            self._fail(f"A batch job of {self._provider.name} failed ({why}).")
        else:
            self._failures = 0
            if missing := len(entry.hashes) - len(found):
                self._reason = (
                    f"{missing} of {len(entry.hashes)} texts came back from "
                    f"a batch job without a vector ({why})."
                )
        self._tidy(entry, job.errors)
        self._register.drop([entry])
        return None

    def _is_lost(self, entry: Entry) -> bool:
        return self._now() - entry.since > LOST_SECONDS

    def _tidy(self, entry: Entry, errors: str = "") -> None:
        """Delete our texts and vectors at the provider; no harm when that fails, so nobody is told."""
        for file in (entry.upload, entry.output, errors):
            if file:
                with contextlib.suppress(EmbeddingError):
                    self._calls.json("DELETE", self._dialect.discard(file), policy=TIDYING)

    # --- what is said about it

    def _report(self) -> None:
        done = min(len(self._texts), self._settled + sum(wait.done for wait in self._active))
        # A provider that counts backwards, or a job that failed, is no reason for the bar to go
        # back.
        if done > self._reported:
            self._reported = done
            self._progress(done, len(self._texts))

    def _fail(self, reason: str) -> None:
        self._failures += 1
        self._reason = reason
        if self._failures >= MOST_FAILURES:
            self._turn_off(reason)

    def _turn_off(self, reason: str) -> None:
        self._is_off = True
        self._reason = f"Batch jobs are off for this run: {reason}"
