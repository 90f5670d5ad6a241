"""Which model a name stands for: `openai:gpt-4o-mini` in; a completer out, and how much that model
can hold.

A name is `provider:model`, as `anthropic:claude-sonnet-4-5`, `gemini:gemini-2.5-flash` or
`ollama:qwen3`; OpenClaw's `provider/model` means the same. With `@https://…` behind it the model is
at that address; an address alone is any server that speaks like OpenAI. Keys come from the
environment, under each provider's own variable, and an address alone gets only the key that was
meant for it. Talking to the model is left to `openai_chat` and `anthropic_chat`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from clawmark.agent.models.anthropic_chat import AnthropicChat
from clawmark.agent.models.completer import Completer
from clawmark.agent.models.openai_chat import OpenAIChat
from clawmark.config.urls import problem_with
from clawmark.model.errors import ConfigError
from clawmark.model.providers import MODEL_KEY
from clawmark.model.providers import PROVIDERS as FACTS

OWN_KEY = MODEL_KEY


class Provider(NamedTuple):
    """What a provider's name stands for."""

    base_url: str
    keys: tuple[str, ...] = ()
    """The variables its key may be in; none where none is needed."""
    window: int = 128_000


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
"""Documented context windows; the first that fits counts."""


class ModelName(NamedTuple):
    """A model, taken apart; `provider` is empty for an address alone."""

    provider: str
    model: str
    base_url: str

    @property
    def window(self) -> int:
        """How many tokens it holds, as far as its name tells."""
        known = next((size for pattern, size in _WINDOWS if re.search(pattern, self.model)), 0)
        return known or PROVIDERS.get(self.provider, _OWN).window


def parse_model(name: str) -> ModelName:
    """Take a name apart; raises ConfigError for one that means nothing."""
    name = name.strip()
    found = re.fullmatch(r"(?:(.*)@)?(https?://\S+)", name)
    named, base_url = (found[1] or "", found[2]) if found else (name, "")
    if base_url:
        _check_address(base_url)
    provider, model = _split(named)
    if base_url and not provider:
        # Servers with one model take any name for it.
        return ModelName("", named or "default", base_url.rstrip("/"))
    if not provider or not model:
        raise ConfigError(
            f"{name[:80]!r} names no model that Clawmark can talk to.",
            key="agents.defaults.model",
            hint='Use "openai:…", "anthropic:…", "gemini:…", "ollama:…", or '
            "the address of a server like OpenAI's.",
        )
    return ModelName(provider, model, base_url.rstrip("/") or PROVIDERS[provider].base_url)


def choose_completer(name: str, environ: Mapping[str, str]) -> Completer:
    """The model of that name, ready to be asked; raises ConfigError when its key is missing."""
    provider, model, base_url = parsed = parse_model(name)
    key = find_model_key(parsed, environ)
    if provider == "anthropic":
        return AnthropicChat(model, key=key, base_url=base_url)

    return OpenAIChat(model, key=key, base_url=base_url, provider=provider or "model")


def find_model_key(name: ModelName, environ: Mapping[str, str]) -> str:
    """The key for a model; raises ConfigError when its provider wants one and there is none."""
    variables = PROVIDERS[name.provider].keys if name.provider else (OWN_KEY,)
    key = next((environ[one].strip() for one in variables if environ.get(one, "").strip()), "")
    if key and not (key.isascii() and key.isprintable()):
        raise ConfigError(
            f"The key in {variables[0]} holds characters that no key has.",
            hint=f"Set {variables[0]} again.",
        )
    is_own_address = not name.provider or name.base_url != PROVIDERS[name.provider].base_url
    if variables and not key and not is_own_address:
        raise ConfigError(
            f"There is no key for {name.provider}:{name.model}: {variables[0]} is not set.",
            key="agents.defaults.model",
            hint=f"Set {variables[0]}, or choose another model.",
        )
    return key


def _split(name: str) -> tuple[str, str]:
    """Provider and model; no provider when the name begins with none of ours.

    Models have `:` and `/` in their names too.
    """
    found = re.match(r"([a-z]+)[:/](.*)", name)
    provider = _ALIASES.get(found[1], found[1]) if found else ""
    return (provider, found[2].strip()) if found and provider in PROVIDERS else ("", name)


def _check_address(url: str) -> None:
    problem = problem_with(url)
    if problem:
        raise ConfigError(
            f"The address of the model is refused: {problem}.", key="agents.defaults.model"
        )
