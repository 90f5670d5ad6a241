"""Embeds with a remote service: texts in, checked unit vectors out, with as few requests as the
service allows.

The service's language comes with its `Provider`; connections, retries, the breaker, the ledger and
reading answers have modules of their own. Here requests are packed, sent, split when they are too
large or pass the budget, and their vectors checked before anybody sees them. Vectors of requests
that succeeded before another one failed are kept for `take_paid` and the next call, because they
are paid. Running several calls side by side is left to sync; it may, threads share an embedder."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from clawmark.embed.base import Traits
from clawmark.embed.batch.run import run_batches
from clawmark.embed.models import price_per_million
from clawmark.embed.services import packing
from clawmark.embed.services.ledger import OverBudget
from clawmark.embed.services.parsing import to_unit, used_tokens
from clawmark.embed.services.wire import Provider, provider_key
from clawmark.model.errors import (
    EmbeddingError,
    EmbeddingMismatch,
    EmbeddingOverloaded,
    EmbeddingRejected,
    EmbeddingUnavailable,
)
from clawmark.model.providers import PROVIDERS
from clawmark.model.values import Degraded, Identity, Vector
from clawmark.net.client import HttpClient
from clawmark.net.failures import Verdict, judge
from clawmark.net.retry import INDEXING, QUERY, TooLarge, ask
from clawmark.text.chunking.tokens import estimate_tokens
from clawmark.text.secrets.redact import Redactor

if TYPE_CHECKING:
    from clawmark.embed.batch.run import BatchOptions
    from clawmark.embed.services.ledger import Ledger
    from clawmark.net.circuit_breaker import Breaker
    from clawmark.net.client import HttpClient, Response
    from clawmark.net.retry import Policy

KEPT = 4096
"""Paid vectors that wait for a second call: a few requests' worth."""
LONGEST_REASON = 240
LANE_SECONDS = 0.001
"""What it takes to send a request that is ready."""


class _WrongSize(EmbeddingUnavailable):
    """Every vector of an answer has the same size, and it is not the size of the model."""

    def __init__(self, error: EmbeddingUnavailable, size: int) -> None:
        super().__init__(error.message, provider=error.provider, model=error.model, hint=error.hint)
        self.size = size


