"""Records of the journal as lines of JSON, and the lines that say how a write ended."""

from __future__ import annotations

import json
from typing import Any, cast, get_args

from clawmark.model.provenance import TRUST_LEVELS, Action, Actor, JournalRecord, Kind, Origin

_ACTORS, _KINDS = frozenset(get_args(Actor)), frozenset(get_args(Kind))
_ACTIONS = frozenset(get_args(Action))


def is_open(values: dict[str, Any]) -> bool:
    """Whether a line is a record that does not say how the write ended."""
    is_ended = values.get("done") is True or values.get("written") is False
    return "id" in values and not is_ended


def is_outcome(values: dict[str, Any]) -> bool:
    """Whether a line says how the write of an earlier record ended."""
    return "finished" in values or "dropped" in values


def outcome_id(outcome: dict[str, Any]) -> str:
    """Return the id of the record that an outcome is about."""
    return str(outcome.get("finished") or outcome.get("dropped"))


def with_outcome(record: JournalRecord, outcome: dict[str, Any] | None) -> JournalRecord:
    """Return a record with its outcome, if there is one."""
    if outcome is None:
        return record
    if "dropped" in outcome:
        return record._replace(dropped=True)
    before, after = _int(outcome, "before"), _int(outcome, "after")
    return record._replace(before=before, after=after, done=True)


def read_record(values: dict[str, Any]) -> JournalRecord | None:
    """Return the record of a line, or None if the line is damaged."""
    match values:
        case {
            "id": str(name),
            "time": str(time),
            "actor": str(actor),
            "kind": str(kind),
            "trust": str(trust),
            "path": str(path),
            "entries": list(entries),
        } if actor in _ACTORS and kind in _KINDS and trust in TRUST_LEVELS:
            action = values.get("action")
            origin = Origin(
                actor=cast(Actor, actor),
                kind=cast(Kind, kind),
                trust=trust,
                session=str(values.get("session", "")),
                source=str(values.get("source", "")),
            )
            return JournalRecord(
                id=name,
                time=time,
                origin=origin,
                path=path,
                entries=_strings(entries),
                before=_int(values, "before"),
                after=_int(values, "after"),
                done=values.get("done") is True,
                action=cast(Action, action) if action in _ACTIONS else "replace",
                moved_from=str(values.get("movedFrom", "")),
                external=_strings(values.get("external")),
                dropped=values.get("written") is False,
            )
    return None


def write_record(record: JournalRecord) -> str:
    """Return the line of a record."""
    values: dict[str, object] = {
        "id": record.id,
        "time": record.time,
        **record.origin._asdict(),
        "path": record.path,
        "action": record.action,
        "entries": record.entries,
    }
    if not record.origin.session:
        del values["session"]
    if not record.origin.source:
        del values["source"]
    if record.before >= 0 or record.after >= 0:
        values |= {"before": record.before, "after": record.after}
    if record.moved_from:
        values["movedFrom"] = record.moved_from
    if record.external:
        values["external"] = record.external
    if record.done:
        values["done"] = True
    if record.dropped:
        values["written"] = False
    return json.dumps(values, separators=(",", ":"))


def _strings(values: object) -> tuple[str, ...]:
    listed = values if isinstance(values, list) else []
    return tuple(one for one in listed if isinstance(one, str))


def _int(values: dict[str, Any], name: str) -> int:
    value = values.get(name)
    return value if isinstance(value, int) else -1
