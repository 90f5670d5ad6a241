"""What goes wrong at a model's service, in one sentence each: the library's exceptions in, `CompletionError` out.

Sentences are ours; what the service said is quoted only where it helps, on one line and without the key.
"""

from __future__ import annotations

from pydantic_ai import exceptions as kinds

from clawmark.errors import CompletionError, ContextTooLong
from clawmark.runtime.models import ModelName

COULD_NOT_ASK = (kinds.AgentRunError, kinds.UserError)
"""What the library raises when a model cannot be asked."""

_LONGEST_QUOTE = 200

_SENTENCES: tuple[tuple[type[Exception], str, str], ...] = (
    (kinds.ModelAuthenticationError, "does not take the key", "Check the key and what its account may use."),
    (kinds.ModelQuotaExceededError, "says that the quota is used up", "Check the account behind the key."),
    (kinds.ModelRateLimitError, "has had too many requests", "Wait a moment and say it again."),
    (kinds.ModelUnavailableError, "is overloaded", "Wait a moment and say it again."),
    (kinds.ModelServerError, "failed", "Say it again; when it stays like this, look at the service's status."),
    (kinds.ModelNotFoundError, "is not there", "Check the name of the model and the address."),
    (kinds.ModelTimeoutError, "did not answer in time", "Say it again, or choose another model."),
    (kinds.ModelConnectionError, "cannot be reached", "Check the connection and the address."),
    (kinds.UsageLimitExceeded, "kept calling tools without an answer", "Ask for less at once."),
    (kinds.ModelRequestRejectedError, "refused the request", "Check the name of the model; /new begins afresh."),
)
"""The first that fits counts."""


def translated(error: Exception, name: ModelName, key: str) -> CompletionError:
    """An exception of the library's as an error of ours."""
    shown = f"{name.provider}:{name.model}" if name.provider else name.base_url
    who = {"provider": name.provider or "model", "model": name.model}
    if isinstance(error, kinds.ModelContextWindowExceededError):
        return ContextTooLong(f"The conversation does not fit the context window of {shown}.", **who)
    if isinstance(error, kinds.ModelConnectionError) and error.phase == "read":
        return CompletionError(f"{shown} closed the connection before the answer was complete.", **who, hint="Say it again.")
    for kind, sentence, hint in _SENTENCES:
        if isinstance(error, kind):
            quote = _quote(error, key) if kind is kinds.ModelRequestRejectedError else ""
            return CompletionError(f"{shown} {sentence}{quote}.", **who, hint=hint)
    hint = "Say it again; if it stays like this, check that the address is the one of a chat service."
    return CompletionError(f"{shown} gave no answer that can be used{_quote(error, key)}.", **who, hint=hint)


def _quote(error: Exception, key: str) -> str:
    """What the service said, for a sentence of ours."""
    from clawmark.text.redact import Redactor
    from clawmark.tools.base import one_line

    said = " ".join(str(getattr(error, "message", "") or error).split())
    said = Redactor([key] if key else []).clean(said)
    return f": {one_line(said, _LONGEST_QUOTE).rstrip('.')}" if said else ""
