"""Choose the embedders that `memorySearch.*` asks for, and say why.

The static embedder always comes first: it costs nothing, so new text has a vector before the better
one is made, and it answers while the better one cannot. Everything heavy is imported when it is
chosen; an embedder loads its weights, or connects, with its first text. Reading files and the
environment is left to the caller."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType

from clawmark.config.check import fill_in
from clawmark.config.schema import Remote
from clawmark.config.unsupported import OPENCLAW_PROVIDERS
from clawmark.embed.base import Choice, Embedder
from clawmark.embed.embedder_options import EmbedderContext, EmbeddingOptions
from clawmark.embed.local.static import MODEL, StaticEmbedder
from clawmark.embed.local.weights import HINT, OWN, SUFFIX, TEACHER, find_pack, has_numpy
from clawmark.model.errors import ClawmarkError, ConfigError, EmbeddingUnavailable
from clawmark.model.values import Degraded, Identity

BUILT_IN = ("auto", "default", "static", "local", "none")


def choose(options: EmbeddingOptions, context: EmbedderContext) -> Choice:
    """The embedders for `memorySearch.*`; raises ConfigError for an impossible configuration.

    A provider that is configured and cannot be used (no key, no extra) is a degraded choice, not an
    error: static vectors and keywords answer, and the reason says what is missing."""
    if options.provider == "none":
        return Choice((), "the provider is none: keywords answer alone", None)

    static = StaticEmbedder()
    if options.provider == "static":
        _check_static(options)
        return Choice((static,), "memorySearch.provider is static", None)
    if options.provider in ("auto", "default", ""):
        if not os.path.exists(os.path.expanduser(options.local_model_path)):
            # Written for another program, as OpenClaw's hf: addresses are.
            options = options._replace(local_model_path="")
        name, reason = _automatic_provider(options, context)
        if not name:
            return Choice(
                embedders=(static,),
                reason=reason,
                degraded=None,
                fallbacks=_fallbacks(options, context),
            )
    else:
        name, reason = options.provider, f"memorySearch.provider is {options.provider}"
    try:
        best = make(name, options, context)
    except EmbeddingUnavailable as error:
        fallbacks = _fallbacks(options, context)
        return Choice(
            embedders=(static, *fallbacks[:1]),
            reason=f"{reason}, but it cannot be used: {error.message}",
            degraded=Degraded(error.message, error.hint),
            fallbacks=fallbacks[1:],
            instead_of=name,
        )
    return Choice(
        embedders=(static, best),
        reason=reason,
        degraded=None,
        fallbacks=_fallbacks(options, context),
    )


def make(name: str, options: EmbeddingOptions, context: EmbedderContext) -> Embedder:
    """One embedder by its provider's name; raises EmbeddingUnavailable if something is missing."""
    if name == "local":
        return _local(options.local_model_path, options.model)
    entry = options.entries.get("google" if name == "gemini" else name)
    if name not in BUILT_IN and (entry is not None or name in _services().NAMES):
        # Imported late: the HTTP stack is not part of a local search.
        from clawmark.embed.services.make import make_from_entry, make_remote

        if entry is not None:
            return make_from_entry(name, entry, options, context)
        return make_remote(name, options, context)
    if name in OPENCLAW_PROVIDERS:
        raise EmbeddingUnavailable(
            f'The provider "{name}" is not supported.',
            provider=name,
            hint="Set memorySearch.provider to one of those in "
            "docs/how-to/use-a-provider.md, or remove it.",
        )
    # Imported late: listing the installed packages takes 40 ms.
    from clawmark.embed import plugins

    if name in BUILT_IN or plugins.find(name) is None:
        names = ", ".join((*BUILT_IN, *_services().NAMES, *plugins.names()))
        raise ConfigError(
            f'memorySearch.provider is "{name}", which is not a provider; known are {names}.',
            key="memorySearch.provider",
            hint='Set it to "auto" or remove it.',
        )
    return plugins.make(name, _plugin_options(options, context.environ), context.environ)


def revive(
    identity: Identity, options: EmbeddingOptions, context: EmbedderContext
) -> Embedder | None:
    """The embedder that made the vectors of a space, if it can still be made: it answers until its
    successor is complete.
    """
    # A configured key belongs to the configured provider and must not be sent to another company.
    is_same = identity.provider == options.provider
    options = options._replace(
        model=identity.model, dims=0, remote=options.remote if is_same else _shared(options.remote)
    )
    try:
        made = make(identity.provider, options, context)
    except ClawmarkError:
        return None
    return made if made.identity[:3] == identity[:3] else None


def _services() -> ModuleType:
    # Imported late: static vectors need no table of services.
    return import_module("clawmark.embed.known_services")


