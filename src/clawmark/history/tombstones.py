"""What was forgotten, as hashes: automatic writes check it and do not bring a text back.

The hashes are keyed with random bytes of this state folder, so that they cannot be looked up in a
table of known texts. Kept are the hash of each forgotten entry, of each of its sentences, of the
phrase that was asked for, and of forgotten sessions and imported notes. A text that says the same
in other words is not recognized."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from clawmark.model.errors import ClawmarkError, TombstonesDamaged, reason_of
from clawmark.system import shared_json
from clawmark.system.log_records import get_logger
from clawmark.text.forgetting import (
    FEWEST_WORDS,
    content_of,
    is_distinct,
    sentences_of,
    units_of,
    words_of,
)

_log = get_logger("clawmark.forget")

LOCK_SECONDS = 10.0
HASH_DIGITS = 32


class _Stored(NamedTuple):
    key: bytes
    hashes: frozenset[str]
    phrase_words: tuple[int, ...]
    """The numbers of words that forgotten phrases have."""


class Tombstones:
    """The forgotten texts of one agent; the file is read again when it has changed."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._seen: tuple[tuple[int, int, int], _Stored] | None = None

    def is_forgotten(self, text: str) -> bool:
        """Check whether a text, one of its entries or sentences, or a phrase in it was
        forgotten."""
        stored = self._load()
        if stored is None or not stored.hashes:
            return False
        return any(name in stored.hashes for name in _names(stored, text))

    def has_name(self, kind: str, name: str) -> bool:
        """Check whether a session (`session`) or an imported note (`import`) was forgotten."""
        stored = self._load()
        return stored is not None and _hash(stored.key, kind, name) in stored.hashes

    def hash_entry(self, content: str) -> str:
        """Return the hash of the content of an entry; the key is created if there is none."""
        return _hash(self._needed().key, "entry", content)

    def hash_name(self, kind: str, name: str) -> str:
        """Return the hash of the name of a session or an imported note."""
        return _hash(self._needed().key, kind, name)

    def hashes_of(self, content: str, text: str) -> Iterator[str]:
        """Yield what is kept of an entry that is forgotten."""
        key = self._needed().key
        yield _hash(key, "entry", content)
        for sentence in sentences_of(text):
            yield _hash(key, "sentence", sentence)

    def hash_phrase(self, phrase: str) -> tuple[str, int] | None:
        """Return the hash of a phrase and its number of words; None for one that is too common."""
        words = words_of(phrase)
        is_code = len(words) == 1 and len(words[0]) >= 8 and any(map(str.isdigit, words[0]))
        if len(words) < FEWEST_WORDS and not is_code:
            return None
        return _hash(self._needed().key, "phrase", " ".join(words)), len(words)

    def check(self) -> None:
        """Raise TombstonesDamaged if the file is there and cannot be read."""
        self._read()

    def add(self, hashes: Iterable[str], phrase_words: Iterable[int] = ()) -> None:
        """Keep hashes, durably."""
        with self._locked():
            stored = self._read() or _new()
            self._save(
                stored._replace(
                    hashes=stored.hashes | frozenset(hashes),
                    phrase_words=tuple(sorted({*stored.phrase_words, *phrase_words})),
                )
            )

    def lift(self, text: str) -> None:
        """Remove what would keep this text away: the user has written it again.

        A damaged list is only logged, because it must not keep the user from writing."""
        try:
            if not os.path.exists(self.path) or not self.is_forgotten(text):
                return
        except TombstonesDamaged as error:
            _log.warning("%s %s", error.message, error.hint)
            return
        with self._locked():
            stored = self._read()
            if stored is not None:
                gone = frozenset(_names(stored, text))
                self._save(stored._replace(hashes=stored.hashes - gone))

    def _needed(self) -> _Stored:
        stored = self._load()
        if stored is None:
            self.add(())
            stored = self._load()
        assert stored is not None
        return stored

    def _load(self) -> _Stored | None:
        try:
            info = os.stat(self.path)
        except FileNotFoundError:
            return None
        mark = (info.st_ino, info.st_mtime_ns, info.st_size)
        if self._seen is None or self._seen[0] != mark:
            stored = self._read()
            if stored is None:
                return None
            self._seen = mark, stored
        return self._seen[1]

    def _read(self) -> _Stored | None:
        try:
            found = shared_json.load(self.path)
            if found is None:
                return None
            key, hashes, words = (found.get(name) for name in ("key", "hashes", "phraseWords"))
            if not (isinstance(key, str) and isinstance(hashes, list) and isinstance(words, list)):
                raise ValueError("not a list of tombstones")
            return _Stored(
                key=bytes.fromhex(key),
                hashes=frozenset(one for one in hashes if isinstance(one, str)),
                phrase_words=tuple(one for one in words if isinstance(one, int) and one > 0),
            )
        except (OSError, ValueError) as error:
            reason = reason_of(error) if isinstance(error, OSError) else "the file is damaged"
            raise TombstonesDamaged(
                f"The list of forgotten texts {self.path} cannot be read: {reason}.",
                hint="Restore the file, or delete it: then automatic writes may bring forgotten "
                "texts back.",
            ) from error

    def _save(self, stored: _Stored) -> None:
        fields: dict[str, object] = {
            "key": stored.key.hex(),
            "phraseWords": list(stored.phrase_words),
            "hashes": sorted(stored.hashes),
        }
        shared_json.save(self.path, fields, durable=True)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with shared_json.locked(self.path, LOCK_SECONDS) as is_locked:
            if not is_locked:
                raise ClawmarkError(
                    f"Another process keeps {self.path} locked.", hint="Try again in a moment."
                )
            yield


def _new() -> _Stored:
    return _Stored(key=os.urandom(32), hashes=frozenset(), phrase_words=())


def _hash(key: bytes, kind: str, content: str) -> str:
    data = f"{kind}\0{content}".encode("utf-8", "surrogatepass")
    return hmac.new(key, data, hashlib.sha256).hexdigest()[:HASH_DIGITS]


def _names(stored: _Stored, text: str) -> Iterator[str]:
    """Yield every hash under which a text may have been forgotten."""
    for content in {content_of(text), *(unit.content for unit in units_of(text))}:
        if content:
            yield _hash(stored.key, "entry", content)
            if is_distinct(content):
                yield _hash(stored.key, "sentence", content)
    for sentence in sentences_of(text):
        yield _hash(stored.key, "sentence", sentence)
    words = words_of(text) if stored.phrase_words else []
    for count in stored.phrase_words:
        for start in range(len(words) - count + 1):
            yield _hash(stored.key, "phrase", " ".join(words[start : start + count]))
