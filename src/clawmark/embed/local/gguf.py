"""Local GGUF files, run by llama.cpp inside this process: texts in, unit vectors out.

The file is the user's (`memorySearch.local.modelPath`), the engine is the extra `gguf`
(`xllamacpp`, which has prebuilt wheels). What the model is and how large its vectors are is read
from the file's head by `gguf_header`; llama.cpp and the weights are loaded by the first text. One
context, one text at a time, so a vector does not depend on its company.

The engine is llama.cpp's server, which insists on listening somewhere. It is given a socket inside
a private folder that is gone again before the first text is embedded, so nothing can reach it;
where there are no such sockets, a port on loopback that asks for a key nobody has.

Known limits: what lies beyond the model's context (at most 2048 tokens are used) is not seen; marks
such as `</s>` in a text are read as the model's own; another processor may round the last bits
differently."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import struct
import tempfile
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from clawmark.embed.base import Traits, check_vectors, is_mostly_latin
from clawmark.embed.local.gguf_header import Header, read_header
from clawmark.embed.local.model_file import (
    PROVIDER,
    Stamp,
    calibration_of,
    is_installed,
    key_of,
    plain,
    prompts_of,
    reason_of,
    sha256_of,
    stamp_of,
    unavailable,
    wellformed,
)
from clawmark.model.errors import EmbeddingRejected
from clawmark.model.values import Identity, Vector

if TYPE_CHECKING:
    from clawmark.model.errors import EmbeddingUnavailable

MODEL = "embeddinggemma-300m-qat-Q8_0"
"""What people run by default; named where nothing better is known."""
INSTALL = "Run `pip install 'clawmark[gguf]'` to install llama.cpp."
CHOOSE = (
    "Set memorySearch.local.modelPath to a GGUF file of an embedding "
    "model, such as embeddinggemma-300m-qat-Q8_0.gguf."
)
METHOD = "gguf 1"
"""Named in the identity: a change in how texts are cut or vectors are made gives it another number.
"""
MOST_TOKENS, FEWEST_TOKENS = 2048, 512
"""Passages have a few hundred tokens; memory and time grow with the square of what is allowed."""
MOST_THREADS = 4
CHARACTERS_PER_TOKEN = 16
"""What lies beyond this many characters for each token of the context is cut off before llama.cpp
looks at it.
"""
MOST_CUTS = 12
NOTHING = "."
"""Stands for a text without a word: some models have no token at all for it."""
MEAN, RANKING = 1, 4
LONGEST_SOCKET = 100
"""Systems allow 103 to 107 bytes for the path of a socket."""
FAMILIES = {
    "gemma-embedding": "embeddinggemma",
    "nomic-bert": "nomic-embed-text",
    "nomic-bert-moe": "nomic-embed-text",
}
"""Architectures that tell the family when the model's name does not."""
_TOO_LARGE = re.compile(r"\((\d+) tokens\)")


class Facts(NamedTuple):
    """What the head of a file tells; it holds for the life of an embedder."""

    stamp: Stamp
    header: Header
    model: str
    prompts: tuple[str, str]
    tokens: int


