"""Recognise what Clawmark has made in a state folder, by its place and name.

A project or a home folder that was named as the state folder has folders of its own that are called
`logs` or `memory`: only what matches here is Clawmark's."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator

from clawmark.store.sqlite.db import not_a_file
from clawmark.store.sqlite.files import MAGIC
from clawmark.store.sqlite.schema import APPLICATION_ID

_ID = "[a-z0-9][a-z0-9_-]*"
_LEFTOVER = r"(?:\.[a-z0-9_.-]+)?"
"""A lock, a temporary or a damaged file next to a file."""
_INDEX_SUFFIX = (
    r"(?:-wal|-shm|-journal|\.seal|\.lock|\.sync|\.staging\.lock|\.new-.*"
    r"|\.(?!foreign)[a-z]+-[0-9]+(?:-wal|-shm|-journal)?)?"
)
"""The end of the name of a file that belongs to an index; `foreign` is a database of another
program that was renamed."""
_OF_AGENT = (
    r"as-of|proposals|sessions|team|(?:history\.git|journal\.jsonl"
    rf"|(?:consolidation|forget|heartbeat|tombstones|usage)\.json){_LEFTOVER}"
)
_ALWAYS = (
    rf"agents/{_ID}/(?:{_OF_AGENT})",
    r"edits/tmp[a-z0-9_]{8}",
    rf"install/{_ID}/(?:backups|receipt\.json{_LEFTOVER})",
    rf"locks/(?:[0-9a-f]{{32}}\.lock|lancedb-[0-9a-f]+\.lock|hook-notes{_LEFTOVER})",
    r"logs/clawmark\.log(?:\.[0-9a-z]+)?",
    r"memory/lancedb",
    rf"providers/(?:[0-9a-f]{{16}}|ollama-models|rerank-[a-z0-9_-]+)\.json{_LEFTOVER}",
    r"versions/[A-Za-z0-9._-]+-[0-9a-f]{8}",
)
_OF_IDS = (
    r"(?:batches/(?:lancedb-)?(?:{ids})|(?:counts|plugins|sources)/(?:{ids})\.json{leftover}"
    r"|qmd/(?:{ids})|memory/(?:{ids})\.sqlite{index})"
)


def own_pattern(state: str, agent_ids: Iterable[str]) -> re.Pattern[str]:
    """Return what the paths of Clawmark's files match, relative to the state folder.

    `agent_ids` are the known ones; others are found by what Clawmark has made for them."""
    found = set(agent_ids)
    for name in _listed(os.path.join(state, "agents")):
        inside = _listed(os.path.join(state, "agents", name))
        if re.fullmatch(_ID, name) and any(re.fullmatch(_OF_AGENT, one) for one in inside):
            found.add(name)
    sealed = (name.removesuffix(".sqlite.seal") for name in _listed(os.path.join(state, "memory")))
    found |= {name for name in sealed if re.fullmatch(_ID, name)}
    ids = "|".join(map(re.escape, sorted(found)))
    of_ids = _OF_IDS.format(ids=ids, leftover=_LEFTOVER, index=_INDEX_SUFFIX)
    return re.compile("|".join((*_ALWAYS, of_ids)))


def own_paths(state: str, name: str, own: re.Pattern[str], kept: Collection[str]) -> Iterator[str]:
    """Yield what to remove of a folder in the state folder: as a whole if nothing in it is kept.

    `kept` are paths to keep, with everything in and around them."""
    path = os.path.join(state, name)
    if _is_own(state, path, own, kept) or _is_wholly_own(state, path, own, kept):
        yield path
    elif os.path.isdir(path) and not os.path.islink(path):
        for inner in _listed(path):
            yield from own_paths(state, os.path.join(name, inner), own, kept)


def index_files(path: str) -> list[str]:
    """Return an index and what lies next to it; nothing if another program's file is there."""
    folder, name = os.path.split(path)
    if os.path.lexists(path) and not _is_index(path):
        return []
    pattern = re.compile(re.escape(name) + _INDEX_SUFFIX)
    paths = [os.path.join(folder, one) for one in _listed(folder) if pattern.fullmatch(one)]
    return [one for one in paths if os.path.isfile(one) and not os.path.islink(one)]


def is_around(path: str, kept: Collection[str]) -> bool:
    """Whether a path to keep is this path, or is inside it or around it."""
    real = os.path.realpath(path) + os.sep
    return any(one.startswith(real) or real.startswith(one) for one in kept)


def _is_own(state: str, path: str, own: re.Pattern[str], kept: Collection[str]) -> bool:
    relative = os.path.relpath(path, state).replace(os.sep, "/")
    return own.fullmatch(relative) is not None and not is_around(path, kept)


def _is_wholly_own(state: str, path: str, own: re.Pattern[str], kept: Collection[str]) -> bool:
    """Whether a folder has nothing but what is ours; a link is removed, but not what it names."""
    if os.path.islink(path):
        return os.path.dirname(path) == state
    if not os.path.isdir(path) or is_around(path, kept) or not os.access(path, os.R_OK):
        return False
    inside = [os.path.join(path, name) for name in _listed(path)]
    return all(
        _is_own(state, one, own, kept) or _is_wholly_own(state, one, own, kept) for one in inside
    )


def _is_index(path: str) -> bool:
    """Whether a file is an index, possibly damaged or empty."""
    if not_a_file(path):
        return False
    try:
        with open(path, "rb") as file:
            head = file.read(100)
    except OSError:
        return False
    if head.startswith(MAGIC):
        return int.from_bytes(head[68:72], "big") == APPLICATION_ID
    return os.path.lexists(f"{path}.seal")


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
