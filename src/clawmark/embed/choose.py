"""Which embedders answer: the words of the configuration in, embedders and the reason for them out.

Nothing heavy is imported to find out: embedders load with their first text, remote ones with their
first request. The static tier always comes first, whatever is chosen: it is free and instant, so
new text has a vector before the better one is made, and it answers while that one cannot. Reading
files and the environment is left to the caller."""

import os
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import NamedTuple

from clawmark.config.load import fill_in
from clawmark.config.unsupported import OPENCLAW_PROVIDERS
from clawmark.embed import plugins
from clawmark.embed.base import Choice, Embedder
from clawmark.embed.local import gguf, onnx
from clawmark.embed.local.granite import GraniteEmbedder
from clawmark.embed.local.static import MODEL, StaticEmbedder
from clawmark.embed.local.weights import HINT, SUFFIX, find_pack, has_numpy
from clawmark.embed.services import compatible
from clawmark.embed.services.ledger import Ledger
from clawmark.embed.services.ollama import list_models
from clawmark.embed.services.remote import RemoteEmbedder
from clawmark.embed.services.settings import batch_options, remote_options
from clawmark.embed.services.wire import provider_key
from clawmark.model.errors import ClawmarkError, ConfigError, EmbeddingUnavailable
from clawmark.model.providers import PROVIDERS, embedding_facts
from clawmark.model.values import Degraded, Identity
from clawmark.net.circuit_breaker import Breaker
from clawmark.net.client import HttpError

BUILT_IN = ("auto", "default", "static", "local", "none")
_EMBEDDING = {name: row.embedding for name, row in PROVIDERS.items() if row.embedding}
REMOTE = tuple(name for name, facts in _EMBEDDING.items() if not facts.is_compatible)
COMPATIBLE = tuple(name for name, facts in _EMBEDDING.items() if facts.is_compatible)
LADDER = {
    name: PROVIDERS[name].keys + PROVIDERS[name].other_secrets
    for name, facts in _EMBEDDING.items()
    if facts.is_auto
}
"""Where `auto` looks for keys, first found first."""

LONG_LOOK = 0.5
"""Seconds that an Ollama may take to say no.

One that is not started does so at once, and is seen as soon as it is.
"""


class Wanted(NamedTuple):
    """What the configuration says about embedding."""

    provider: str = "auto"
    model: str = ""
    dims: int = 0
    local_model_path: str = ""
    fallback: tuple[str, ...] = ()
    remote: Mapping[str, object] = {}
    entries: Mapping[str, Mapping[str, object]] = {}
    """OpenClaw's `models.providers`: services by name."""


class Surroundings(NamedTuple):
    """What an embedder may need beside its settings."""

    environ: Mapping[str, str]
    state_dir: str
    """Where the ledger, the breakers and the batch jobs are kept."""
    batch_dir: str
    dims_of: Callable[[str, str, str], int]
    """(provider, model, provider key) -> the size of the vectors the index already has, or 0."""


def choose(wanted: Wanted, around: Surroundings) -> Choice:
    """The embedders for `memorySearch.*`; raises ConfigError for what cannot be meant.

    A provider that is configured and cannot be used (no key, no extra) is a degraded choice, not an
    error: the static tier and keywords answer, and the reason says what is missing."""
    if wanted.provider == "none":
        return Choice((), "the provider is none: keywords answer alone", None)

    static = StaticEmbedder()
    if wanted.provider == "static":
        _check_static(wanted)
        return Choice((static,), "memorySearch.provider is static", None)
    if wanted.provider in ("auto", "default", ""):
        if not os.path.exists(os.path.expanduser(wanted.local_model_path)):
            wanted = wanted._replace(
                local_model_path=""
            )  # made for another program, as OpenClaw's hf: addresses are
        name, reason = _ladder(wanted, around)
        if not name:
            return Choice(
                embedders=(static,),
                reason=reason,
                degraded=None,
                fallbacks=_fallbacks(wanted, around),
            )
    else:
        name, reason = wanted.provider, f"memorySearch.provider is {wanted.provider}"
    try:
        best = make(name, wanted, around)
    except EmbeddingUnavailable as error:
        reason = f"{reason}, but it cannot be used: {error.message}"
        degraded, stand_ins = Degraded(error.message, error.hint), _fallbacks(wanted, around)
        return Choice(
            embedders=(static, *stand_ins[:1]),
            reason=reason,
            degraded=degraded,
            fallbacks=stand_ins[1:],
            instead_of=name,
        )
    return Choice(
        embedders=(static, best), reason=reason, degraded=None, fallbacks=_fallbacks(wanted, around)
    )


