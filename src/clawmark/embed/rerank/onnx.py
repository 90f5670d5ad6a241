"""A local cross-encoder, run by onnxruntime in this process.

The model is a folder with `model.onnx` and its tokenizer, as optimum and sentence-transformers
write it. It is loaded by the first call. A model with one output gives a score, one with two the
share of the second class. The time is checked before each passage, so a call is late by one passage
at most."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

from clawmark.embed.base import WORKERS
from clawmark.embed.local.model_file import plain, reason_of, wellformed
from clawmark.embed.local.onnx import (
    CHARACTERS_PER_TOKEN,
    INSTALL,
    inputs_of,
    start_session,
)
from clawmark.embed.local.onnx_folder import Folder, read_folder
from clawmark.embed.rerank.pairs import open_pair_tokenizer
from clawmark.model.errors import RerankError

if TYPE_CHECKING:
    from clawmark.embed.rerank.pairs import EncodePair

LONGEST_LOGIT = 60.0
CHOOSE = (
    "Name the folder of a cross-encoder with model.onnx and its "
    "tokenizer in memorySearch.query.rerank.model."
)
LATE = (
    "Hits are in the order of the search itself. Raise "
    "memorySearch.query.rerank.timeoutMs, or take a smaller model."
)


class _Model(NamedTuple):
    session: Any
    encode: EncodePair
    inputs: dict[str, str]
    tokens: int
    numpy: Any


class OnnxReranker:
    """Reranks with the cross-encoder in a folder or package."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._model: _Model | None = None

    @property
    def label(self) -> str:
        return f"{plain(os.path.basename(self._source.rstrip(os.sep)) or self._source)} (onnx)"

    def rerank(self, query: str, texts: Sequence[str], *, seconds: float) -> list[float]:
        if not texts:
            return []
        end = time.monotonic() + seconds
        if seconds <= 0:
            raise self._late(seconds)
        model = self._load()

        def score(text: str) -> float:
            if time.monotonic() >= end:
                raise self._late(seconds)
            return self._score(model, query, text)

        if len(texts) == 1:
            return [score(texts[0])]

        with ThreadPoolExecutor(min(WORKERS, os.cpu_count() or 1)) as pool:
            return list(pool.map(score, texts))

    def _load(self) -> _Model:
        with self._lock:
            if self._model is None:
                self._model = self._open()
            return self._model

    def _open(self) -> _Model:
        try:
            import numpy
            import onnxruntime
        except ImportError as error:
            raise RerankError(
                f"The reranker needs onnxruntime, which cannot be imported: {error}.", hint=INSTALL
            ) from error

        try:
            folder: Folder = read_folder(self._source)
            session = start_session(onnxruntime, folder.model)
            encode = open_pair_tokenizer(folder.tokenizer)
            return _Model(
                session=session,
                encode=encode,
                inputs=inputs_of(session),
                tokens=folder.tokens,
                numpy=numpy,
            )
        except (OSError, ValueError) as error:
            raise RerankError(
                f"The cross-encoder {self._source} cannot be used: {reason_of(error)}.", hint=CHOOSE
            ) from error
        except ImportError as error:
            message = f"The cross-encoder {self._source} cannot be used: {error}."
            raise RerankError(message, hint="Run `pip install tokenizers`.") from error

    def _score(self, model: _Model, query: str, text: str) -> float:
        most = model.tokens * CHARACTERS_PER_TOKEN
        try:
            tokens, kinds = model.encode(
                wellformed(query[:most]), wellformed(text[:most]), model.tokens
            )
            logits = _run(model, tokens, kinds)
        except Exception as error:  # the boundary of onnxruntime
            # The boundary to onnxruntime, whose exceptions have no common class.
            message = (
                f"The cross-encoder {self.label} could not read a passage: {plain(str(error))}."
            )
            raise RerankError(message, hint=CHOOSE) from error
        if len(logits) not in (1, 2):
            message = (
                f"{self._source} is not a cross-encoder: it gives "
                f"{len(logits)} numbers for a pair of texts."
            )
            raise RerankError(message, hint=CHOOSE)
        logit = logits[0] if len(logits) == 1 else logits[1] - logits[0]
        if not math.isfinite(logit):
            raise RerankError(
                f"The cross-encoder {self.label} gave a score that is not a finite number.",
                hint=CHOOSE,
            )
        return 1.0 / (1.0 + math.exp(-min(LONGEST_LOGIT, max(-LONGEST_LOGIT, logit))))

    def _late(self, seconds: float) -> RerankError:
        return RerankError(
            f"The cross-encoder {self.label} was not done within {seconds * 1000:.0f} ms.",
            hint=LATE,
        )


def _run(model: _Model, tokens: list[int], kinds: list[int]) -> list[float]:
    """Return the output of the model for one pair."""
    numpy = model.numpy
    row = numpy.array([tokens])
    filled = {
        "input_ids": row,
        "attention_mask": numpy.ones_like(row),
        "token_type_ids": numpy.array([kinds]),
        "position_ids": numpy.arange(row.size)[None],
    }
    feed = {name: filled[name].astype(kind) for name, kind in model.inputs.items()}
    output = model.session.run(None, feed)[0]
    return [float(number) for number in numpy.asarray(output).reshape(-1)]
