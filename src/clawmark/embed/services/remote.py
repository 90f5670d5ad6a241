"""Embed with a remote service, in as few requests as it allows.

Requests are packed, sent, split when they are too large or exceed the budget, and their vectors
checked. When one request of a call fails, the vectors of the earlier ones are kept for `take_paid`
and the next call, because they are paid for. Threads may share an embedder."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from urllib.parse import urlsplit

from clawmark.embed.base import Traits
from clawmark.embed.batch.run import BatchOptions, run_batches
from clawmark.embed.media_file import MediaFile
from clawmark.embed.models import price_per_million
from clawmark.embed.services import packing
from clawmark.embed.services.ledger import Ledger, OverBudget
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
from clawmark.net.circuit_breaker import Breaker
from clawmark.net.client import HttpClient, Response
from clawmark.net.failures import Verdict, classify
from clawmark.net.retry import INDEXING, QUERY, Policy, TooLarge, send_with_retries
from clawmark.text.chunking.tokens import estimate_tokens
from clawmark.text.secrets.redact import Redactor

MAX_KEPT = 4096
"""Paid vectors that are kept for the next call: those of a few requests."""
MAX_REASON = 240
UPLOAD = INDEXING._replace(total=300.0, each=120.0)
"""Images and audio take longer to send than texts."""
SEND_SECONDS = 0.001
"""What it takes to send a request that is ready."""


class _WrongSize(EmbeddingUnavailable):
    """All vectors of a response have the same size, and it is not the size of the model."""

    def __init__(self, error: EmbeddingUnavailable, size: int) -> None:
        super().__init__(error.message, provider=error.provider, model=error.model, hint=error.hint)
        self.size = size


class RemoteEmbedder:
    """Embeds with one configured service.

    `identity.dims` is 0 until the first response.
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
        """Whether the index already holds its vectors."""
        self._sleep = sleep or self._sleep_unless_aborted
        self._aborted = threading.Event()
        self._lock = threading.Lock()
        self._confirming = threading.Lock()
        self._slots = threading.BoundedSemaphore(provider.wire.limits.at_once)
        """One for each request with passages; queries need none."""
        self._client: HttpClient | None = None
        self._key = provider_key(provider.key_facts)
        self._dims = provider.dims
        self._most = 0
        """How many texts the service took after it refused more; 0 before it refused any."""
        self._key_number = 0
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
        """More provider keys under which OpenClaw stores the same vectors."""
        return tuple(provider_key(facts) for facts in self._provider.openclaw_facts())

    @property
    def traits(self) -> Traits:
        provider, limits = self._provider, self._provider.wire.limits
        return Traits(
            label=f"{provider.model} ({provider.name})",
            floor=provider.floor,
            ceiling=provider.ceiling,
            most_texts=packing.usual_texts(limits, self._dims),
            remote=True,
            # One more than requests: one call may be reading and storing a response.
            at_once=limits.at_once + 1,
            media=provider.wire.media is not None,
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

    def embed_media(self, files: Sequence[MediaFile]) -> list[Vector]:
        """Return one vector per image or audio file, with one request; raises EmbeddingError."""
        provider = self._provider
        if provider.wire.media is None:
            raise EmbeddingRejected(
                f"{provider.model} does not embed images or audio.",
                provider=provider.name,
                model=provider.model,
            )
        path, body = provider.wire.media(files)
        tokens = sum(map(packing.media_tokens, files))
        try:
            return self._exchange(path, body, len(files), tokens, UPLOAD)
        except OverBudget as error:
            if len(files) == 1:
                raise
            raise TooLarge(error.message, provider=provider.name, hint=error.hint) from None
        except _WrongSize as error:
            raise self._confirmed(error) from None

    def take_paid(self, texts: Sequence[str]) -> dict[str, Vector]:
        """Return the vectors that a failed call had received, each of them once."""
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
        """Embed texts (by hash) with batch jobs where that is configured and worthwhile.

        `store` gets every checked portion. Returns the hashes that a running job will still
        deliver, and why the others need plain requests; empty when batch jobs are off."""
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
        """Close the circuit breaker: a user who starts indexing wants the current state.

        A permanently refused service stays refused without `refusal`, unless it worked before; then
        it is probed with a short text."""
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
        """Why requests are refused for now; empty when they are not."""
        return self._breaker.reason() if self._breaker is not None else ""

    @property
    def refusal(self) -> Degraded | None:
        """Why the service cannot be used with these settings, and what to change."""
        return self._breaker.refusal() if self._breaker is not None else None

    @property
    def ledger(self) -> Ledger | None:
        """The count of calls and tokens."""
        return self._ledger

    @property
    def uses_batches(self) -> bool:
        """Whether many texts are sent as batch jobs."""
        return self._batch is not None and self._batch.enabled

    @property
    def price_per_million(self) -> float | None:
        """US dollars per million tokens; 0 for a local service, None when it is not known."""
        provider = self._provider
        price = price_per_million(provider.name, provider.model)
        host = f"/{urlsplit(provider.base_url).hostname}"
        is_own = price and host.endswith(PROVIDERS[provider.name].price_host)
        return price if is_own or price == 0 else None

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()
        if self._ledger is not None:
            self._ledger.flush()

    def abort(self) -> None:
        """Make current and later calls fail; called when the program closes."""
        self._aborted.set()
        with self._lock:
            client = self._client
        if client is not None:
            client.abort()

    def _sleep_unless_aborted(self, seconds: float) -> None:
        if self._aborted.wait(seconds):
            name = self._provider.name
            raise EmbeddingUnavailable(
                f"The request to {name} was aborted.", provider=name, model=self._provider.model
            )

    def _embed(
        self, texts: list[str], is_query: bool, policy: Policy, vectors: dict[str, Vector]
    ) -> bool:
        """Put the vectors of these texts into `vectors`; return False when they had to be split."""
        try:
            vectors.update(zip(texts, self._ask(texts, is_query, policy), strict=True))
            return True
        except OverBudget:
            if len(texts) == 1:
                raise
            # Use what is left of the day's budget, text by text if necessary.
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
            # It was the number and not one long text: later requests are smaller.
            self._most = step
        return False

    def _ask(self, texts: list[str], is_query: bool, policy: Policy) -> list[Vector]:
        """Return the vectors of these texts, with one request that `policy` retries."""
        path, body = self._provider.wire.request(texts, is_query)
        return self._exchange(path, body, len(texts), sum(map(estimate_tokens, texts)), policy)

    def _exchange(
        self, path: str, body: bytes, count: int, tokens: int, policy: Policy
    ) -> list[Vector]:
        """Send a request for some vectors, and return them."""
        provider = self._provider
        is_query = policy is QUERY
        with nullcontext() if is_query else self._slots:
            if self._breaker is not None:
                self._breaker.check(provider.name)
            if self._ledger is not None:
                self._ledger.allow(tokens)
            with self._recording_failures(tokens):
                response = send_with_retries(
                    lambda seconds: self._send(path, body, seconds),
                    policy,
                    provider=provider.name,
                    model=provider.model,
                    redact=Redactor(provider.secrets).clean,
                    sleep=self._sleep,
                )
        if not is_query:
            # Let a waiting thread send its request before this one reads a long response.
            time.sleep(SEND_SECONDS)
        with self._recording_failures():
            vectors = self._read(response.body, count)
        self._settle(None)
        if self._ledger is not None:
            self._ledger.record(
                provider.name, provider.model, 1, count, used_tokens(response.body, tokens)
            )
        return vectors

    @contextmanager
    def _recording_failures(self, tokens: int = 0) -> Iterator[None]:
        try:
            yield
        except EmbeddingError as error:
            self._settle(error)
            if tokens and self._ledger is not None and isinstance(error, EmbeddingRejected):
                self._ledger.refused(tokens)
            raise

    def _confirmed(self, error: _WrongSize) -> EmbeddingError:
        """Refuse the service permanently when a second response has the same wrong size."""
        with self._confirming:
            breaker = self._breaker
            if breaker is None:
                return error
            if self.refusal is None:
                breaker.succeeded()
                self._probe()
            return self._mismatch(error.size) if self.refusal is not None else error

    def _probe(self) -> None:
        """Embed a short text; refuse the service permanently when the vector has a wrong size."""
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
        """Tell the circuit breaker how it went; a service that rejects a request is working."""
        if self._breaker is None or self._aborted.is_set():
            return
        if error is None or isinstance(error, EmbeddingRejected):
            self._breaker.succeeded()
        else:
            self._breaker.failed(
                error.message, error.retry_after if isinstance(error, EmbeddingOverloaded) else 0.0
            )

    def _send(self, path: str, body: bytes, seconds: float) -> Response:
        """Send once; with several keys, try the next one when the quota of one is used up."""
        provider = self._provider
        end = time.monotonic() + seconds
        client = self._open()
        headers = provider.sign("POST", path, body) if provider.sign else {}
        if not provider.keys:
            return client.send("POST", path, body, seconds=seconds, headers=headers)
        for _ in provider.keys:
            number = self._key_number
            left = max(0.01, end - time.monotonic())
            response = client.send("POST", path, body, seconds=left, headers=provider.keys[number])
            if response.status != 429 and classify(response) is not Verdict.QUOTA:
                break
            with self._lock:
                if self._key_number == number:  # another thread may have changed it
                    self._key_number = (number + 1) % len(provider.keys)
        return response

    def _read(self, body: bytes, expected: int) -> list[Vector]:
        """Return the checked vectors of a response; raise EmbeddingUnavailable for any other."""
        provider = self._provider
        try:
            vectors = [to_unit(values) for values in provider.wire.parse(body, expected)]
        except ValueError as error:
            raise self._unusable(str(error)) from None
        with self._lock:
            size = self._dims or len(vectors[0]) // 4
            if any(len(vector) != size * 4 for vector in vectors):
                unusable = self._unusable(
                    f"its vectors have {len(vectors[0]) // 4} numbers instead of {size}"
                )
                is_same_size = len({len(vector) for vector in vectors}) == 1
                raise _WrongSize(unusable, len(vectors[0]) // 4) if is_same_size else unusable
            self._dims = size
        return vectors

    def _unusable(self, reason: str) -> EmbeddingUnavailable:
        provider = self._provider
        # Redacted before it is cut: half a key is a leak too.
        clean = Redactor(provider.secrets).clean(reason)
        if len(clean) > MAX_REASON:
            clean = clean[: MAX_REASON - 1].rstrip() + "…"
        return EmbeddingUnavailable(
            f"{provider.name} gave a response that cannot be used: {clean.rstrip('.')}.",
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
            while len(self._kept) > MAX_KEPT:
                del self._kept[next(iter(self._kept))]
