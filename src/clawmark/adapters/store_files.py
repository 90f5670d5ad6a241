"""Items of a key-value store as Markdown files: path, text and filters."""

from __future__ import annotations

import hashlib
import json
import operator
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
_ORDER = {"$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le}
_COMPARISONS = ("$eq", "$ne", *_ORDER)


class Stored(NamedTuple):
    """One item."""

    namespace: tuple[str, ...]
    key: str
    value: dict[str, Any]
    created: datetime
    updated: datetime
    indexed: bool = True
    """Whether searches with a query return it."""


def names_path(root: str, namespace: Sequence[str]) -> str:
    """Return the folder of a namespace."""
    return "/".join([root, *map(_component, namespace)])


def item_path(root: str, namespace: Sequence[str], key: str) -> str:
    """Return the file of an item."""
    return f"{names_path(root, namespace)}/{_component(key)}.md"


def _component(name: str) -> str:
    """Return a unique and mostly readable path component for a name."""
    # quote() keeps _.-~ as they are; here "~" marks truncated names, and a leading dot hides files.
    safe = quote(name, safe=" ", errors="surrogatepass").replace("~", "%7E").replace(".", "%2E")
    if safe in VENDOR_FOLDERS or safe != safe.strip():
        safe = f"%{ord(safe[0]):02X}{safe[1:]}".replace(" ", "%20")
    if 0 < len(safe) <= _LONGEST_NAME:
        return safe
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{safe[:40]}~{digest[:32]}"


def render(stored: Stored) -> str:
    """Return the text of an item's file."""
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
    # Escape surrogates, and characters that some programs treat as line ends.
    return re.sub(
        r"[\x7f-\x9f\u2028\u2029\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text
    )


def parse(text: str) -> Stored | None:
    """Return the item in a text; None if it is not one."""
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
    if not isinstance(value, dict):
        return None
    return Stored(
        namespace=namespace,
        key=key,
        value=value,
        created=times[0],
        updated=times[1],
        indexed=head.get("indexed") is not False,
    )


def satisfies(value: object, wanted: Mapping[str, Any] | None) -> bool:
    """Check a value against a filter of equal fields or comparisons such as `{"$gte": 3}`."""
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


def _operates(value: Any, name: str, other: Any) -> bool:
    if name not in _COMPARISONS:
        raise ValueError(f"Unknown comparison {name!r}; use one of {', '.join(_COMPARISONS)}.")
    if name in ("$eq", "$ne"):
        return bool(value == other) is (name == "$eq")
    try:
        mine, their = float(value), float(other)
    except (TypeError, ValueError):
        return False
    return bool(_ORDER[name](mine, their))
