"""Drop texts that share a run of words with an evaluation set."""

import gzip
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

SHINGLE = 12
_WORD = re.compile(r"\w+")


def shingles(text: str) -> Iterator[int]:
    """Give a hash of every run of twelve words."""
    words = _WORD.findall(text.lower())
    for start in range(len(words) - SHINGLE + 1):
        yield hash(tuple(words[start : start + SHINGLE]))


class OverlapFilter:
    """Knows the passages and queries of the evaluation sets."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._shingles: set[int] = set()
        self._short: set[tuple[str, ...]] = set()
        for text in texts:
            self._shingles.update(shingles(text))
            words = tuple(_WORD.findall(text.lower()))
            if 3 <= len(words) < SHINGLE:
                self._short.add(words)

    def overlaps(self, text: str) -> bool:
        """Check for a shared run of twelve words, or an equal shorter text."""
        if tuple(_WORD.findall(text.lower())) in self._short:
            return True
        return any(shingle in self._shingles for shingle in shingles(text))


def evaluation_folder(environ: dict[str, str] | None = None) -> Path | None:
    """Find the evaluation sets: in `CLAWMARK_SHARED`, or in `shared` next to the repository."""
    environ = dict(os.environ) if environ is None else environ
    default = Path(__file__).parents[3] / "shared"
    folder = Path(environ.get("CLAWMARK_SHARED") or default) / "data"
    return folder if folder.is_dir() else None


def evaluation_texts(folder: Path) -> Iterator[str]:
    """Give every string of words in the files of the evaluation sets."""
    for path in sorted(folder.rglob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                yield from _strings(json.loads(line))


def _strings(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for child in value.values():
                yield from _strings(child)
        case list():
            for child in value:
                yield from _strings(child)
