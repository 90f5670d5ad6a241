"""Embedders of third parties, found by the entry point group `clawmark.embedders`.

An entry point names a function `make(options, environ) -> Embedder`; only the requested one is
imported. A failure in a plugin (an import, a call, a wrong answer) becomes an
EmbeddingUnavailable or EmbeddingRejected that names the distribution and the entry point, so that
the search continues with keywords. An embedder object given by a program is guarded in the same
way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from clawmark.embed.base import Embedder, Traits, check_vectors
from clawmark.embed.local.model_file import plain
from clawmark.model.errors import EmbeddingError, EmbeddingUnavailable
from clawmark.model.values import Identity, Vector
from clawmark.net.headers import secrets_of
from clawmark.system.entry_points import installed, owner_of
from clawmark.text.secrets.redact import Redactor

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "clawmark.embedders"
_T = TypeVar("_T")
_HANDED_OVER = (
    "It was given to Memory.open(embedder=…); "
    "`clawmark.testing.embedder_contract` says which promise it breaks."
)


def find(name: str) -> EntryPoint | None:
    """The entry point of that name, not imported; raises EmbeddingUnavailable if several
    distributions have one.
    """
    found = installed(GROUP, name)
    if len(found) > 1:
        owners = " and ".join(sorted({owner_of(point) for point in found}))
        message = f'The embedder "{name}" is offered more than once: by {owners}.'
        raise EmbeddingUnavailable(message, provider=name, hint="Uninstall all but one of them.")
    return found[0] if found else None


def names() -> tuple[str, ...]:
    """The names of all installed plugins, for messages."""
    return tuple(sorted({point.name for point in installed(GROUP)}))


def make(name: str, options: Mapping[str, object], environ: Mapping[str, str]) -> Embedder:
    """The embedder of that name, guarded; raises EmbeddingUnavailable if it cannot be made."""
    point = find(name)
    if point is None:
        message = f'No installed package offers an embedder called "{name}".'
        raise EmbeddingUnavailable(
            message, provider=name, hint="Install the package that has it, or correct the name."
        )
    owner = owner_of(point)
    whose = f'The embedder "{point.name}" of {owner} ({point.value})'
    hint = f'Ask the authors of {owner}, or set memorySearch.provider to "auto".'
    guard = _Guard(whose, point.name, hint, options, environ)
    function: Callable[[Mapping[str, object], Mapping[str, str]], Embedder] = guard.run(
        "cannot be imported", point.load
    )
    if not callable(function):
        raise guard.error("is not a function")
    made = guard.run("failed", lambda: function(options, environ))
    if not all(
        callable(getattr(made, verb, None)) for verb in ("covers", "embed_texts", "embed_query")
    ):
        raise guard.error(f"gave a {type(made).__name__}, which is not an embedder")
    embedder = GuardedEmbedder(made, guard)
    # Read at once, so that a broken plugin is refused here and not in the middle of a sync.
    _ = embedder.identity, embedder.traits
    return embedder


def guarded(embedder: Embedder, environ: Mapping[str, str]) -> Embedder:
    """An embedder given by a program, guarded unless it is one of Clawmark's own."""
    kind = type(embedder)
    if kind.__module__.startswith("clawmark.embed."):
        return embedder
    return GuardedEmbedder(
        embedder, _Guard(f"The embedder {kind.__name__}", kind.__name__, _HANDED_OVER, {}, environ)
    )


class GuardedEmbedder:
    """A third-party embedder: its vectors are checked, and its exceptions become errors that name
    its origin.
    """

    def __init__(self, embedder: Embedder, guard: _Guard) -> None:
        self._embedder = embedder
        self._guard = guard
        self._identity: Identity | None = None

    @property
    def identity(self) -> Identity:
        if self._identity is None:
            given = self._guard.run("cannot give its identity", lambda: self._embedder.identity)
            if not isinstance(given, Identity) or type(given.dims) is not int or given.dims < 1:
                raise self._guard.error("gives an invalid identity")
            self._identity = given
        return self._identity

    @property
    def traits(self) -> Traits:
        traits = self._guard.run("cannot give its traits", lambda: self._embedder.traits)
        if not isinstance(traits, Traits):
            raise self._guard.error("gives invalid traits")
        return traits

    def covers(self, text: str) -> bool:
        try:
            return bool(self._guard.run("failed", lambda: self._embedder.covers(text)))
        except EmbeddingError:
            return True  # callers do not expect an error here; embedding the text raises it

    def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        vectors = self._guard.run(
            "failed", lambda: self._vectors(self._embedder.embed_texts(texts))
        )
        check_vectors(vectors, len(texts), self.identity)
        return vectors

    def embed_query(self, text: str) -> Vector:
        vectors = self._guard.run(
            "failed", lambda: self._vectors([self._embedder.embed_query(text)])
        )
        check_vectors(vectors, 1, self.identity)
        return vectors[0]

    def close(self) -> None:
        """Close the embedder together with its memory."""
        close = getattr(self._embedder, "close", None)
        if close is not None:
            close()

    def _vectors(self, given: Sequence[Vector]) -> list[Vector]:
        """Refuse vectors that are not packed, such as lists of floats, the likeliest mistake."""
        for vector in given:
            if not isinstance(vector, bytes):
                raise TypeError(f"a vector is packed float32 bytes, not a {type(vector).__name__}")
        return list(given)


class _Guard:
    """Runs the code of a plugin and turns its exceptions into errors that name the plugin."""

    def __init__(
        self,
        whose: str,
        provider: str,
        hint: str,
        options: Mapping[str, object],
        environ: Mapping[str, str],
    ) -> None:
        self._whose, self._provider, self._hint = whose, provider, hint
        self._given = options, environ

    def run(self, what: str, call: Callable[[], _T]) -> _T:
        try:
            return call()
        except EmbeddingError:
            raise
        except Exception as error:  # boundary of a plugin call
            raise self.error(f"{what} ({self._error_text(error)})") from error

    def _error_text(self, error: Exception) -> str:
        """The text of an error, on one line and without the keys that the plugin was given."""
        options, environ = self._given
        headers = options.get("headers")
        named = {**environ, **options, **(headers if isinstance(headers, Mapping) else {})}
        hidden = secrets_of(
            (), {name: value for name, value in named.items() if isinstance(value, str)}
        )
        return plain(f"{type(error).__name__}: {Redactor(hidden).clean(str(error))}").removesuffix(
            ":"
        )

    def error(self, what: str) -> EmbeddingUnavailable:
        return EmbeddingUnavailable(
            f"{self._whose} {what}.", provider=self._provider, hint=self._hint
        )
