"""The better tier: texts in, unit vectors out, by a small English transformer that runs on the
processor.

Granite-embedding-30m reads at most 512 tokens of a text and says what the whole is about in the
vector of its first token. Here it is put together from its parts: `weights` finds and checks the
file, `bpe` cuts the text, `encoder` computes. numpy and the weights are loaded by the first text,
not before.

A text has the same vector alone and in any batch, bit for bit; another processor or another numpy
may round the last bits differently (about 1e-6). Known limits: what lies beyond the 512th token is
not seen; the model knows English."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from clawmark.embed.base import Traits, is_mostly_latin
from clawmark.embed.local.bpe import Tokenizer
from clawmark.embed.local.weights import MODEL, PROVIDER, SHA256, find_pack, open_pack, unavailable
from clawmark.model.values import Identity, Vector

if TYPE_CHECKING:
    from clawmark.embed.local.encoder import Encoder

DIMS = 384
POOLING = "first token 1"
"""Named in the identity: a change in how texts are cut or vectors are made gives it another number.
"""
CALIBRATION = (0.45, 0.9)
"""Medians of random pairs of question and passage are 0.66 (locomo), 0.55 (notes), 0.45 (xquad); of
the right passages one in twenty is above 0.82, 0.83, 0.90."""
WORKERS = 4
"""Texts at a time, where there are as many cores; more would make a laptop hard to use while it
indexes.
"""
FEW = 4
"""Fewer texts than this are embedded one after the other."""
CHARACTERS_PER_TOKEN = 64
"""No sensible text has longer tokens on average; what lies beyond is cut off before it is looked
at.
"""


class GraniteEmbedder:
    """Embeds with the weights at `path`, by default those of the installed extra."""

    def __init__(self, path: str | None = None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._parts: tuple[Tokenizer, Encoder, int] | None = None

    @property
    def identity(self) -> Identity:
        key = sha256("\n".join((PROVIDER, MODEL, SHA256, POOLING)).encode()).hexdigest()
        return Identity(provider=PROVIDER, model=MODEL, provider_key=key, dims=DIMS)

    @property
    def traits(self) -> Traits:
        return Traits("granite-30m (local)", *CALIBRATION)

    def covers(self, text: str) -> bool:
        return is_mostly_latin(text)

    def embed_query(self, text: str) -> Vector:
        return self._embed(text)

    def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        if len(texts) < FEW:
            return [self._embed(text) for text in texts]
        # Imported late: it costs 14 ms, which a search that embeds one question does not need.
        from concurrent.futures import ThreadPoolExecutor

        self._load()[0].prepare()
        # Longest first, so that the workers end at about the same time.
        order = sorted(range(len(texts)), key=lambda number: -len(texts[number]))
        with ThreadPoolExecutor(min(WORKERS, os.cpu_count() or 1)) as pool:
            vectors = dict(
                zip(order, pool.map(self._embed, [texts[number] for number in order]), strict=True)
            )
        return [vectors[number] for number in range(len(texts))]

    def _embed(self, text: str) -> Vector:
        tokenizer, encoder, limit = self._load()
        return encoder.encode(tokenizer.encode(text[: limit * CHARACTERS_PER_TOKEN], limit))

    def _load(self) -> tuple[Tokenizer, Encoder, int]:
        with self._lock:
            if self._parts is None:
                pack = open_pack(find_pack() if self._path is None else self._path)
                _import_numpy()
                # Imported late: it needs numpy.
                from clawmark.embed.local.encoder import Encoder

                self._parts = Tokenizer(pack.tokenizer), Encoder(pack), pack.max_tokens
            return self._parts


def _import_numpy() -> None:
    """Import numpy with one thread per multiplication: two that wait for each other burn five times
    the time.
    """
    name = "OPENBLAS_NUM_THREADS"
    given = os.environ.get(name)
    os.environ.setdefault(name, "1")
    try:
        import numpy  # noqa: F401
    except ImportError as error:
        raise unavailable(
            f"numpy, which the local model needs, cannot be imported: {error}."
        ) from error
    finally:
        # The setting has been read by now; child processes should not inherit it from us.
        if given is None:
            del os.environ[name]
