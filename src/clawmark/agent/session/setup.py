"""What is configured about conversations in; finished settings and the models they name out.

Values that are not given are the built-in ones of the table of keys. A model that is named and
cannot be used (an unknown provider, a missing key) is an error for whoever asks for it; a
conversation goes on without it and says so in the log."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import NamedTuple

from clawmark.agent.flush.flush import FlushSettings
from clawmark.agent.models.catalog import choose_completer, parse_model
from clawmark.agent.models.completer import Completer
from clawmark.agent.notes.session_note import NoteSettings
from clawmark.agent.session.rollover import Rollover
from clawmark.config.schema import Settings
from clawmark.model.errors import ConfigError

UNKNOWN_WINDOW = 200_000
"""Tokens, when a host brings a model of its own and says nothing about it; OpenClaw's number."""


class Models(NamedTuple):
    """The models of a conversation; None for none."""

    usual: Completer | None
    """Names notes and curates."""
    flushing: Completer | None
    window: int


def flush_settings(settings: Settings) -> FlushSettings:
    """`agents.defaults.compaction`."""
    flush = settings.compaction.memory_flush
    return FlushSettings(
        enabled=flush.enabled,
        reserve_tokens_floor=settings.compaction.reserve_tokens_floor,
        soft_threshold_tokens=flush.soft_threshold_tokens,
        force_flush_transcript_bytes=flush.force_flush_transcript_bytes,
        prompt=flush.prompt,
        system_prompt=flush.system_prompt,
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
    """The model that is configured, None when none is; raises ConfigError when it cannot be used."""
    name = model_name(settings, environ, for_flush=for_flush)
    return choose_completer(name, environ) if name else None


def needed_model(
    settings: Settings, environ: Mapping[str, str], what_for: str, name: str = ""
) -> Completer:
    """The named model, or the configured one; ConfigError without either."""
    wanted = name or model_name(settings, environ)
    if not wanted:
        raise ConfigError(
            f"No model is configured, and a model has to {what_for}.",
            key="agents.defaults.model",
            hint="Name one with --model, CLAWMARK_MODEL or agents.defaults.model.",
        )
    return choose_completer(wanted, environ)


def model_name(settings: Settings, environ: Mapping[str, str], *, for_flush: bool = False) -> str:
    """The name of the model that is configured: CLAWMARK_MODEL, else `agents.defaults.model`; empty
    for none.
    """
    own = settings.compaction.memory_flush.model if for_flush else ""
    return own or environ.get("CLAWMARK_MODEL", "").strip() or settings.model


def models_for(
    settings: Settings, environ: Mapping[str, str], given: Completer | None, window: int
) -> Models:
    """The models of a conversation; one that the host brings stands in for all."""
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
    logging.getLogger("clawmark.agent").warning(
        "the model cannot be used", extra={"facts": {"because": error.message}}
    )
