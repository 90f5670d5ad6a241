"""The chat models that a configuration can name.

A name is `provider:model`, as in `anthropic:claude-sonnet-4-5`, `gemini:gemini-2.5-flash` or
`ollama:qwen3`; OpenClaw's `provider/model` means the same. With `@https://…` appended, the model is
at that address; an address alone is any server with OpenAI's API. Keys come from the environment:
each provider has its own variable, and an address alone only gets the key that was set for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import NamedTuple

from clawmark.agent.models.completer import Completer, Completion, Message, Tool
from clawmark.config.urls import problem_with
from clawmark.model.errors import CompletionError, ConfigError
from clawmark.model.providers import MODEL_KEY
from clawmark.model.providers import PROVIDERS as FACTS

OWN_KEY = MODEL_KEY
"""The environment variable with the key for a model at the user's own address."""


class Provider(NamedTuple):
    """A service that runs chat models."""

    base_url: str
    keys: tuple[str, ...] = ()
    """Environment variables that may hold its key; empty if it needs none."""
    window: int = 128_000
    """Context window in tokens of a model that is not in `_WINDOWS`.

    If it is too low, conversations are flushed too early; if it is too high, too late.
    """


PROVIDERS: dict[str, Provider] = {
    name: Provider(
        base_url=row.chat.base_url,
        keys=row.keys if row.chat.needs_key else (),
        window=row.chat.context_tokens,
    )
    for name, row in FACTS.items()
    if row.chat
}
_ALIASES = {"google": "gemini"}
_OWN = Provider("", window=32_768)

_WINDOWS = (
    (r"claude", 200_000),
    (r"gpt-4\.1|gemini-(1\.5|2|3)", 1_000_000),
    (r"gpt-5", 400_000),
    (r"^o[134]", 200_000),
    (r"gpt-4o|gpt-4-turbo", 128_000),
    (r"gpt-4(-|$)", 8_192),
    (r"gpt-3\.5", 16_385),
)
"""Documented context windows; the first match counts."""


class ModelName(NamedTuple):
    """A parsed model name; `provider` is empty for an address alone."""

    provider: str
    model: str
    base_url: str

    @property
    def window(self) -> int:
        """Return the size of the context window in tokens, judged by the name."""
        known = next((size for pattern, size in _WINDOWS if re.search(pattern, self.model)), 0)
        return known or PROVIDERS.get(self.provider, _OWN).window


def parse_model(name: str) -> ModelName:
    """Parse a name; raises ConfigError if it does not name a model."""
    name = name.strip()
    found = re.fullmatch(r"(?:(.*)@)?(https?://\S+)", name)
    named, base_url = (found[1] or "", found[2]) if found else (name, "")
    if base_url:
        _check_address(base_url)
    provider, model = _split(named)
    if base_url and not provider:
        # Servers with a single model accept any name.
        return ModelName("", named or "default", base_url.rstrip("/"))
    if not provider or not model:
        raise ConfigError(
            f"{name[:80]!r} is not the name of a chat model.",
            key="agents.defaults.model",
            hint='Use "openai:…", "anthropic:…", "gemini:…", "ollama:…", or '
            "the address of a server like OpenAI's.",
        )
    return ModelName(provider, model, base_url.rstrip("/") or PROVIDERS[provider].base_url)


class ChatModel:
    """A completer for one model; safe to use from several threads."""

    def __init__(self, name: ModelName, key: str = "") -> None:
        self.name = name
        self._key = key

    def __repr__(self) -> str:
        return f"<{self.name.provider or self.name.base_url}:{self.name.model}>"

    def complete(
        self,
        system: str,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        seconds: float = 60.0,
    ) -> Completion:
        """Return the next message within `seconds`; raises CompletionError."""
        require_chat_extra()
        # Imported late: pydantic-ai is an optional extra and takes a second to load.
        from clawmark.agent.models.pydantic_models import complete

        return complete(self.name, self._key, system, messages, tools, seconds)


def choose_completer(name: str, environ: Mapping[str, str]) -> Completer:
    """Return the model of that name; raises ConfigError if its key is missing."""
    parsed = parse_model(name)
    return ChatModel(parsed, find_model_key(parsed, environ))


def require_chat_extra() -> None:
    """Raise CompletionError if the libraries of the extra `chat` are not installed."""
    if any(find_spec(library) is None for library in ("pydantic_ai", "openai", "anthropic")):
        raise CompletionError(
            "Chat models need the extra `chat`.",
            provider="model",
            hint="Install it with: pip install 'clawmark[chat]'",
        )


def find_model_key(name: ModelName, environ: Mapping[str, str]) -> str:
    """Return the key for a model; raises ConfigError if its provider needs one and none is set."""
    variables = PROVIDERS[name.provider].keys if name.provider else (OWN_KEY,)
    key = next((environ[one].strip() for one in variables if environ.get(one, "").strip()), "")
    if key and not (key.isascii() and key.isprintable()):
        raise ConfigError(
            f"The key in {variables[0]} contains characters that are not allowed in a key.",
            hint=f"Set {variables[0]} again.",
        )
    is_own_address = not name.provider or name.base_url != PROVIDERS[name.provider].base_url
    if variables and not key and not is_own_address:
        raise ConfigError(
            f"The key for {name.provider}:{name.model} is missing: {variables[0]} is not set.",
            key="agents.defaults.model",
            hint=f"Set {variables[0]}, or choose another model.",
        )
    return key


def _split(name: str) -> tuple[str, str]:
    """Split into provider and model; model names may contain `:` and `/` as well."""
    found = re.match(r"([a-z]+)[:/](.*)", name)
    provider = _ALIASES.get(found[1], found[1]) if found else ""
    return (provider, found[2].strip()) if found and provider in PROVIDERS else ("", name)


def _check_address(url: str) -> None:
    problem = problem_with(url)
    if problem:
        raise ConfigError(
            f"The address of the model is refused: {problem}.", key="agents.defaults.model"
        )
