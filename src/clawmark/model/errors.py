"""Every error that Clawmark raises on purpose.

Errors carry the facts as fields, and `hint` says what to do next. Expected outcomes (a missing
daily log, a file that does not parse, an answer without vectors) are values, not errors."""

from __future__ import annotations

import errno

_ADVICE = {
    errno.EMFILE: "This process has too many files open: raise the limit (ulimit -n) and "
    "try again.",
    errno.ENFILE: "The system has too many files open: close some programs and try again.",
    errno.ENOSPC: "Free some space on its disk and try again.",
    errno.EDQUOT: "Your share of its disk is used up: free some space and try again.",
}


def advice(error: OSError, otherwise: str) -> str:
    """What to do about a system error: general advice for a full disk or too many open files,
    `otherwise` for the rest.
    """
    return _ADVICE.get(error.errno or 0, otherwise)


def reason_of(error: Exception) -> str:
    """Return why something failed as part of a sentence, without the words of the library."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return str(error).rstrip(".")


class ClawmarkError(Exception):
    """The base of all errors; `hint` is one sentence that says what to do next."""

    exit_code = 3

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ConfigError(ClawmarkError):
    """A setting is wrong: which key, in which file, and why."""

    exit_code = 2

    def __init__(self, message: str, *, key: str = "", file: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.key = key
        self.file = file


class WorkspaceError(ClawmarkError):
    """A memory file or folder could not be used."""


class PathDenied(WorkspaceError):
    """A path that is not memory was requested; `rule` names what denied it."""

    exit_code = 4

    def __init__(self, message: str, *, path: str, rule: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.path = path
        self.rule = rule


class FileMissing(WorkspaceError):
    """A requested memory file does not exist."""


class WriteConflict(WorkspaceError):
    """The file changed since it was read."""

    exit_code = 4

    def __init__(
        self, message: str, *, path: str, base_hash: str, current_hash: str, hint: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.path = path
        self.base_hash = base_hash
        self.current_hash = current_hash


class NothingToUndo(WorkspaceError):
    """The last write cannot be taken back, or there is none; `diff` shows how the file has changed
    since, where the history knows that."""

    def __init__(self, message: str, *, hint: str = "", diff: str = "") -> None:
        super().__init__(message, hint=hint)
        self.diff = diff


class NotText(WorkspaceError):
    """A memory file is not text; it is refused until it changes."""


class WorkspaceReadOnly(WorkspaceError):
    """The workspace cannot be written to."""


class KeptForReview(WorkspaceError):
    """What an agent wanted to write is kept as a proposal, and the user decides about it.

    `proposal` is its id; empty if the user has rejected the same text before."""

    exit_code = 4

    def __init__(self, message: str, *, path: str, proposal: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.path = path
        self.proposal = proposal


class ReviewError(ClawmarkError):
    """A proposal does not exist, or was decided about already."""

    exit_code = 2


class ProposalDamaged(ReviewError):
    """The file of a proposal cannot be read."""

    exit_code = 5


class EmbeddingError(ClawmarkError):
    """An embedder could not do its work."""

    def __init__(self, message: str, *, provider: str, model: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.provider = provider
        self.model = model


class EmbeddingUnavailable(EmbeddingError):
    """A key, an extra or the connection is missing, or weights are damaged; keywords answer
    instead.
    """


class EmbeddingRejected(EmbeddingError):
    """The request itself is wrong; a retry cannot help."""


class EmbeddingMismatch(EmbeddingRejected):
    """The vectors have a different size than configured; the service is not used until the settings
    change.
    """

    exit_code = 2


class EmbeddingOverloaded(EmbeddingError):
    """The provider was still busy after the retries."""

    def __init__(
        self,
        message: str,
        *,
        provider: str,
        model: str = "",
        retry_after: float = 0.0,
        hint: str = "",
    ) -> None:
        super().__init__(message, provider=provider, model=model, hint=hint)
        self.retry_after = retry_after


class RerankError(ClawmarkError):
    """A reranker failed or timed out; hits keep their order."""


class CompletionError(ClawmarkError):
    """A request to a language model failed."""

    def __init__(self, message: str, *, provider: str, model: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.provider = provider
        self.model = model


class ContextTooLong(CompletionError):
    """The messages do not fit the model's context window."""


class IndexStoreError(ClawmarkError):
    """The index could not be used."""


class IndexBusy(IndexStoreError):
    """Another process holds the write lock."""


class IndexDamaged(IndexStoreError):
    """The index is damaged; it can be deleted and rebuilt."""

    exit_code = 5


class IndexFromTheFuture(IndexStoreError):
    """The index was written by a newer version of Clawmark."""

    exit_code = 5


class HistoryDamaged(ClawmarkError):
    """The history of the workspace cannot be read; the memory files are not affected."""

    exit_code = 5


class HistoryUnavailable(ClawmarkError):
    """The history of the workspace cannot be read or written now: a full disk, or permissions."""


class TombstonesDamaged(ClawmarkError):
    """The list of what was forgotten cannot be read; automatic writes wait until it is mended."""

    exit_code = 5


class BackendError(ClawmarkError):
    """A memory backend failed; `backend` names it."""

    def __init__(self, message: str, *, backend: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.backend = backend


class BackendUnavailable(BackendError):
    """The backend cannot answer now: it is not installed, does not start or takes too long."""


class BackendMisbehaved(BackendError):
    """The backend gave an answer that cannot be read."""


class SpaceDenied(ClawmarkError):
    """A shared space does not exist, or the caller may not read or write it."""

    exit_code = 4

    def __init__(self, message: str, *, space: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.space = space


class SpaceInputError(ClawmarkError):
    """What was given to a shared space cannot be used: a name, a path, a text or a key."""

    exit_code = 2

    def __init__(self, message: str, *, argument: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.argument = argument


class SpacesUnavailable(ClawmarkError):
    """The database or the server of the shared spaces does not answer, or refuses the caller."""


class PluginError(ClawmarkError):
    """A plugin cannot be used; `plugin` is its name, `owner` the distribution it comes from."""

    def __init__(self, message: str, *, plugin: str, owner: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.plugin = plugin
        self.owner = owner


class FilterError(ClawmarkError):
    """A filter of a search (`since`, `until`, `path`, `source`, `asOf`) is invalid; `argument`
    names it."""

    exit_code = 2

    def __init__(self, message: str, *, argument: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.argument = argument


class VersionMissing(FilterError):
    """There is no version of the memory files from the time that was asked for."""

    exit_code = 3


class QuestionError(ClawmarkError):
    """A question of an evaluation is invalid."""

    exit_code = 2


class ToolInputError(ClawmarkError):
    """A tool was called with invalid arguments."""

    exit_code = 2

    def __init__(self, message: str, *, argument: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.argument = argument
