"""Local ONNX models, run by onnxruntime in this process (the extra `onnx`).

The model is a folder as sentence-transformers and optimum write it, an `.onnx` file in one, or an
installed package that contains one. `onnx_folder` reads what the model needs, `onnx_tokenizer`
tokenizes. onnxruntime and the weights are loaded with the first text.

Texts are run one at a time without padding: quantised models scale by their input, so the vector of
a text would depend on its batch. Several texts run in parallel, each on one thread.

Known limits: text beyond the model's length (at most 2048 tokens) is ignored; pooling is by mean or
first token unless the model pools itself; another processor may round the last bits differently."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from clawmark.embed.base import Traits, check_vectors, embed_each
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
from clawmark.embed.local.onnx_tokenizer import Encode, open_tokenizer
from clawmark.model.errors import EmbeddingRejected, EmbeddingUnavailable
from clawmark.model.values import Identity, Vector

INSTALL = "Run `pip install 'clawmark[onnx]'` to install onnxruntime."
CHOOSE = (
    "Name a folder with model.onnx, its tokenizer.json and its "
    "config.json, or a package that contains one."
)
METHOD = "onnx 1"
"""Part of the identity; the number changes when texts are cut or vectors are made differently."""
POOLED = "sentence_embedding"
"""The output of a model that pools itself."""
CHARACTERS_PER_TOKEN = 64
QUIET = 4
"""onnxruntime's log level for fatal errors only."""


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
    """Embeds with the model in a folder or package; `tokenizer` names another one for a model
    without a tokenizer.
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
        """Known from the folder's small files; only a model without a configuration is loaded."""
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
        """Read on first use; raises EmbeddingUnavailable if it is not a model."""
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
        return embed_each(lambda text: self._embed(prefix, text), texts)

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
            # The identity belongs to the bytes that were hashed.
            if tuple(stamp_of(stamp.path) for stamp in folder.files) != folder.files:
                raise ValueError("it was replaced while it was in use; restart to use the new one")
            if not 0 < model.dims <= MOST_DIMS:
                raise ValueError(
                    "neither the model nor a config.json next to it gives the size of its vectors"
                )
            if folder.dims and model.dims != folder.dims:
                raise ValueError(
                    f"its vectors have {model.dims} numbers, but its configuration says "
                    f"{folder.dims}"
                )
            if folder.dense and not pooled:
                raise ValueError("it needs a dense layer that is not in the .onnx file")
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
        except Exception as error:  # boundary to onnxruntime, whose errors have no common class
            message = f"{identity.model} could not embed a text: {plain(str(error))}"
            raise EmbeddingRejected(message, provider=PROVIDER, model=identity.model) from error
        if not model.pooled:
            result = result[0] if folder.pooling == "cls" else result.mean(axis=0)
        numbers = result.astype("<f8")
        # Zero vectors and numbers that are not finite are refused below.
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
    onnxruntime is missing. Only the small files of the folder are read.
    """
    embedder = OnnxEmbedder(folder)
    name = embedder.folder.name
    if not (is_installed("onnxruntime") and is_installed("numpy")):
        raise unavailable(
            f"The model {name} needs onnxruntime, which is not installed.", name, INSTALL
        )
    return embedder


def start_session(onnxruntime: Any, path: str) -> Any:
    """Load the model, without logging and with one thread per text; raises ValueError with
    onnxruntime's reason.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = QUIET
    try:
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # boundary to onnxruntime, whose errors have no common class
        raise ValueError(f"onnxruntime cannot load it ({plain(str(error)).rstrip('.')})") from error


def _run(model: Model, tokens: list[int]) -> Any:
    """Run the model on one text."""
    numpy = model.numpy
    # A tokenizer without special tokens gives no ids for an empty text, and a model needs one.
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
    """The inputs of a model with their types; raises ValueError for one that is not supported."""
    known = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
    inputs: dict[str, str] = {}
    for entry in session.get_inputs():
        kind = entry.type.removeprefix("tensor(").removesuffix(")")
        if entry.name not in known or kind not in ("int64", "int32"):
            raise ValueError(
                f'it has an input "{plain(entry.name)}" of {kind}, which is not supported'
            )
        inputs[entry.name] = kind
    return inputs


def _output(session: Any) -> tuple[str, bool, int]:
    """The output to use, whether it is already pooled, and its size if the model gives it."""
    outputs = {entry.name: entry.shape for entry in session.get_outputs()}
    name = POOLED if POOLED in outputs else next(iter(outputs))
    shape = outputs[name]
    if len(shape) not in (2, 3):
        raise ValueError(f'its output "{plain(name)}" is not a list of vectors')
    return name, len(shape) == 2, shape[-1] if isinstance(shape[-1], int) else 0
