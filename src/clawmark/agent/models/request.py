"""One request to a chat service: a path and a body in, the answer's JSON object out, or a
CompletionError.

Sending, waiting and trying again are those of the embedding services (`embed.http`, `embed.retry`):
keys travel in headers only, nothing is followed elsewhere, one deadline covers every attempt. Their
errors are translated here, once. What the body and the answer mean is left to `openai_chat` and
`anthropic_chat`."""

from __future__ import annotations

import json
from collections.abc import Mapping

from clawmark.model.errors import (
    CompletionError,
    ContextTooLong,
    EmbeddingError,
    EmbeddingOverloaded,
    EmbeddingRejected,
)
from clawmark.net.client import HttpClient
from clawmark.net.headers import as_json, secrets_of
from clawmark.net.retry import Policy, TooLarge, send_with_retries
from clawmark.text.chunking.tokens import well_formed
from clawmark.text.secrets.redact import Redactor

ATTEMPTS = 3


class ChatService:
    """One model of one service."""

    def __init__(
        self, provider: str, model: str, base_url: str, headers: Mapping[str, str], key: str = ""
    ) -> None:
        self.provider = provider
        self.model = model
        self._secrets = secrets_of([key], headers)
        self._http = HttpClient(base_url, headers, secrets=self._secrets)

    def __repr__(self) -> str:
        return f"<{self.provider}:{self.model}>"

    def post(self, path: str, body: Mapping[str, object], seconds: float) -> dict[str, object]:
        """Ask, again where that can help, and read the answer; all of it within `seconds`."""
        data = as_json(_well_formed(body))
        policy = Policy(attempts=ATTEMPTS, total=seconds, each=seconds)
        try:
            response = send_with_retries(
                lambda left: self._http.send("POST", path, data, seconds=left),
                policy,
                provider=self.provider,
                model=self.model,
                redact=Redactor(self._secrets).clean,
            )
        except EmbeddingError as error:
            raise self._translated(error) from None
        try:
            answer = json.loads(response.body)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise self.nonsense("something that is no JSON object")
        return answer

    def nonsense(self, what: str) -> CompletionError:
        """The error for an answer that cannot be used."""
        return CompletionError(
            f"{self.provider} answered {what}.",
            provider=self.provider,
            model=self.model,
            hint="Check that the address is the one of a chat service.",
        )

    def close(self) -> None:
        self._http.close()

    def _translated(self, error: EmbeddingError) -> CompletionError:
        """The same sentence with advice for a chat model; what keywords can do is no help here."""
        who = {"provider": self.provider, "model": self.model}
        if isinstance(error, TooLarge):
            message = f"The messages do not fit the context window of {self.provider}:{self.model}."
            return ContextTooLong(message, **who, hint="Send fewer or shorter messages.")
        if isinstance(error, EmbeddingOverloaded):
            return CompletionError(error.message, **who, hint="Try again in a while.")
        if isinstance(error, EmbeddingRejected):
            return CompletionError(
                error.message,
                **who,
                hint="Check the name of the model and the address of its service.",
            )
        return CompletionError(
            error.message, **who, hint="Check the connection, the key and the account behind it."
        )


def _well_formed(value: object) -> object:
    """The same without lone surrogates, which no service takes."""
    match value:
        case str():
            return well_formed(value)
        case Mapping():
            return {key: _well_formed(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_well_formed(inner) for inner in value]
        case _:
            return value


def whole(value: object) -> int:
    """A count as a service gives it; 0 when it gives none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
