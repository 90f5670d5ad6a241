"""Read the configuration of conversations: settings and models.

A configured model that cannot be used (unknown provider, missing key) is an error for a caller that
needs it; a conversation continues without it and logs a warning."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import NamedTuple

from clawmark.agent.flush.flush import FlushSettings
from clawmark.agent.models.completer import Completer
from clawmark.agent.models.models import choose_completer, parse_model
from clawmark.agent.notes.session_note import NoteSettings
from clawmark.agent.session.session import Rollover
from clawmark.config.keys import BY_NAME
from clawmark.model.errors import ConfigError

UNKNOWN_WINDOW = 200_000
"""Tokens, if a host passes its own model without a context window; OpenClaw's default."""

_COMPACTION = "agents.defaults.compaction."
_FLUSH = _COMPACTION + "memoryFlush."
_HOOKS = "hooks.internal."
_NOTE = _HOOKS + "entries.session-memory."
_RESET = "session.reset."

Runtime = Mapping[str, object]
"""`Settings.runtime`: configured values by key."""


class Models(NamedTuple):
    """The models of a conversation, if there are any."""

    usual: Completer | None
    """Names session notes and curates."""
    flushing: Completer | None
    window: int


def flush_settings(runtime: Runtime) -> FlushSettings:
    """`agents.defaults.compaction`."""
    return FlushSettings(
        enabled=_flag(runtime, _FLUSH + "enabled"),
        reserve_tokens_floor=_number(runtime, _COMPACTION + "reserveTokensFloor"),
        soft_threshold_tokens=_number(runtime, _FLUSH + "softThresholdTokens"),
        force_flush_transcript_bytes=_number(runtime, _FLUSH + "forceFlushTranscriptBytes"),
        prompt=_text(runtime, _FLUSH + "prompt"),
        system_prompt=_text(runtime, _FLUSH + "systemPrompt"),
    )


def note_settings(runtime: Runtime) -> NoteSettings:
    """`hooks.internal`."""
    return NoteSettings(
        enabled=_flag(runtime, _HOOKS + "enabled") and _flag(runtime, _NOTE + "enabled"),
        messages=_number(runtime, _NOTE + "messages"),
        llm_slug=_flag(runtime, _NOTE + "llmSlug"),
    )


def rollover_settings(runtime: Runtime) -> Rollover:
    """`session.reset`."""
    mode = _text(runtime, _RESET + "mode")
    hour, minutes = _number(runtime, _RESET + "atHour"), _number(runtime, _RESET + "idleMinutes")
    return Rollover(hour if mode == "daily" else None, 0 if mode == "none" else minutes)


def configured_model(
    runtime: Runtime, environ: Mapping[str, str], *, for_flush: bool = False
) -> Completer | None:
    """Return the configured model, if any; raises ConfigError if it cannot be used."""
    name = model_name(runtime, environ, for_flush=for_flush)
    return choose_completer(name, environ) if name else None


def needed_model(
    runtime: Runtime,
    environ: Mapping[str, str],
    what_for: str,
    name: str = "",
    *,
    for_flush: bool = False,
) -> Completer:
    """Return the named or the configured model; ConfigError if there is neither."""
    wanted = name or model_name(runtime, environ, for_flush=for_flush)
    if not wanted:
        raise ConfigError(
            f"No model is configured, and a model has to {what_for}.",
            key="agents.defaults.model",
            hint="Name one with --model, CLAWMARK_MODEL or agents.defaults.model"
            + ("; --no-model keeps the last messages as they are." if for_flush else "."),
        )
    return choose_completer(wanted, environ)


def model_name(runtime: Runtime, environ: Mapping[str, str], *, for_flush: bool = False) -> str:
    """Return the configured model: CLAWMARK_MODEL, else `agents.defaults.model`; may be empty."""
    own = _text(runtime, _FLUSH + "model") if for_flush else ""
    return (
        own or environ.get("CLAWMARK_MODEL", "").strip() or _text(runtime, "agents.defaults.model")
    )


def models_for(
    runtime: Runtime, environ: Mapping[str, str], given: Completer | None, window: int
) -> Models:
    """Return the models of a conversation; a model passed by the host replaces all."""
    window = window or _number(runtime, "agents.defaults.contextTokens")
    if given is not None:
        return Models(given, given, window or UNKNOWN_WINDOW)
    try:
        usual = configured_model(runtime, environ)
        flushing = configured_model(runtime, environ, for_flush=True)
        name = model_name(runtime, environ)
        return Models(
            usual, flushing, window or (parse_model(name).window if name else UNKNOWN_WINDOW)
        )
    except ConfigError as error:
        _log(error)
        return Models(None, None, window or UNKNOWN_WINDOW)


def _value(runtime: Runtime, key: str) -> object:
    return runtime.get(key, BY_NAME[key].default)


def _flag(runtime: Runtime, key: str) -> bool:
    return _value(runtime, key) is True


def _number(runtime: Runtime, key: str) -> int:
    value = _value(runtime, key)
    assert isinstance(value, int)
    return value


def _text(runtime: Runtime, key: str) -> str:
    value = _value(runtime, key)
    assert isinstance(value, str)
    return value


def _log(error: ConfigError) -> None:
    logging.getLogger("clawmark.agent").warning(
        "the model cannot be used", extra={"facts": {"because": error.message}}
    )