def make(name: str, wanted: Wanted, around: Surroundings) -> Embedder:
    """One embedder by its provider's name; EmbeddingUnavailable when something it needs is missing."""
    if name == "local":
        return _local(wanted.local_model_path)
    entry = wanted.entries.get("google" if name == "gemini" else name)
    if entry is not None and name not in BUILT_IN:
        return _from_entry(name, entry, wanted, around)
    if name in REMOTE or name in COMPATIBLE:
        return _remote(name, wanted, around)

    if name in OPENCLAW_PROVIDERS:
        hint = (
            "Set memorySearch.provider to one of those in "
            "docs/how-to/use-a-provider.md, or remove it."
        )
        raise EmbeddingUnavailable(
            f'The provider "{name}" is not supported.', provider=name, hint=hint
        )

    if name in BUILT_IN or plugins.find(name) is None:
        raise _unknown(name)

    options: dict[str, object] = {"model": wanted.model, "dims": wanted.dims}
    for key, value in wanted.remote.items():
        is_text = isinstance(value, str)
        options[key] = (
            fill_in(str(value), f"memorySearch.remote.{key}", around.environ) if is_text else value
        )
    return plugins.make(name, options, around.environ)


def revive(identity: Identity, wanted: Wanted, around: Surroundings) -> Embedder | None:
    """The embedder that made the vectors of a space, if it can still be had: it answers until its
    successor is complete.
    """
    # A key that is configured belongs to the provider that is configured, and must not go to
    # another company.
    remote = wanted.remote if identity.provider == wanted.provider else _common(wanted)
    try:
        made = make(
            identity.provider, wanted._replace(model=identity.model, dims=0, remote=remote), around
        )
    except ClawmarkError:
        return None
    return made if made.identity[:3] == identity[:3] else None


def _ladder(wanted: Wanted, around: Surroundings) -> tuple[str, str]:
    """The provider that `auto` comes to, and why; no name for the static tier alone."""
    if wanted.local_model_path:
        return "local", f"memorySearch.local.modelPath is {wanted.local_model_path}"
    but = ""
    if wanted.provider != "default":
        if _has_configured_key(wanted, around):
            return "openai", "memorySearch.remote.apiKey is set"
        for name, variables in LADDER.items():
            found = next(
                (variable for variable in variables if around.environ.get(variable, "").strip()), ""
            )
            if found:
                return name, f"{found} is set"
        if around.environ.get("OLLAMA_HOST") or wanted.model.startswith("ollama/"):
            if _ollama_can_embed(wanted, around):
                return "ollama", "Ollama is configured and has an embedding model"
            but = "; Ollama is configured, but does not answer or has no embedding model"

    if find_pack() and has_numpy():
        return "local", f"the local model is installed; static vectors come first{but}"
    return "", f"the local model is not installed: static vectors answer{but}"


def _has_configured_key(wanted: Wanted, around: Surroundings) -> bool:
    """Whether there is a key of the configuration's own; a reference that leads nowhere is none,
    and was warned of.
    """
    if not wanted.remote.get("apiKey"):
        return False

    try:
        return bool(
            remote_options(
                "", 0, {"apiKey": wanted.remote["apiKey"]}, around.environ
            ).api_key.strip()
        )
    except ConfigError:
        return False


def _ollama_can_embed(wanted: Wanted, around: Surroundings) -> bool:
    """Asked only where Ollama is configured, for a second at most; one that let us wait is left
    alone for a minute.
    """
    breaker = Breaker(os.path.join(around.state_dir, "providers", "ollama-models.json"))
    began = time.monotonic()
    try:
        breaker.check("ollama")
        options = remote_options(wanted.model, wanted.dims, wanted.remote, around.environ)
        models = list_models(options, around.environ, seconds=1.0)
    except (HttpError, ValueError, ClawmarkError):
        if time.monotonic() - began > LONG_LOOK:
            breaker.failed("it did not answer in time")
        return False
    breaker.succeeded()
    return bool(models)


def _local(path: str) -> Embedder:
    """A model file or folder that was named, or the weights of the `local` extra."""
    given = os.path.expanduser(path)
    is_path = os.sep in given or ":" in given or given.endswith((".gguf", ".onnx", SUFFIX))
    if is_path and not os.path.exists(given):
        raise ConfigError(
            f'memorySearch.local.modelPath is "{path}", which does not exist.',
            key="memorySearch.local.modelPath",
            hint="Remove the key to use the model that comes with `pip install 'clawmark[local]'`.",
        )
    if given.endswith(".gguf"):
        return _named(gguf.make(given))
    if given and not given.endswith(SUFFIX):
        return _named(onnx.make(given))
    pack = given or find_pack()
    if pack and has_numpy():
        return GraniteEmbedder(pack)
    missing = "Numpy is" if pack else "The weights of the local model are"
    raise EmbeddingUnavailable(f"{missing} not installed.", provider="local", hint=HINT)


def _named(embedder: Embedder) -> Embedder:
    """The embedder of a model file, named by the hash of its bytes: found out here, where a bad
    file is a bad choice.
    """
    _ = embedder.identity
    return embedder


