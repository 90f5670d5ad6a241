"""Records of the journal as lines of JSON, and the lines that say how a write ended."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, cast, get_args

from clawmark.model.provenance import (
    TRUST_LEVELS,
    Action,
    Actor,
    BytesWritten,
    JournalRecord,
    Kind,
    Origin,
)

_ACTORS, _KINDS = frozenset(get_args(Actor)), frozenset(get_args(Kind))
_ACTIONS = frozenset(get_args(Action))


def identity_of(values: dict[str, Any]) -> str:
    """Return the identity of a journal by its first line: a rewritten one begins with a line that
    says it, another one has the id of its first record."""
    return _text(values, "journal") or _text(values, "id")


def write_identity(name: str) -> str:
    """Return the first line of a rewritten journal."""
    return json.dumps({"journal": name}, separators=(",", ":"))


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
    return record._replace(
        before=_int(outcome, "before"),
        after=_int(outcome, "after"),
        done=True,
        written=record.written._replace(**set_fields(_bytes_written(outcome))),
    )


def is_damaged(values: dict[str, Any]) -> bool:
    """Whether a line is neither a record, nor an outcome, nor the identity of the journal."""
    return not (_is_record(values) or is_outcome(values) or _text(values, "journal"))


def read_record(values: dict[str, Any]) -> JournalRecord | None:
    """Return the record of a line, or None if the line is damaged."""
    if not _is_record(values):
        return None
    action = _text(values, "action")
    origin = Origin(
        actor=cast(Actor, values["actor"]),
        kind=cast(Kind, values["kind"]),
        trust=values["trust"],
        session=str(values.get("session", "")),
        source=str(values.get("source", "")),
    )
    return JournalRecord(
        id=values["id"],
        time=values["time"],
        origin=origin,
        path=values["path"],
        entries=_strings(values["entries"]),
        before=_int(values, "before"),
        after=_int(values, "after"),
        done=values.get("done") is True,
        action=cast(Action, action) if action in _ACTIONS else "replace",
        moved_from=str(values.get("movedFrom", "")),
        external=_strings(values.get("external")),
        dropped=values.get("written") is False,
        written=_bytes_written(values),
        undoes=str(values.get("undoes", "")),
    )


def _is_record(values: dict[str, Any]) -> bool:
    """Whether a line has every field of a record, with a valid value."""
    get = values.get
    texts = [get(name) for name in ("id", "path", "time", "actor", "kind", "trust")]
    return (
        all(isinstance(text, str) for text in texts)
        and isinstance(get("entries"), list)
        and values["actor"] in _ACTORS
        and values["kind"] in _KINDS
        and values["trust"] in TRUST_LEVELS
        and _is_time(values["time"])
    )


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
    values |= set_fields(record.written)
    if record.undoes:
        values["undoes"] = record.undoes
    if record.done:
        values["done"] = True
    if record.dropped:
        values["written"] = False
    return json.dumps(values, separators=(",", ":"))


def set_fields(written: BytesWritten) -> dict[str, Any]:
    """Return the fields that have a value."""
    return {name: value for name, value in written._asdict().items() if value}


def _bytes_written(values: dict[str, Any]) -> BytesWritten:
    return BytesWritten(
        base=_text(values, "base"),
        digest=_text(values, "digest"),
        entry=_text(values, "entry"),
        size=max(0, _int(values, "size")),
        lead=max(0, _int(values, "lead")),
        created=values.get("created") is True,
    )


def _is_time(text: str) -> bool:
    """Whether a text is a time with its distance from UTC."""
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _text(values: dict[str, Any], name: str) -> str:
    value = values.get(name)
    return value if isinstance(value, str) else ""


def _strings(values: object) -> tuple[str, ...]:
    listed = values if isinstance(values, list) else []
    return tuple(one for one in listed if isinstance(one, str))


def _int(values: dict[str, Any], name: str) -> int:
    value = values.get(name)
    return value if isinstance(value, int) else -1
