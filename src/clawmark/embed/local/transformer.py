"""The local transformer: a small English model on the CPU.

`weights` finds and checks the file, `bpe` tokenizes the text, `encoder` computes; the vector of the
first token represents the whole text. numpy and the weights are loaded with the first text.

A text has the same vector alone and in any batch, bit for bit; another processor or numpy version
may round the last bits differently (about 1e-6). Known limits: text beyond the 512th token is
ignored; the model knows English only."""

from __future__ import annotations

import os
from _thread import allocate_lock  # a lock without `threading`, which costs a cold search 1 ms
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from clawmark.embed.base import Traits, embed_each, is_mostly_latin
from clawmark.embed.local.bpe import Tokenizer
from clawmark.embed.local.weights import OWN, PROVIDER, Model, find_pack, open_pack, unavailable
from clawmark.model.values import Identity, Vector

if TYPE_CHECKING:
    from clawmark.embed.local.encoder import Encoder

DIMS = 384
CHARACTERS_PER_TOKEN = 64
"""No ordinary text has longer tokens on average; the rest is cut off before tokenizing."""


class TransformerEmbedder:
    """Embeds with a model's weights at `path`, by default where they are installed."""

    def __init__(self, path: str | None = None, model: Model = OWN) -> None:
        self._path = path
        self._model = model
        self._lock = allocate_lock()
        self._parts: tuple[Tokenizer, Encoder, int] | None = None

    @property
    def identity(self) -> Identity:
        return Identity(
            provider=PROVIDER, model=self._model.name, provider_key=self._model.key, dims=DIMS
        )

    @property
    def traits(self) -> Traits:
        return Traits(self._model.label, *self._model.calibration)

    def covers(self, text: str) -> bool:
        return is_mostly_latin(text)

    def embed_query(self, text: str) -> Vector:
        return self._embed(text)

    def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        if len(texts) > 3:
            self._load()[0].prepare()
        return embed_each(self._embed, texts)

    def _embed(self, text: str) -> Vector:
        tokenizer, encoder, limit = self._load()
        return encoder.encode(tokenizer.encode(text[: limit * CHARACTERS_PER_TOKEN], limit))

    def _load(self) -> tuple[Tokenizer, Encoder, int]:
        with self._lock:
            if self._parts is None:
                path = find_pack(self._model) if self._path is None else self._path
                pack = open_pack(path, self._model)
                _import_numpy()
                # Imported late: it needs numpy.
                from clawmark.embed.local.encoder import Encoder

                self._parts = Tokenizer(pack.tokenizer), Encoder(pack), pack.max_tokens
            return self._parts


def _import_numpy() -> None:
    """Import numpy with one thread per multiplication: two that wait for each other take five times
    as long.
    """
    name = "OPENBLAS_NUM_THREADS"
    given = os.environ.get(name)
    os.environ.setdefault(name, "1")
    try:
        import_module("numpy")
    except ImportError as error:
        raise unavailable(
            f"numpy, which the local model needs, cannot be imported: {error}."
        ) from error
    finally:
        # numpy has read it; child processes should not inherit it.
        if given is None:
            del os.environ[name]
