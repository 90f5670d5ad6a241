"""Send a request, again while that can help and time allows.

The result is a response with a status of 2xx or one of three errors that say what to do.
`failures` classifies responses; whether a 2xx response holds vectors is the parser's part."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import random
from typing import NamedTuple

from clawmark.model.errors import (
    EmbeddingError,
    EmbeddingOverloaded,
    EmbeddingRejected,
    EmbeddingUnavailable,
)
from clawmark.net.client import Response
from clawmark.net.failures import Verdict, classify, retry_after, server_message
from clawmark.net.http_error import HttpError
from clawmark.system.backoff import Backoff
from clawmark.system.log_records import get_logger


class Policy(NamedTuple):
    """How often and how long a request is tried; times are in seconds."""

    attempts: int = 4
    backoff: Backoff = Backoff(first=0.5, longest=8.0)
    total: float = 60.0
    """For all attempts and waits together."""
    each: float = 30.0


INDEXING = Policy()
QUERY = Policy(attempts=2, backoff=Backoff(first=0.25, longest=1.0), total=3.0, each=3.0)


class TooLarge(EmbeddingRejected):
    """Too many or too long texts for one request: half of them may pass."""


class QuotaExhausted(EmbeddingUnavailable):
    """The quota of this key is used up; that of another key may not be."""


def send_with_retries(
    send: Callable[[float], Response],
    policy: Policy,
    *,
    provider: str,
    model: str,
    redact: Callable[[str], str],
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
    jitter: Callable[[], float] = random,
    now: Callable[[], float] = time.time,
) -> Response:
    """Call `send` with a time limit until a response is usable.

    `redact` removes secrets from the server's message before it becomes part of an error. Raises
    EmbeddingUnavailable, EmbeddingRejected or EmbeddingOverloaded.
    """
    end = clock() + policy.total
    errors = _Errors(provider, model, redact)
    attempt = 1
    while True:
        wanted = 0.0
        failure: EmbeddingError
        try:
            response = send(max(0.001, min(policy.each, end - clock())))
        except HttpError as error:
            failure = errors.unreachable(error)
            is_final = error.permanent
        else:
            verdict = classify(response)
            if verdict is Verdict.FINE:
                return response
            wanted = retry_after(response, now())
            failure = errors.refused(response, verdict, wanted)
            is_final = verdict is not Verdict.BUSY
        wait = policy.backoff.wait(attempt, at_least=wanted, jitter=jitter())
        if is_final or attempt >= policy.attempts or clock() + wait >= end:
            raise failure
        facts = {
            "provider": provider,
            "model": model,
            "because": failure.message,
            "pause": round(wait, 2),
        }
        get_logger("clawmark.embed").info("request is tried again", extra={"facts": facts})
        sleep(wait)
        attempt += 1


class _Errors(NamedTuple):
    """Makes the errors of one request."""

    provider: str
    model: str
    redact: Callable[[str], str]

    def unreachable(self, error: HttpError) -> EmbeddingUnavailable:
        return EmbeddingUnavailable(
            f"{self.provider} cannot be used: {error.reason}.",
            provider=self.provider,
            model=self.model,
            hint=error.hint
            or "Check the connection and memorySearch.remote.baseUrl; until then keywords answer.",
        )

    def refused(self, response: Response, verdict: Verdict, wanted: float) -> EmbeddingError:
        status = response.status
        names = {"provider": self.provider, "model": self.model}
        said = server_message(response, self.redact).rstrip(".")
        reason = f": {said}" if said else ""
        match verdict:
            case Verdict.KEY:
                # Some providers repeat the refused key in a 401, partly masked.
                reason = "" if status == 401 else reason
                return EmbeddingUnavailable(
                    f"{self.provider}: the key was refused (status {status}){reason}.",
                    **names,
                    hint="Check memorySearch.remote.apiKey, or the variable "
                    "of the environment that holds the key.",
                )
            case Verdict.QUOTA:
                return QuotaExhausted(
                    f"{self.provider}: the quota is used up (status {status}){reason}.",
                    **names,
                    hint="Add credit or wait for the quota to renew; until then keywords answer.",
                )
            case Verdict.TOO_LARGE:
                return TooLarge(
                    f"{self.provider} says that the request is too large "
                    f"(status {status}){reason}.",
                    **names,
                    hint="Send fewer or shorter texts at once.",
                )
            case Verdict.REDIRECT:
                return EmbeddingRejected(
                    f"{self.provider} answered with a redirect, which "
                    f"is not followed (status {status}).",
                    **names,
                    hint="Set memorySearch.remote.baseUrl to the service's final address.",
                )
            case Verdict.BUSY:
                return EmbeddingOverloaded(
                    f"{self.provider} is overloaded or failing (status {status}){reason}.",
                    **names,
                    retry_after=wanted,
                    hint=f"It asks for a pause of {wanted:.0f} s."
                    if wanted >= 1
                    else "Try again in a while; until then keywords answer.",
                )
            case _:
                return EmbeddingRejected(
                    f"{self.provider} refused the request (status {status}){reason}.",
                    **names,
                    hint="Check memorySearch.model and memorySearch.remote.baseUrl.",
                )