class RemoteEmbedder:
    """Speaks to one configured service.

    `identity.dims` is 0 until it is known; see `learn_dims`.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        breaker: Breaker | None = None,
        ledger: Ledger | None = None,
        proxy: str = "",
        batch: BatchOptions | None = None,
        batch_dir: str = "",
        has_worked: Callable[[], bool] = bool,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        self._provider = provider
        self._breaker = breaker
        self._ledger = ledger
        self._proxy = proxy
        self._batch = batch
        self._batch_dir = batch_dir
        self._has_worked = has_worked
        """Whether the index holds vectors of it already."""
        self._sleep = sleep or self._rest
        self._ending = threading.Event()
        self._lock = threading.Lock()
        self._confirming = threading.Lock()
        self._lanes = threading.BoundedSemaphore(provider.wire.limits.at_once)
        """Passages take one for each request, a question needs none."""
        self._client: HttpClient | None = None
        self._key = provider_key(provider.key_facts)
        self._dims = provider.dims
        self._most = 0
        """The most texts a service took after it refused more; 0 while it took everything."""
        self._turn = 0
        """Which of several keys is used."""
        self._kept: dict[str, Vector] = {}

    @property
    def identity(self) -> Identity:
        return Identity(
            provider=self._provider.name,
            model=self._provider.model,
            provider_key=self._key,
            dims=self._dims,
        )

    @property
    def openclaw_keys(self) -> tuple[str, ...]:
        """The keys under which an OpenClaw with the same configuration stores the same vectors, in
        addition to our own.
        """
        return tuple(provider_key(facts) for facts in self._provider.openclaw_facts())

    @property
    def traits(self) -> Traits:
        provider, limits = self._provider, self._provider.wire.limits
        return Traits(
            f"{provider.model} ({provider.name})",
            provider.floor,
            provider.ceiling,
            most_texts=packing.usual_texts(limits, self._dims),
            remote=True,
            # One more than requests: while an answer is read and stored, the next request is on its
            # way already.
            at_once=limits.at_once + 1,
        )

    def covers(self, text: str) -> bool:
        return any(map(str.isalnum, text))

    def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        limits = self._provider.wire.limits
        sent = [packing.sendable(text, limits.text_tokens) for text in texts]
        with self._lock:
            vectors = {text: self._kept.pop(text) for text in set(sent) & self._kept.keys()}
        missing = [text for text in dict.fromkeys(sent) if text not in vectors]
        most = packing.most_texts(limits, self._dims)
        try:
            for part in packing.pack(missing, limits, min(most, self._most or most)):
                self._embed([missing[number] for number in part], False, INDEXING, vectors)
        except _WrongSize as error:
            self._keep(vectors)
            raise self._confirmed(error) from None
        except EmbeddingError:
            self._keep(vectors)
            raise
        return [vectors[text] for text in sent]

    def take_paid(self, texts: Sequence[str]) -> dict[str, Vector]:
        """Of the texts of a call that failed, those whose vectors had come before it did; each is
        handed out once.
        """
        longest = self._provider.wire.limits.text_tokens
        sent = {text: packing.sendable(text, longest) for text in texts}
        with self._lock:
            found = {text: self._kept[key] for text, key in sent.items() if key in self._kept}
            for text in found:
                self._kept.pop(sent[text], None)
        return found

    def embed_query(self, text: str) -> Vector:
        sent = packing.sendable(text, self._provider.wire.limits.text_tokens)
        vectors: dict[str, Vector] = {}
        self._embed([sent], True, QUERY, vectors)
        return vectors[sent]

    def embed_in_batches(
        self,
        texts: Mapping[str, str],
        store: Callable[[dict[str, Vector]], None],
        progress: Callable[[int, int], None],
    ) -> tuple[frozenset[str], str]:
        """Embed texts (by hash) with the service's batch jobs where that is configured and worth
        it.

        `store` gets every checked portion. Comes back: the hashes that a job under way will still
        answer, and why the rest is left to plain calls; nothing is said where jobs are switched
        off."""
        if self._batch is None or not self._batch_dir or self.refusal is not None:
            return frozenset(), ""
        outcome = run_batches(
            self._provider._replace(dims=self._dims),
            texts,
            self._batch,
            folder=self._batch_dir,
            client=self._open(),
            store=store,
            progress=progress,
            ledger=self._ledger,
            sleep=self._sleep,
        )
        return frozenset(outcome.waiting), outcome.reason if self._batch.enabled else ""

    def forget_failures(self, *, refusal: bool = False) -> None:
        """Ask the service again at once: a user who starts an index wants to know how it is now.

        One that is refused for good is asked only with `refusal`; one that has worked before, with
        a short text first."""
        breaker = self._breaker
        if breaker is None:
            return
        if refusal or self.refusal is None:
            breaker.succeeded()
        elif self._has_worked():
            breaker.succeeded()
            self._probe()

    @property
    def trouble(self) -> str:
        """Why the service is left alone for now; empty when it is not."""
        return self._breaker.reason() if self._breaker is not None else ""

    @property
    def refusal(self) -> Degraded | None:
        """Why the service is not asked at all with these settings, and what to change."""
        return self._breaker.refusal() if self._breaker is not None else None

    @property
    def ledger(self) -> Ledger | None:
        """What was spent."""
        return self._ledger

    @property
    def uses_batches(self) -> bool:
        """Whether large amounts go as batch jobs."""
        return self._batch is not None and self._batch.enabled

    @property
    def price_per_million(self) -> float | None:
        """US dollars for a million tokens, 0 at home; None for a model or an address whose price is
        not known.
        """
        provider = self._provider
        price = price_per_million(provider.name, provider.model)
        host = f"/{urlsplit(provider.base_url).hostname}"
        is_own = price and host.endswith(PROVIDERS[provider.name].price_host)
        return price if is_own or price == 0 else None

    def learn_dims(self) -> int:
        """The size of the vectors, asked with one short text where nothing else tells."""
        if not self._dims:
            self.embed_texts(["size"])
        return self._dims

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()
        if self._ledger is not None:
            self._ledger.flush()

    def abort(self) -> None:
        """Cut short what is under way, and let later calls fail: whoever waits for them is closing."""
        self._ending.set()
        with self._lock:
            client = self._client
        if client is not None:
            client.abort()

    def _rest(self, seconds: float) -> None:
        if self._ending.wait(seconds):
            name = self._provider.name
            raise EmbeddingUnavailable(
                f"{name} was not waited for.", provider=name, model=self._provider.model
            )

    # --- one request, and what becomes of it

    def _embed(
        self, texts: list[str], is_query: bool, policy: Policy, vectors: dict[str, Vector]
    ) -> bool:
        """Put the vectors of these texts into `vectors`; false when they were too large and had to
        go in pieces.
        """
        try:
            vectors.update(zip(texts, self._ask(texts, is_query, policy), strict=True))
            return True
        except OverBudget:
            if len(texts) == 1:
                raise
            # What is left of the day is used up, text by text if need be: else a budget below one
            # request buys nothing.
            for part in (texts[: len(texts) // 2], texts[len(texts) // 2 :]):
                self._embed(part, is_query, policy, vectors)
            return False
        except TooLarge:
            if len(texts) == 1 and len(texts[0]) < 2:
                raise
        if len(texts) == 1:
            short = packing.cut(texts[0], max(1, estimate_tokens(texts[0]) // 2))
            vectors[texts[0]] = self._ask([short], is_query, policy)[0]
            return False
        half = (len(texts) + 1) // 2
        went_whole = self._embed(texts[:half], is_query, policy, vectors)
        step = min(self._most or half, half)
        for start in range(half, len(texts), step):
            went_whole &= self._embed(texts[start : start + step], is_query, policy, vectors)
        if went_whole and half > 1:
            # It was the number and not one long text. Remembered, so that a long index is not
            # refused at every request.
            self._most = step
        return False

    def _ask(self, texts: list[str], is_query: bool, policy: Policy) -> list[Vector]:
        """One request, retried by `policy`: the vectors of these texts."""
        provider = self._provider
        tokens = sum(map(estimate_tokens, texts))
        path, body = provider.wire.request(texts, is_query)
        with nullcontext() if is_query else self._lanes:
            if self._breaker is not None:
                self._breaker.check(provider.name)
            if self._ledger is not None:
                self._ledger.allow(tokens)
            with self._telling_failures(tokens):
                response = ask(
                    lambda seconds: self._send(path, body, seconds),
                    policy,
                    provider=provider.name,
                    model=provider.model,
                    redact=Redactor(provider.secrets).clean,
                    sleep=self._sleep,
                )
        if not is_query:
            # Reading a long answer keeps the interpreter busy: whoever waits for the lane sends his
            # request first.
            time.sleep(LANE_SECONDS)
        with self._telling_failures():
            vectors = self._read(response.body, len(texts))
        self._settle(None)
        if self._ledger is not None:
            self._ledger.record(
                provider.name, provider.model, 1, len(texts), used_tokens(response.body, tokens)
            )
        return vectors

    @contextmanager
    def _telling_failures(self, tokens: int = 0) -> Iterator[None]:
        try:
            yield
        except EmbeddingError as error:
            self._settle(error)
            if tokens and self._ledger is not None and isinstance(error, EmbeddingRejected):
                self._ledger.refused(tokens)
            raise

    def _confirmed(self, error: _WrongSize) -> EmbeddingError:
        """What follows from vectors of a wrong size: a refusal for good when a second answer has
        the same size.
        """
        with self._confirming:
            breaker = self._breaker
            if breaker is None:
                return error
            if self.refusal is None:
                breaker.succeeded()
                self._probe()
            return self._mismatch(error.size) if self.refusal is not None else error

    def _probe(self) -> None:
        """Ask with one short text, and refuse the service for good when the size of its vector is
        wrong.
        """
        try:
            self._ask(["size"], False, INDEXING)
        except _WrongSize as error:
            found = self._mismatch(error.size)
            if self._breaker is not None:
                self._breaker.refuse(found.message, found.hint)
        except EmbeddingError:
            return

    def _mismatch(self, size: int) -> EmbeddingMismatch:
        provider = self._provider
        return EmbeddingMismatch(
            f"{provider.name} sends vectors of {size} numbers for {provider.model}, which has "
            f"{self._dims}.",
            provider=provider.name,
            model=provider.model,
            hint=f"Set memorySearch.outputDimensionality to {size} if "
            f"{provider.base_url} has the model you want; otherwise "
            "correct memorySearch.model or memorySearch.remote.baseUrl. It is not asked again "
            "until then, "
            "or until `clawmark index --force`.",
        )

    def _settle(self, error: EmbeddingError | None) -> None:
        """Tell the breaker how it went; who refuses a request is there and thinks."""
        if self._breaker is None or self._ending.is_set():
            return
        if error is None or isinstance(error, EmbeddingRejected):
            self._breaker.succeeded()
        else:
            self._breaker.failed(
                error.message, error.retry_after if isinstance(error, EmbeddingOverloaded) else 0.0
            )

    def _send(self, path: str, body: bytes, seconds: float) -> Response:
        """One attempt; where there are several keys, with the next one as long as the quota of one
        is used up.
        """
        provider = self._provider
        end = time.monotonic() + seconds
        client = self._open()
        headers = provider.sign("POST", path, body) if provider.sign else {}
        if not provider.keys:
            return client.send("POST", path, body, seconds=seconds, headers=headers)
        for _ in provider.keys:
            turn = self._turn
            left = max(0.01, end - time.monotonic())
            response = client.send("POST", path, body, seconds=left, headers=provider.keys[turn])
            if response.status != 429 and judge(response) is not Verdict.QUOTA:
                break
            with self._lock:
                if self._turn == turn:  # another thread may have moved on already
                    self._turn = (turn + 1) % len(provider.keys)
        return response

    def _read(self, body: bytes, expected: int) -> list[Vector]:
        """The checked vectors of an answer; raises EmbeddingUnavailable for anything that is not
        what was asked for.
        """
        provider = self._provider
        try:
            vectors = [to_unit(values) for values in provider.wire.parse(body, expected)]
        except ValueError as error:
            raise self._unusable(str(error)) from None
        with self._lock:
            size = self._dims or len(vectors[0]) // 4
            if any(len(vector) != size * 4 for vector in vectors):
                unusable = self._unusable(
                    f"its vectors have {len(vectors[0]) // 4} numbers where {size} were due"
                )
                is_same_size = len({len(vector) for vector in vectors}) == 1
                raise _WrongSize(unusable, len(vectors[0]) // 4) if is_same_size else unusable
            self._dims = size
        return vectors

    def _unusable(self, reason: str) -> EmbeddingUnavailable:
        provider = self._provider
        # Cleaned before it is cut: half a key is a leak too.
        clean = Redactor(provider.secrets).clean(reason)
        if len(clean) > LONGEST_REASON:
            clean = clean[: LONGEST_REASON - 1].rstrip() + "…"
        return EmbeddingUnavailable(
            f"{provider.name} gave an answer that cannot be used: {clean.rstrip('.')}.",
            provider=provider.name,
            model=provider.model,
            hint=f"Check that {provider.base_url} is the address of an "
            f"embedding service and has this model.",
        )

    def _open(self) -> HttpClient:
        with self._lock:
            if self._client is None:
                provider = self._provider
                self._client = HttpClient(
                    provider.base_url, provider.headers, secrets=provider.secrets, proxy=self._proxy
                )
            return self._client

    def _keep(self, vectors: dict[str, Vector]) -> None:
        with self._lock:
            self._kept.update(vectors)
            while len(self._kept) > KEPT:
                del self._kept[next(iter(self._kept))]
