"""Decide whether a heartbeat asks its model, and what its answer means. Pure functions."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from typing import Literal, NamedTuple

from clawmark.agent.flush.prompts import is_silent
from clawmark.agent.heartbeat.state import HeartbeatState
from clawmark.agent.notes.curate import LONG_TERM, LogText, Material
from clawmark.system.backoff import Backoff
from clawmark.text.untrusted.injection_flags import flags_of
from clawmark.text.untrusted.origin_labels import origin_of

HEARTBEAT_OK = "HEARTBEAT_OK"
CHECKLIST = "HEARTBEAT.md"
RETRY = Backoff(first=60.0, longest=6 * 3600.0)
"""Between two attempts, while the model fails."""
SLACK_SECONDS = 60.0
"""How much earlier than `every` a heartbeat may run: schedulers are not exact."""
FEW_LINES = 3
"""A heartbeat may replace or remove this many lines of a short MEMORY.md without confirmation."""

Curation = Literal["off", "propose", "apply"]
Because = Literal["reviewed", "accepted", "nothing-to-do", "nothing-changed", "not-due", "running"]


class HeartbeatSettings(NamedTuple):
    """`agents.defaults.heartbeat`."""

    curation: Curation = "propose"
    every_seconds: float = 0.0
    """How long after a heartbeat the next one may ask the model."""
    prompt: str = ""
    """What the model is asked to do; empty for the default."""
    ack_max_chars: int = 300
    """An answer with HEARTBEAT_OK and at most this much other text is not a message."""
    days: int = 7


class Inputs(NamedTuple):
    """What a heartbeat reads."""

    checklist: str
    """HEARTBEAT.md; empty if it says nothing."""
    material: Material
    day: str
    now_ms: int


def hashes_of(inputs: Inputs) -> dict[str, str]:
    """Return the hash of each text that is there, by path."""
    found = {log.path: log.hash for log in inputs.material.logs}
    if inputs.material.base_hash:
        found[LONG_TERM] = inputs.material.base_hash
    if inputs.checklist:
        found[CHECKLIST] = hashlib.sha256(
            inputs.checklist.encode("utf-8", "surrogatepass")
        ).hexdigest()
    return found


def skip_reason(
    inputs: Inputs, state: HeartbeatState, settings: HeartbeatSettings
) -> Because | None:
    """Return why the model need not be asked, or None.

    A text that is gone, or too old by now, is not a change. With a checklist, a new day is one:
    checklists are about days."""
    hashes = hashes_of(inputs)
    if not inputs.checklist and (settings.curation == "off" or not hashes):
        return "nothing-to-do"
    is_new_day = bool(inputs.checklist) and state.day != inputs.day
    if not is_new_day and all(state.seen.get(path) == held for path, held in hashes.items()):
        return "nothing-changed"
    elapsed = (inputs.now_ms - state.done_ms) / 1000
    if 0 <= elapsed < settings.every_seconds - min(SLACK_SECONDS, settings.every_seconds / 10):
        return "not-due"
    return None


def retry_ms(state: HeartbeatState) -> int:
    """Return when a failed heartbeat may be tried again; 0 if the last one did not fail."""
    if not state.failures:
        return 0
    return state.failed_ms + int(RETRY.wait(state.failures) * 1000)


def message_of(answer: str, ack_max_chars: int) -> str:
    """Return what an answer says to the user; empty if it only acknowledges.

    HEARTBEAT_OK counts at the start or the end of an answer, also in emphasis."""
    text = answer.strip()
    if is_silent(text) or text.strip(".").lower() == "done":
        return ""
    bare = text.strip("*_`\"'.! \n")
    rest = re.sub(rf"\A{HEARTBEAT_OK}\b|\b{HEARTBEAT_OK}\Z", "", bare, count=1)
    if rest == bare:
        return text
    rest = rest.strip("*_`\"'.!:,;- \n")
    return rest if len(rest) > ack_max_chars else ""


def objection(old: str, new: str) -> str:
    """Return why a change is left to a person although curation is applied, or nothing."""
    before = Counter(line for line in old.split("\n") if line.strip())
    lost = (before - Counter(new.split("\n"))).total()
    if lost > max(FEW_LINES, before.total() // 4):
        return f"It changes or removes {lost} of the {before.total()} lines of {LONG_TERM}."
    # A page may consist of a few lines, and a line may be long.
    if len(new.strip()) < len(old.strip()) / 2:
        return f"It removes more than half of the text of {LONG_TERM}."
    added = Counter(new.split("\n")) - Counter(old.split("\n"))
    if flags_of("\n".join(added)):
        return f"It adds text to {LONG_TERM} that reads like an instruction."
    return ""


def trusted(material: Material) -> Material:
    """Leave out entries of the logs that came from tools, or that read like instructions."""
    logs = (log._replace(text=_trusted_text(log)) for log in material.logs)
    return material._replace(logs=tuple(logs))


def _trusted_text(log: LogText) -> str:
    return "\n".join(
        item
        for item in _items(log.text)
        if origin_of(item, log.path) not in ("tool", "import") and not flags_of(item)
    )


def _items(text: str) -> Iterator[str]:
    """Yield top-level list items with their nested lines, and the lines between them."""
    item: list[str] = []
    for line in text.split("\n"):
        if item and not line.startswith((" ", "\t")) and line.strip():
            yield "\n".join(item)
            item = []
        item.append(line)
    yield "\n".join(item)
