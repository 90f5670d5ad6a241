"""What goes wrong at a model's service, in one sentence each: the library's exceptions in,
`CompletionError` out.

Sentences are ours. The status and the message of the service are quoted in them, on one line and
without the key."""

from __future__ import annotations

from pydantic_ai import exceptions as kinds

from clawmark.agent.models.catalog import ModelName
from clawmark.agent.tools.base import one_line
from clawmark.model.errors import CompletionError, ContextTooLong
from clawmark.text.secrets.redact import Redactor

COULD_NOT_ASK = (kinds.AgentRunError, kinds.UserError)
"""What the library raises when a model cannot be asked."""

_LONGEST_QUOTE = 200

_SENTENCES: tuple[tuple[type[Exception], str, str], ...] = (
    (
        kinds.ModelAuthenticationError,
        "does not take the key",
        "Check the key and what its account may use.",
    ),
    (
        kinds.ModelQuotaExceededError,
        "says that the quota is used up",
        "Check the account behind the key.",
    ),
    (kinds.ModelRateLimitError, "has had too many requests", "Wait a moment and say it again."),
    (kinds.ModelUnavailableError, "is overloaded", "Wait a moment and say it again."),
    (
        kinds.ModelServerError,
        "failed",
        "Say it again; when it stays like this, look at the service's status.",
    ),
    (kinds.ModelNotFoundError, "is not there", "Check the name of the model and the address."),
    (kinds.ModelTimeoutError, "did not answer in time", "Say it again, or choose another model."),
    (kinds.ModelConnectionError, "cannot be reached", "Check the connection and the address."),
    (kinds.UsageLimitExceeded, "kept calling tools without an answer", "Ask for less at once."),
    (
        kinds.ModelRequestRejectedError,
        "refused the request",
        "Check the name of the model; /new begins afresh.",
    ),
)
"""The first that fits counts."""


def translated(error: Exception, name: ModelName, key: str) -> CompletionError:
    """An exception of the library's as an error of ours."""
    shown = f"{name.provider}:{name.model}" if name.provider else name.base_url
    who = {"provider": name.provider or "model", "model": name.model}
    if isinstance(error, kinds.ModelContextWindowExceededError):
        return ContextTooLong(
            f"The conversation does not fit the context window of {shown}.", **who
        )
    if isinstance(error, kinds.ModelConnectionError) and error.phase == "read":
        return CompletionError(
            f"{shown} closed the connection before the answer was complete.",
            **who,
            hint="Say it again.",
        )
    for kind, sentence, hint in _SENTENCES:
        if isinstance(error, kind):
            return CompletionError(f"{shown} {sentence}{_reply(error, key)}.", **who, hint=hint)
    hint = (
        "Say it again; if it stays like this, check that the address is the one of a chat service."
    )
    said = _shortened(str(getattr(error, "message", "") or error), key)
    return CompletionError(
        f"{shown} gave no answer that can be used{f': {said}' if said else ''}.", **who, hint=hint
    )


def _reply(error: Exception, key: str) -> str:
    """The status and the message of the service, as ` (HTTP 500: out of memory)`; empty when it
    gave no answer.
    """
    if not isinstance(error, kinds.ModelHTTPError):
        return ""
    said = _shortened(_message_in(error.body), key)
    return f" (HTTP {error.status_code}: {said})" if said else f" (HTTP {error.status_code})"


def _message_in(body: object) -> str:
    """The sentence in the body of an error: services put it under different names; a web page has
    none.
    """
    if isinstance(body, dict):
        found = (_message_in(body.get(name)) for name in ("message", "error", "detail"))
        return next((said for said in found if said), "")
    return body if isinstance(body, str) and not body.lstrip().startswith("<") else ""


def _shortened(said: str, key: str) -> str:
    """What a service said on one line, without the key."""
    # Cleaned before it is cut: half a key has no shape any more.
    return one_line(
        Redactor([key] if key else []).clean(" ".join(said.split())), _LONGEST_QUOTE
    ).rstrip(".")
