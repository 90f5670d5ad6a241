"""Embed many texts with a provider's batch jobs, for half the price.

The texts are split into jobs by the provider's limits. Every job is registered before it can cost
anything, so a later run continues after a kill; every vector is stored as soon as it is checked.
Texts without a vector are left to plain requests. After repeated failures batch jobs are off for
the run."""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

from clawmark.embed.batch import gemini as batch_gemini
from clawmark.embed.batch import openai as batch_openai
from clawmark.embed.batch import order as batch_order
from clawmark.embed.batch.calls import Calls, Dialect, Job
from clawmark.embed.batch.collect import Collector
from clawmark.embed.batch.state import Entry, Register, hashes_in
from clawmark.embed.services.ledger import Ledger
from clawmark.embed.services.wire import Provider, provider_key
from clawmark.model.errors import EmbeddingError, EmbeddingRejected, EmbeddingUnavailable
from clawmark.model.values import Vector
from clawmark.net.client import HttpClient
from clawmark.net.retry import Policy
from clawmark.system import shared_json
from clawmark.text.chunking.tokens import estimate_tokens
from clawmark.text.secrets.redact import Redactor

MAX_FAILURES = 2
MAX_POLL_FAILURES = 3
"""Failed polls in a row, each of them retried, before a run stops waiting."""
SHORTEST_PAUSE = 0.1
LOST_SECONDS = 48 * 3600.0
"""Providers end a job after a day; one that runs longer than two is given up."""
FORGOTTEN_SECONDS = 30 * 86400.0
OFF = "Batch jobs are off (memorySearch.remote.batch.enabled)."
CLEANUP = Policy(attempts=1, total=10.0, each=10.0)

DIALECTS: dict[str, Callable[[Provider], Dialect]] = {
    "openai": batch_openai.dialect,
    "gemini": batch_gemini.dialect,
    "voyage": batch_openai.voyage_dialect,
}


class BatchOptions(NamedTuple):
    """`memorySearch.remote.batch`."""

    enabled: bool
    wait: bool = True
    """False: jobs are submitted and polled once; a later run collects their vectors."""
    concurrency: int = 2
    poll_ms: int = 2000
    timeout_minutes: int = 60
    smallest: int = 200
    """Fewer texts are not worth a job."""


class BatchOutcome(NamedTuple):
    """The result by hash: each text is in exactly one of the three."""

    vectors: dict[str, Vector]
    failed: tuple[str, ...]
    """Left to plain requests."""
    reason: str
    """Why batch jobs did not embed everything; empty when they did."""
    waiting: tuple[str, ...] = ()
    """Covered by running jobs, which will be paid for; the next run collects them."""


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
    """Embed the texts (by hash) with batch jobs; raises only what `store` and `progress` raise.

    `folder` belongs to one index: jobs of an earlier run store their vectors there.
    """
    key = provider_key(provider.key_facts)
    path = os.path.join(folder, f"{key}.json")
    identity = (provider.name, provider.model, key)
    reason = _skip_reason(provider, texts, options, path)
    if reason:
        return BatchOutcome(vectors={}, failed=tuple(texts), reason=reason)
    with contextlib.ExitStack() as stack:
        try:
            is_held = stack.enter_context(shared_json.locked(path, 0.0))
        except OSError as error:
            reason = f"The folder for batch jobs cannot be used: {error.strerror}."
            return BatchOutcome(vectors={}, failed=tuple(texts), reason=reason)
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
            calls=calls,
            texts=texts,
            options=options,
            register=Register(path, identity),
            store=store,
            progress=progress,
            ledger=ledger,
            sleep=sleep,
            clock=clock,
            now=now,
        ).run()


def _skip_reason(
    provider: Provider, texts: Mapping[str, str], options: BatchOptions, path: str
) -> str:
    if provider.name not in DIALECTS:
        return f"{provider.name} has no batch jobs."
    # Running jobs are paid for, also when the settings have changed.
    if os.path.lexists(path):
        return ""
    if not options.enabled:
        return OFF
    return f"{len(texts)} texts are not worth a batch job." if len(texts) < options.smallest else ""


class _RunningJob:
    """A running job, since when this run waits for it, and how many requests are done."""

    def __init__(self, entry: Entry, since: float) -> None:
        self.entry = entry
        self.since = since
        self.done = 0


