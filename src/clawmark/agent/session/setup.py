"""Read the configuration of conversations: settings and models.

A configured model that cannot be used (unknown provider, missing key) is an error for a caller that
needs it; a conversation continues without it and logs a warning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from clawmark.agent.flush.flush import FlushSettings
from clawmark.agent.models.catalog import choose_completer, parse_model
from clawmark.agent.models.completer import Completer
from clawmark.agent.notes.session_note import NoteSettings
from clawmark.agent.session.session import Rollover
from clawmark.config.schema import Settings
from clawmark.model.errors import ConfigError
from clawmark.system.log_records import get_logger

UNKNOWN_WINDOW = 200_000
"""Tokens, if a host passes its own model without a context window; OpenClaw's default."""


class Models(NamedTuple):
    """The models of a conversation, if there are any."""

    usual: Completer | None
    """Names session notes and curates."""
    flushing: Completer | None
    window: int


def flush_settings(settings: Settings) -> FlushSettings:
    """`agents.defaults.compaction` and `memory.dailyLog`."""
    flush = settings.compaction.memory_flush
    return FlushSettings(
        enabled=flush.enabled,
        reserve_tokens_floor=settings.compaction.reserve_tokens_floor,
        soft_threshold_tokens=flush.soft_threshold_tokens,
        force_flush_transcript_bytes=flush.force_flush_transcript_bytes,
        prompt=flush.prompt,
        system_prompt=flush.system_prompt,
        times=settings.memory.daily_log.times,
    )


def note_settings(settings: Settings) -> NoteSettings:
    """`hooks.internal`."""
    note = settings.hooks.note
    return NoteSettings(
        enabled=settings.hooks.enabled and note.enabled,
        messages=note.messages,
        llm_slug=note.llm_slug,
    )


def rollover_settings(settings: Settings) -> Rollover:
    """`session.reset`."""
    reset = settings.session_reset
    return Rollover(
        reset.at_hour if reset.mode == "daily" else None,
        0 if reset.mode == "none" else reset.idle_minutes,
    )


def configured_model(
    settings: Settings, environ: Mapping[str, str], *, for_flush: bool = False
) -> Completer | None:
    """Return the configured model, if any; raises ConfigError if it cannot be used."""
    name = model_name(settings, environ, for_flush=for_flush)
    return choose_completer(name, environ) if name else None


def needed_model(
    settings: Settings,
    environ: Mapping[str, str],
    what_for: str,
    name: str = "",
    *,
    for_flush: bool = False,
) -> Completer:
    """Return the named or the configured model; ConfigError if there is neither."""
    wanted = name or model_name(settings, environ, for_flush=for_flush)
    if not wanted:
        raise ConfigError(
            f"No model is configured, but a model is needed to {what_for}.",
            key="agents.defaults.model",
            hint="Name one with --model, CLAWMARK_MODEL or agents.defaults.model"
            + ("; --no-model keeps the last messages as they are." if for_flush else "."),
        )
    return choose_completer(wanted, environ)


def model_name(settings: Settings, environ: Mapping[str, str], *, for_flush: bool = False) -> str:
    """Return the configured model: CLAWMARK_MODEL, else `agents.defaults.model`; may be empty."""
    own = settings.compaction.memory_flush.model if for_flush else ""
    return own or environ.get("CLAWMARK_MODEL", "").strip() or settings.model


def models_for(
    settings: Settings, environ: Mapping[str, str], given: Completer | None, window: int
) -> Models:
    """Return the models of a conversation; a model passed by the host replaces all."""
    window = window or settings.context_tokens
    if given is not None:
        return Models(given, given, window or UNKNOWN_WINDOW)
    try:
        usual = configured_model(settings, environ)
        flushing = configured_model(settings, environ, for_flush=True)
        name = model_name(settings, environ)
        return Models(
            usual, flushing, window or (parse_model(name).window if name else UNKNOWN_WINDOW)
        )
    except ConfigError as error:
        _log(error)
        return Models(None, None, window or UNKNOWN_WINDOW)


def _log(error: ConfigError) -> None:
    get_logger("clawmark.agent").warning(
        "the model cannot be used", extra={"facts": {"because": error.message}}
    )