class GgufEmbedder:
    """Embeds with the model in the GGUF file at `path`; `prefixes` go before questions and before
    passages.
    """

    def __init__(self, path: str, *, prefixes: tuple[str, str] | None = None) -> None:
        self._path = os.path.expanduser(path)
        self._prefixes = prefixes
        self._lock = threading.Lock()
        self._facts: Facts | None = None
        self._identity: Identity | None = None
        self._server: Any = None

    @property
    def identity(self) -> Identity:
        facts = self.facts
        if self._identity is None:
            try:
                digest = sha256_of(facts.stamp)
            except (OSError, ValueError) as error:
                raise self._refused(error) from error
            key = key_of(METHOD, facts.model, digest, *facts.prompts, str(facts.tokens))
            self._identity = Identity(
                provider=PROVIDER, model=facts.model, provider_key=key, dims=facts.header.dims
            )
        return self._identity

    @property
    def traits(self) -> Traits:
        header, model = self.facts.header, self.facts.model
        return Traits(
            f"{model} (gguf)", *calibration_of(model, FAMILIES.get(header.architecture, ""))
        )

    @property
    def facts(self) -> Facts:
        """Read from the file when first asked; raises EmbeddingUnavailable for what is no model."""
        if self._facts is None:
            with self._lock:
                if self._facts is None:
                    self._facts = self._look()
        return self._facts

    def covers(self, text: str) -> bool:
        """Whether there is something to read, in the language of a model that names English as its
        only one.
        """
        if self.facts.header.languages == ("en",):
            return is_mostly_latin(text)
        return any(map(str.isalnum, text))

    def embed_query(self, text: str) -> Vector:
        return self._embed(self.facts.prompts[0], text)

    def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        return [self._embed(self.facts.prompts[1], text) for text in texts]

    def _look(self) -> Facts:
        if not self._path:
            raise unavailable("No GGUF file is named.", MODEL, CHOOSE)
        try:
            stamp = stamp_of(self._path)
            header = read_header(stamp.path)
        except (OSError, ValueError) as error:
            raise self._refused(error) from error
        family = FAMILIES.get(header.architecture, "")
        model = plain(header.name) or (
            MODEL if family == "embeddinggemma" else plain(header.architecture)
        )
        prompts = self._prefixes or prompts_of(model, family)
        return Facts(
            stamp=stamp,
            header=header,
            model=model,
            prompts=prompts,
            tokens=min(header.context or FEWEST_TOKENS, MOST_TOKENS),
        )

    def _embed(self, prefix: str, text: str) -> Vector:
        facts, identity, server = self.facts, self.identity, self._load()
        body = wellformed(text[: facts.tokens * CHARACTERS_PER_TOKEN])
        # Ever shorter until it fits: llama.cpp tells how many tokens it found, and does not cut by
        # itself.
        for _ in range(MOST_CUTS):
            answer = server.handle_embeddings(
                {"input": prefix + (body if body.strip() else NOTHING)}
            )
            if "error" not in answer:
                return self._vector(answer, identity)
            found = _TOO_LARGE.search(str(answer["error"]))
            if not found or not body:
                break
            body = body[
                : min(len(body) - 1, int(len(body) * facts.tokens / int(found.group(1)) * 0.98))
            ]
        message = f"{facts.model} could not embed a text: {_complaint(answer)}."
        raise EmbeddingRejected(message, provider=PROVIDER, model=facts.model)

    def _vector(self, answer: dict[str, Any], identity: Identity) -> Vector:
        numbers = answer["data"][0]["embedding"]
        try:
            vector = struct.pack(f"<{len(numbers)}f", *numbers)
        except (struct.error, OverflowError) as error:
            message = f"{identity.model} gave a vector with something in it that is no number."
            raise EmbeddingRejected(message, provider=PROVIDER, model=identity.model) from error
        check_vectors([vector], 1, identity)
        return vector

    def _load(self) -> Any:
        facts = self.facts
        with self._lock:
            if self._server is None:
                self._server = self._open(facts)
            return self._server

    def _open(self, facts: Facts) -> Any:
        try:
            import xllamacpp
        except ImportError as error:
            message = f"The model {facts.model} needs llama.cpp, which cannot be imported: {error}."
            raise unavailable(message, facts.model, INSTALL) from error
        try:
            header = read_header(self._path, whole=True)
            if header.parts > 1:
                raise ValueError(
                    f"it is one of {header.parts} parts of a model, which have to be joined first"
                )
            if header.pooling == RANKING:
                raise ValueError(
                    "it is a model that ranks passages, and not one that makes vectors"
                )
            server = start_server(xllamacpp, self._path, facts.tokens, header.pooling)
            # The identity that was given out belongs to the bytes that were hashed.
            if stamp_of(self._path) != facts.stamp:
                raise ValueError(
                    "it was replaced while it was in use; start again to use the new one"
                )
        except (OSError, ValueError) as error:
            raise self._refused(error) from error
        except (RuntimeError, AttributeError, MemoryError) as error:
            message = (
                f"llama.cpp cannot load {self._path}: the file is damaged, or its architecture "
                f'"{plain(facts.header.architecture)}" is unknown to the installed version.'
            )
            hint = "Fetch the file again, or run `pip install --upgrade xllamacpp`."
            raise unavailable(message, facts.model, hint) from error
        return server

    def _refused(self, error: OSError | ValueError) -> EmbeddingUnavailable:
        return unavailable(
            f"The model file {self._path} cannot be used: {reason_of(error)}.", MODEL, CHOOSE
        )


def make(path: str) -> GgufEmbedder:
    """The embedder for `memorySearch.local.modelPath`; raises EmbeddingUnavailable if file or
    llama.cpp are not there.

    Only the head of the file is read; the hash, for the identity, and the weights come later.
    """
    embedder = GgufEmbedder(path)
    model = embedder.facts.model
    if not is_installed("xllamacpp"):
        raise unavailable(
            f"The model {model} needs llama.cpp, which is not installed.", model, INSTALL
        )
    return embedder


def start_server(xllamacpp: Any, path: str, tokens: int, pooling: int) -> Any:
    """llama.cpp with the model loaded, silent, on few threads, and out of everybody's reach."""
    wanted = xllamacpp.CommonParams()
    wanted.model.path = path
    wanted.embedding = True
    wanted.n_ctx = wanted.n_batch = wanted.n_ubatch = tokens
    wanted.n_parallel = 1
    if pooling <= 0:
        wanted.pooling_type = xllamacpp.llama_pooling_type(MEAN)
    # Half the cores: llama.cpp's threads wait for each other by spinning, and on a busy machine two
    # of them take three times as long as one.
    threads = max(1, min(MOST_THREADS, (os.cpu_count() or 1) // 2))
    wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = threads
    wanted.verbosity = -1
    wanted.offline = True
    wanted.warmup = wanted.fit_params = wanted.ui = wanted.endpoint_slots = wanted.cache_prompt = (
        False
    )
    wanted.cache_ram_mib = 0
    wanted.n_threads_http = 1
    wanted.cors_origins = ""
    wanted.api_keys = [secrets.token_urlsafe(32)]
    try:
        folder = tempfile.mkdtemp(prefix="clawmark-") if os.name == "posix" else ""
    except OSError:
        folder = ""
    socket = os.path.join(folder, "llama.sock")
    if folder and len(os.fsencode(socket)) <= LONGEST_SOCKET:
        wanted.hostnames = [socket]
        # The number means nothing to a socket in a folder, but zero would make the server look for
        # a free one.
        wanted.port = 1
    try:
        server = xllamacpp.Server(wanted)
        # One that is dropped before its first answer may wait for itself forever.
        server.handle_embeddings({"input": NOTHING})
        return server
    finally:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def _complaint(answer: dict[str, Any]) -> str:
    error = answer["error"]
    return plain(str(error.get("message", error) if isinstance(error, dict) else error)).rstrip(".")