class _Run:
    """One run: the running jobs, the texts to submit, and the result."""

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
        self._active: list[_RunningJob] = []
        self._vectors: dict[str, Vector] = {}
        self._settled, self._reported = 0, -1
        self._poll_failures = self._failures = 0
        self._is_off = not options.enabled
        self._reason = "" if options.enabled else OFF

    def run(self) -> BatchOutcome:
        self._register.load()
        self._resume()
        covered = {text for entry in self._register.entries for text in entry.hashes}
        self._rest.extend(text for text in self._texts if text not in covered)
        while True:
            self._submit_all()
            has_news = self._poll_all()
            if not self._active and not self._rest:
                break
            if not has_news:
                if not self._options.wait or self._poll_failures >= MAX_POLL_FAILURES:
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

    def _resume(self) -> None:
        """Continue the jobs of an earlier run; drop those that are done, unsent or outdated."""
        gone = []
        for entry in list(self._register.entries):
            if entry.is_done or not entry.upload:
                self._delete_files(entry)
                gone.append(entry)
            elif self._texts.keys().isdisjoint(entry.hashes):
                gone += [entry] if self._now() - entry.since > FORGOTTEN_SECONDS else []
            elif entry.job:
                self._active.append(_RunningJob(entry, self._clock()))
            else:
                self._start(entry, may_exist=True)
        self._register.drop(gone)

    def _submit_all(self) -> None:
        # A run that does not wait submits everything at once.
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
        # Registered before it is sent, so that other processes skip these texts.
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
        """Create a job from an upload, or find the one that exists."""
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
            _RunningJob(self._register.replace(entry, entry._replace(job=job)), self._clock())
        )
        if self._ledger is not None:
            self._ledger.record(
                self._provider.name, self._provider.model, 1, len(entry.hashes), self._tokens(entry)
            )
            self._ledger.flush()
        return None

    def _give_up(self, entry: Entry, error: EmbeddingError) -> None:
        """Give up a job that was not created; its texts are left to plain requests."""
        status = self._calls.status
        self._register.drop([entry])
        self._delete_files(entry)
        if status in (404, 405) and isinstance(error, EmbeddingRejected):
            self._turn_off(
                f"{self._provider.name} has no batch jobs at this address (status {status})."
            )
        else:
            self._fail(error.message)

    def _poll_all(self) -> bool:
        """Poll every job once; return whether one of them has ended."""
        before = len(self._active)
        for wait in list(self._active):
            try:
                job = self._dialect.poll(self._calls, wait.entry.job)
            except EmbeddingError as error:
                self._poll_failed(wait, error)
                continue
            self._poll_failures = 0
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

    def _poll_failed(self, wait: _RunningJob, error: EmbeddingError) -> None:
        """Handle a failed poll: the job is gone, or the provider cannot be reached."""
        if self._calls.status in (404, 410):
            self._finish(wait, Job("failed", reason="it is gone"))
            return
        self._poll_failures += 1
        self._reason = error.message
        if self._poll_failures >= MAX_POLL_FAILURES:
            self._turn_off(error.message)

    def _finish(self, wait: _RunningJob, job: Job) -> None:
        """Store the vectors of a job, then delete its files at the provider."""
        entry = wait.entry
        self._active.remove(wait)
        found: dict[str, Vector] = {}
        error_text = ""
        try:
            if job.output:
                found, error_text = self._collector.collect(job.output, entry.hashes)
            elif job.errors:
                error_text = self._collector.first_error(job.errors)
        except EmbeddingError as error:
            if job.output and self._calls.status not in (404, 410) and not self._is_lost(entry):
                # The output exists and is paid for: the next run reads it.
                return self._fail(error.message)
            error_text = error.message
        self._vectors.update(
            (text, vector) for text, vector in found.items() if text in self._texts
        )
        self._settled += sum(text in self._texts for text in entry.hashes)
        entry = self._register.replace(entry, entry._replace(output=job.output, is_done=True))
        why = Redactor(self._provider.secrets).clean(
            job.reason or error_text or "it gave no vectors"
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
        self._delete_files(entry, job.errors)
        self._register.drop([entry])
        return None

    def _is_lost(self, entry: Entry) -> bool:
        return self._now() - entry.since > LOST_SECONDS

    def _delete_files(self, entry: Entry, errors: str = "") -> None:
        """Delete our files at the provider; failures are ignored."""
        for file in (entry.upload, entry.output, errors):
            if file:
                with contextlib.suppress(EmbeddingError):
                    self._calls.json("DELETE", self._dialect.discard(file), policy=CLEANUP)

    def _report(self) -> None:
        done = min(len(self._texts), self._settled + sum(wait.done for wait in self._active))
        # Progress never goes back, also when a job fails.
        if done > self._reported:
            self._reported = done
            self._progress(done, len(self._texts))

    def _fail(self, reason: str) -> None:
        self._failures += 1
        self._reason = reason
        if self._failures >= MAX_FAILURES:
            self._turn_off(reason)

    def _turn_off(self, reason: str) -> None:
        self._is_off = True
        self._reason = f"Batch jobs are off for this run: {reason}"
