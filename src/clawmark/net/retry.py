"""One question to a provider, asked again while that can help and the time allows.

In: a function that sends the request with a time limit, and a policy. Out: the answer with a status
of 2xx, or one of the three errors that say what to do about it. What an answer means is `refusals`'
part, the wire `http`'s, and whether a 2xx holds vectors the parser's."""

from __future__ import annotations

import logging
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
from clawmark.net.failures import Verdict, judge, server_message, wait_asked_for
from clawmark.net.http_error import HttpError
from clawmark.system.backoff import Backoff


class Policy(NamedTuple):
    """How often, how long and with which pauses; all in seconds."""

    attempts: int = 4
    backoff: Backoff = Backoff(first=0.5, longest=8.0)
    total: float = 60.0
    """For all attempts and pauses together."""
    each: float = 30.0


INDEXING = Policy()
QUERY = Policy(attempts=2, backoff=Backoff(first=0.25, longest=1.0), total=3.0, each=3.0)


class TooLarge(EmbeddingRejected):
    """Too many or too long texts for one request: half of them may pass."""


class QuotaExhausted(EmbeddingUnavailable):
    """The account behind this key is used up; another key may not be."""


def ask(
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
    """Ask until there is an answer; raises EmbeddingUnavailable, EmbeddingRejected or
    EmbeddingOverloaded.
    """
    end = clock() + policy.total
    asked = _Asked(provider, model, redact)
    attempt = 1
    while True:
        wanted = 0.0
        failure: EmbeddingError
        try:
            response = send(max(0.001, min(policy.each, end - clock())))
        except HttpError as trouble:
            failure = asked.unreachable(trouble)
            is_final = trouble.permanent
        else:
            verdict = judge(response)
            if verdict is Verdict.FINE:
                return response
            wanted = wait_asked_for(response, now())
            failure = asked.refused(response, verdict, wanted)
            is_final = verdict is not Verdict.BUSY
        # Never sooner than the server asks, and never all callers at the same moment.
        pause = policy.backoff.wait(attempt, at_least=wanted, jitter=jitter())
        if is_final or attempt >= policy.attempts or clock() + pause >= end:
            raise failure
        _log(asked, failure, pause)
        sleep(pause)
        attempt += 1


class _Asked(NamedTuple):
    """Who was asked, for the errors."""

    provider: str
    model: str
    redact: Callable[[str], str]

    def unreachable(self, trouble: HttpError) -> EmbeddingUnavailable:
        return EmbeddingUnavailable(
            f"{self.provider} cannot be used: {trouble.reason}.",
            provider=self.provider,
            model=self.model,
            hint=trouble.hint
            or "Check the connection and memorySearch.remote.baseUrl; until then keywords answer.",
        )

    def refused(self, response: Response, verdict: Verdict, wanted: float) -> EmbeddingError:
        status = response.status
        who = {"provider": self.provider, "model": self.model}
        match verdict:
            case Verdict.KEY:
                # Providers like to repeat the key they refuse, some of them half masked: a 401 says
                # nothing else anyway.
                why = "" if status == 401 else self._because(response)
                hint = (
                    "Check memorySearch.remote.apiKey, or the variable "
                    "of the environment that holds the key."
                )
                return EmbeddingUnavailable(
                    f"{self.provider}: the key was refused (status {status}){why}.",
                    **who,
                    hint=hint,
                )
            case Verdict.QUOTA:
                message = (
                    f"{self.provider}: the quota is used up (status "
                    f"{status}){self._because(response)}."
                )
                return QuotaExhausted(
                    message,
                    **who,
                    hint="Add credit or wait for the quota to renew; until then keywords answer.",
                )
            case Verdict.TOO_LARGE:
                message = (
                    f"{self.provider} says that the request is too large "
                    f"(status {status}){self._because(response)}."
                )
                return TooLarge(message, **who, hint="Send fewer or shorter texts at once.")
            case Verdict.REDIRECT:
                message = (
                    f"{self.provider} answered with a redirect, which "
                    f"is not followed (status {status})."
                )
                return EmbeddingRejected(
                    message,
                    **who,
                    hint="Set memorySearch.remote.baseUrl to the service's final address.",
                )
            case Verdict.BUSY:
                message = (
                    f"{self.provider} is overloaded or failing (status "
                    f"{status}){self._because(response)}."
                )
                hint = (
                    f"It asks for a pause of {wanted:.0f} s."
                    if wanted >= 1
                    else "Try again in a while; until then keywords answer."
                )
                return EmbeddingOverloaded(message, **who, retry_after=wanted, hint=hint)
            case _:
                message = (
                    f"{self.provider} refused the request (status "
                    f"{status}){self._because(response)}."
                )
                return EmbeddingRejected(
                    message, **who, hint="Check memorySearch.model and memorySearch.remote.baseUrl."
                )

    def _because(self, response: Response) -> str:
        said = server_message(response, self.redact).rstrip(".")
        return f": {said}" if said else ""


def _log(asked: _Asked, failure: EmbeddingError, pause: float) -> None:
    facts = {
        "provider": asked.provider,
        "model": asked.model,
        "because": failure.message,
        "pause": round(pause, 2),
    }
    logging.getLogger("clawmark.embed").info("request is tried again", extra={"facts": facts})