def _automatic_provider(options: EmbeddingOptions, context: EmbedderContext) -> tuple[str, str]:
    """The provider that `auto` selects, and why; an empty name for static vectors alone."""
    if options.local_model_path:
        return "local", f"memorySearch.local.modelPath is {options.local_model_path}"
    but = ""
    if options.provider != "default":
        environ = context.environ
        if options.remote.api_key and _has_configured_key(options, context):
            return "openai", "memorySearch.remote.apiKey is set"
        for name, variables in _services().LADDER.items():
            for variable in variables:
                if environ.get(variable, "").strip():
                    return name, f"{variable} is set"
        if environ.get("OLLAMA_HOST") or options.model.startswith("ollama/"):
            # Imported late: the HTTP stack is not part of a local search.
            from clawmark.embed.services.make import ollama_can_embed

            if ollama_can_embed(options, context):
                return "ollama", "Ollama is configured and has an embedding model"
            but = "; Ollama is configured, but does not answer or has no embedding model"

    if find_pack(TEACHER) and has_numpy():
        return "local", f"the local model is installed; static vectors come first{but}"
    return "", f"the local model is not installed: static vectors answer{but}"


def _has_configured_key(options: EmbeddingOptions, context: EmbedderContext) -> bool:
    """Whether `memorySearch.remote.apiKey` gives a key; the loader has warned of a reference to a
    variable that is not set.
    """
    # Imported late: the HTTP stack is not part of a local search.
    from clawmark.embed.services.settings import filled

    try:
        return bool(
            filled(options.remote.api_key, "memorySearch.remote.apiKey", context.environ).strip()
        )
    except ConfigError:
        return False


def _local(path: str, name: str) -> Embedder:
    """The model file or folder at `path`, or the model of this name: by default that of the extra
    `local`, and without the extra Clawmark's own.
    """
    given = os.path.expanduser(path)
    is_path = os.sep in given or ":" in given or given.endswith((".gguf", ".onnx", SUFFIX))
    if is_path and not os.path.exists(given):
        raise ConfigError(
            f'memorySearch.local.modelPath is "{path}", which does not exist.',
            key="memorySearch.local.modelPath",
            hint="Remove the key to use the model that comes with Clawmark.",
        )
    # Imported late: a search with static vectors needs none of these.
    if given and not given.endswith(SUFFIX):
        from clawmark.embed.local import gguf, onnx

        embedder = gguf.make(given) if given.endswith(".gguf") else onnx.make(given)
        _ = embedder.identity  # hashes the file, so that an unreadable one is noticed here
        return embedder
    is_teacher = given or name == TEACHER.name or (name != OWN.name and find_pack(TEACHER))
    model = TEACHER if is_teacher else OWN
    pack = given or find_pack(model)
    if pack and has_numpy():
        from clawmark.embed.local.transformer import TransformerEmbedder

        return TransformerEmbedder(pack, model)
    missing = "Numpy is" if pack else f"The weights of {model.name} are"
    raise EmbeddingUnavailable(f"{missing} not installed.", provider="local", hint=HINT)


def _plugin_options(options: EmbeddingOptions, environ: Mapping[str, str]) -> dict[str, object]:
    """What a plugin is given: the model, the size, and the keys of `memorySearch.remote` that are
    not at their defaults, by the names they have in a file.
    """
    # Imported late: only plugins need the table.
    from clawmark.config.keys import KEYS

    given: dict[str, object] = {"model": options.model, "dims": options.dims}
    for key in KEYS:
        if key.attributes[:2] != ("memory_search", "remote"):
            continue
        value: object = options.remote
        for attribute in key.attributes[2:]:
            value = getattr(value, attribute)
        if value != key.default:
            name = key.name.removeprefix("memorySearch.remote.")
            given[name] = fill_in(value, key.name, environ) if isinstance(value, str) else value
    return given


def _fallbacks(options: EmbeddingOptions, context: EmbedderContext) -> tuple[Embedder, ...]:
    """The configured fallbacks that can be made, in order; raises ConfigError for a name that is
    not a provider.
    """
    made = []
    for name in options.fallback:
        if name == "static":
            continue  # it is always there
        _check_fallback(name, options)
        own = options._replace(model="", dims=0, remote=_shared(options.remote))
        try:
            made.append(make(name, own, context))
        except (EmbeddingUnavailable, ConfigError):
            continue
    return tuple(made)


def _shared(remote: Remote) -> Remote:
    """The settings that hold for every provider: the budget and the proxy, never an address or a
    key.
    """
    return Remote(daily_tokens=remote.daily_tokens, proxy=remote.proxy)


def _check_static(options: EmbeddingOptions) -> None:
    if options.model and options.model != MODEL:
        raise ConfigError(
            f'memorySearch.model is "{options.model}", but the provider "static" has one model, '
            f'"{MODEL}".',
            key="memorySearch.model",
            hint="Remove the key.",
        )


def _check_fallback(name: str, options: EmbeddingOptions) -> None:
    """Raise ConfigError for a name that is not a provider: the user relies on it when the first one
    fails.
    """
    if name in ("local", *_services().NAMES, *options.entries):
        return
    # Imported late: listing the installed packages takes 40 ms.
    from clawmark.embed import plugins

    others = plugins.names()
    if name in BUILT_IN or name not in others:
        raise ConfigError(
            f'memorySearch.fallback names "{name}", which cannot be a fallback; '
            f"what can is {', '.join(('local', *_services().NAMES, *others))}.",
            key="memorySearch.fallback",
            hint="Correct the name or remove it.",
        )