def _remote(name: str, wanted: Wanted, around: Surroundings) -> Embedder:
    options = remote_options(wanted.model, wanted.dims, wanted.remote, around.environ)
    if name in COMPATIBLE:
        provider = compatible.provider(options, around.environ, name)
    else:
        provider = import_module(f"clawmark.embed.services.{name}").provider(
            options, around.environ
        )
    key = provider_key(provider.key_facts)

    def known_dims() -> int:
        return around.dims_of(provider.name, provider.model, key)

    if not provider.dims:
        provider = provider._replace(dims=known_dims())
    budget = wanted.remote.get("dailyTokens")
    return RemoteEmbedder(
        provider,
        breaker=Breaker(os.path.join(around.state_dir, "providers", f"{key[:16]}.json")),
        ledger=Ledger(
            os.path.join(around.state_dir, "ledger.json"),
            daily_tokens=budget if isinstance(budget, int) else 0,
        ),
        proxy=fill_in(
            str(wanted.remote.get("proxy") or ""), "memorySearch.remote.proxy", around.environ
        ),
        batch=batch_options(wanted.remote),
        batch_dir=around.batch_dir,
        has_worked=lambda: known_dims() == provider.dims,
    )


def _from_entry(
    name: str, entry: Mapping[str, object], wanted: Wanted, around: Surroundings
) -> Embedder:
    """A service that `models.providers` describes. `memorySearch.remote` comes first; the entry's
    key is sent to the entry's address only."""
    own = {
        part: entry[part]
        for part in ("baseUrl", "apiKey")
        if isinstance(entry.get(part), (str, dict))
    }
    headers = entry.get("headers")
    if isinstance(headers, dict):
        own["headers"] = {header: text for header, text in headers.items() if isinstance(text, str)}
    remote = wanted.remote if wanted.remote.get("baseUrl") else {**own, **wanted.remote}
    if name in REMOTE or name in COMPATIBLE:
        return _remote(name, wanted._replace(remote=remote), around)
    language = str(entry.get("api") or "openai-completions")
    if language != "ollama" and not language.startswith("openai"):
        raise EmbeddingUnavailable(
            f'models.providers.{name} has the api "{language}", which has no embeddings.',
            provider=name,
            hint="Set memorySearch.provider to a service that makes embeddings.",
        )
    spoken = "ollama" if language == "ollama" else "openai-compatible"
    model = wanted.model.removeprefix(f"{name}/") or (
        "" if spoken == "ollama" else embedding_facts("openai").model
    )
    try:
        return _remote(spoken, wanted._replace(model=model, remote=remote), around)
    except ConfigError as error:
        raise EmbeddingUnavailable(
            f"models.providers.{name} cannot be used: {error.message}",
            provider=name,
            hint=error.hint,
        ) from None


def _fallbacks(wanted: Wanted, around: Surroundings) -> tuple[Embedder, ...]:
    """The configured stand-ins that can be made; one that cannot is as if it were not there, but a
    wrong name is told.
    """
    made = []
    for name in wanted.fallback:
        if name == "static":
            continue  # it is always there
        _check_stand_in(name, wanted)
        try:
            made.append(
                make(name, wanted._replace(model="", dims=0, remote=_common(wanted)), around)
            )
        except (EmbeddingUnavailable, ConfigError):
            continue
    return tuple(made)


def _common(wanted: Wanted) -> dict[str, object]:
    """Of the remote settings those that hold for every provider: the budget and the proxy, never an
    address or a key.
    """
    return {name: wanted.remote[name] for name in ("dailyTokens", "proxy") if name in wanted.remote}


def _check_static(wanted: Wanted) -> None:
    if wanted.model and wanted.model != MODEL:
        raise ConfigError(
            f'memorySearch.model is "{wanted.model}", but the provider "static" has one model, '
            f'"{MODEL}".',
            key="memorySearch.model",
            hint="Remove the key.",
        )


def _check_stand_in(name: str, wanted: Wanted) -> None:
    """Raise ConfigError for what is no provider: somebody counts on it to be there when the first
    one fails.
    """
    if name in ("local", *REMOTE, *COMPATIBLE, *wanted.entries):
        return

    others = plugins.names()
    if name in BUILT_IN or name not in others:
        raise ConfigError(
            f'memorySearch.fallback names "{name}", which cannot stand in; '
            f"what can is {', '.join(('local', *REMOTE, *COMPATIBLE, *others))}.",
            key="memorySearch.fallback",
            hint="Correct the name or remove it.",
        )


def _unknown(provider: str) -> ConfigError:
    names = ", ".join((*BUILT_IN, *REMOTE, *COMPATIBLE, *plugins.names()))
    return ConfigError(
        f'memorySearch.provider is "{provider}", which is no provider; known are {names}.',
        key="memorySearch.provider",
        hint='Set it to "auto" or remove it.',
    )
