"""Carry out a plan, in steps that can be repeated.

What is to be done is first written to an intent file: hashes and paths, no text. A process that is
killed before that has done nothing. After it, every step removes whatever is still there, so the
next run repeats all of them and finishes. The last step deletes the intent."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from clawmark.agent.forget.parts import ForgetParts
from clawmark.agent.forget.steps import (
    Erasure,
    change_copies,
    change_files,
    change_history,
    change_journal,
    change_proposals,
    change_sessions,
    change_states,
    change_transcripts,
    change_versions,
    erase_from_index,
    remove_sources,
)
from clawmark.agent.forget.values import ForgetPlan, ForgetReport
from clawmark.model.errors import ClawmarkError
from clawmark.system import shared_json
from clawmark.system.private_files import sync_folder

LOCK_SECONDS = 30.0


class Intent(NamedTuple):
    """What an unfinished run has to do; the fields are those of `ForgetPlan`."""

    entries: tuple[str, ...]
    local: tuple[tuple[str, str], ...]
    files: tuple[str, ...]
    paths: tuple[str, ...]
    transcripts: tuple[str, ...]
    sessions: tuple[str, ...]
    sources: tuple[str, ...]
    copies: tuple[str, ...]
    journal: tuple[str, ...]
    tombstones: tuple[str, ...]
    phrase_words: tuple[int, ...]
    keeps_transcripts: bool


STEPS: tuple[Callable[[ForgetParts, Erasure, ForgetReport], ForgetReport], ...] = (
    change_files,
    change_transcripts,
    change_sessions,
    remove_sources,
    change_proposals,
    change_copies,
    change_versions,
    change_history,
    change_journal,
    change_states,
    erase_from_index,
)
"""Files first: what is derived from them is made from what is left."""


def forget(parts: ForgetParts, plan: ForgetPlan) -> ForgetReport:
    """Carry out a plan and return what was done."""
    with _locked(parts):
        _resume(parts)
        fields = {name: getattr(plan, name) for name in Intent._fields}
        shared_json.save(parts.intent_path, fields, durable=True)
        sync_folder(parts.agent_folder)
        report = _run(parts, Intent(**fields))
    return report._replace(unreachable=(*plan.unreachable, *report.unreachable))


def finish_interrupted(parts: ForgetParts) -> ForgetReport | None:
    """Finish what a killed process has begun; None if there is nothing to finish."""
    if not os.path.exists(parts.intent_path):
        return None
    with _locked(parts):
        return _resume(parts)


def _resume(parts: ForgetParts) -> ForgetReport | None:
    try:
        found = shared_json.load(parts.intent_path)
        intent = _parsed(found) if found is not None else None
    except (ValueError, TypeError, KeyError):
        # Written in one step, so it is damaged only by something else; nothing can be finished.
        shared_json.set_aside(parts.intent_path)
        raise ClawmarkError(
            f"{parts.intent_path} is damaged, so an interrupted forget cannot be finished.",
            hint="Run `clawmark forget` again.",
        ) from None
    return None if intent is None else _run(parts, intent)._replace(resumed=True)


def _run(parts: ForgetParts, intent: Intent) -> ForgetReport:
    parts.tombstones.add(intent.tombstones, intent.phrase_words)
    erasure = Erasure(intent, parts.tombstones)
    report = ForgetReport()
    for step in STEPS:
        report = step(parts, erasure, report)
    os.unlink(parts.intent_path)
    sync_folder(parts.agent_folder)
    return report


def _parsed(found: dict[str, object]) -> Intent:
    lists = {name: found[name] for name in Intent._fields if name != "keeps_transcripts"}
    fields: dict[str, Any] = {
        name: tuple(tuple(one) if isinstance(one, list) else one for one in value)
        for name, value in lists.items()
        if isinstance(value, list)
    }
    if fields.keys() != lists.keys():
        raise ValueError("not an intent")
    return Intent(**fields, keeps_transcripts=found["keeps_transcripts"] is True)


@contextmanager
def _locked(parts: ForgetParts) -> Iterator[None]:
    with shared_json.locked(parts.intent_path, LOCK_SECONDS) as is_locked:
        if not is_locked:
            raise ClawmarkError(
                "Another process is forgetting something.", hint="Try again in a moment."
            )
        yield
