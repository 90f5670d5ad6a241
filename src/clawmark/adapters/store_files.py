"""Items of a key-value store as Markdown: where a file is, what stands in it, and which filters it
satisfies.

In: names and a value. Out: a path below `memory/` that no other names have, and a text that reads
back to the same item. Nothing here opens a file or knows a framework."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import quote

from clawmark.model.errors import WorkspaceError
from clawmark.workspace.places import VENDOR_FOLDERS

_LONGEST_NAME = 80
_FORM = re.compile(
    r"---\n(?P<head>(?:\w+: [^\n]*\n){1,20})---\n\n*```json\n(?P<value>.*)\n```\s*", re.DOTALL
)
_COMPARISONS = ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte")


class Stored(NamedTuple):
    """One item."""

    namespace: tuple[str, ...]
    key: str
    value: dict[str, Any]
    created: datetime
    updated: datetime
    indexed: bool = True
    """Whether a search with a query may find it."""


def names_path(root: str, namespace: Sequence[str]) -> str:
    """The folder of a namespace."""
    return "/".join([root, *map(_component, namespace)])


def item_path(root: str, namespace: Sequence[str], key: str) -> str:
    """The file of an item."""
    return f"{names_path(root, namespace)}/{_component(key)}.md"


def _component(name: str) -> str:
    """A name as one component of a path, readable where it can be; two names never become one."""
    # quote() leaves letters, digits and _.-~ as they are; "~" marks what was cut, a dot may hide a
    # file.
    safe = quote(name, safe=" ", errors="surrogatepass").replace("~", "%7E").replace(".", "%2E")
    if safe in VENDOR_FOLDERS or safe != safe.strip():
        safe = f"%{ord(safe[0]):02X}{safe[1:]}".replace(" ", "%20")
    if 0 < len(safe) <= _LONGEST_NAME:
        return safe
    return f"{safe[:40]}~{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def render(stored: Stored) -> str:
    """The text of an item's file."""
    head = {
        "namespace": list(stored.namespace),
        "key": stored.key,
        "created": stored.created.isoformat(),
        "updated": stored.updated.isoformat(),
        **({} if stored.indexed else {"indexed": False}),
    }
    try:
        lines = [f"{name}: {_json(value)}" for name, value in head.items()]
        value = _json(stored.value, indent=2)
    except (TypeError, ValueError, RecursionError) as error:
        raise WorkspaceError(
            f"The value of {stored.key[:80]!r} cannot be written as JSON: {error}.",
            hint="Put only JSON values.",
        ) from error
    return "\n".join(["---", *lines, "---", "", "```json", value, "```", ""])


def _json(value: object, indent: int | None = None) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    # Characters that a file cannot hold, or that some programs take for the end of a line, stay
    # escaped.
    return re.sub(
        r"[\x7f-\x9f\u2028\u2029\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text
    )


def parse(text: str) -> Stored | None:
    """The item in a file's text; None when there is none."""
    form = _FORM.fullmatch(text.replace("\r\n", "\n"))
    if form is None:
        return None
    try:
        head = {
            name: json.loads(value)
            for name, _, value in (line.partition(": ") for line in form["head"].splitlines())
        }
        value = json.loads(form["value"])
        times = datetime.fromisoformat(head["created"]), datetime.fromisoformat(head["updated"])
        namespace, key = tuple(map(str, head["namespace"])), str(head["key"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return (
        Stored(namespace, key, value, *times, head.get("indexed") is not False)
        if isinstance(value, dict)
        else None
    )


def satisfies(value: object, wanted: Mapping[str, Any] | None) -> bool:
    """Whether a value has what a filter asks for: equal fields, or comparisons such as `{"$gte":
    3}`.
    """
    return all(
        _compares(value.get(name) if isinstance(value, Mapping) else None, one)
        for name, one in (wanted or {}).items()
    )


def _compares(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, list | tuple):
        is_alike = isinstance(value, list | tuple) and len(value) == len(wanted)
        return is_alike and all(map(_compares, value, wanted))
    if not isinstance(wanted, Mapping):
        return bool(value == wanted)
    if not any(str(name).startswith("$") for name in wanted):
        return isinstance(value, Mapping) and satisfies(value, wanted)
    return all(_operates(value, str(name), other) for name, other in wanted.items())


def _operates(value: Any, operator: str, other: Any) -> bool:
    if operator not in _COMPARISONS:
        raise ValueError(
            f"There is no comparison {operator!r}; there are {', '.join(_COMPARISONS)}."
        )
    if operator in ("$eq", "$ne"):
        return bool(value == other) is (operator == "$eq")
    try:
        mine, their = float(value), float(other)
    except (TypeError, ValueError):
        return False
    return {"$gt": mine > their, "$gte": mine >= their, "$lt": mine < their, "$lte": mine <= their}[
        operator
    ]
