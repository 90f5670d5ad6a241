"""Local GGUF files, run by llama.cpp in this process (the extra `gguf`: `xllamacpp`).

`gguf_header` reads the model's name and the size of its vectors; llama.cpp and the weights are
loaded with the first text. Texts are embedded one at a time, so a vector does not depend on others.

The engine is llama.cpp's server, which has to listen somewhere. It gets a socket in a private
folder that is deleted before the first text is embedded, so nothing can reach it; where there are
no such sockets, a loopback port with a random key.

Known limits: text beyond the model's context (at most 2048 tokens) is ignored; special tokens such
as `</s>` in a text are interpreted; another processor may round the last bits differently."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import struct
import tempfile
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

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
from clawmark.model.errors import EmbeddingRejected, EmbeddingUnavailable
from clawmark.model.values import Identity, Vector

MODEL = "embeddinggemma-300m-qat-Q8_0"
"""The usual model; its name is used where the file has none."""
INSTALL = "Run `pip install 'clawmark[gguf]'` to install llama.cpp."
CHOOSE = (
    "Set memorySearch.local.modelPath to a GGUF file of an embedding "
    "model, such as embeddinggemma-300m-qat-Q8_0.gguf."
)
METHOD = "gguf 1"
"""Part of the identity; the number changes when texts are cut or vectors are made differently."""
MOST_TOKENS, FEWEST_TOKENS = 2048, 512
"""Passages have a few hundred tokens; memory and time grow with the square of the limit."""
MOST_THREADS = 4
CHARACTERS_PER_TOKEN = 16
"""Longer texts are cut to this many characters per token of the context before tokenizing."""
MOST_CUTS = 12
NOTHING = "."
"""Embedded in place of an empty text, for which some models have no token."""
MEAN, RANKING = 1, 4
LONGEST_SOCKET = 100
"""Systems allow 103 to 107 bytes for the path of a socket."""
FAMILIES = {
    "gemma-embedding": "embeddinggemma",
    "nomic-bert": "nomic-embed-text",
    "nomic-bert-moe": "nomic-embed-text",
}
"""The model family by architecture, for files whose name does not contain it."""
_TOO_LARGE = re.compile(r"\((\d+) tokens\)")


class Facts(NamedTuple):
    """What the header says; fixed for the life of an embedder."""

    stamp: Stamp
    header: Header
    model: str
    prompts: tuple[str, str]
    tokens: int


class GgufEmbedder:
    """Embeds with the GGUF file at `path`; `prefixes` are put before questions and passages."""

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
        """Read on first use; raises EmbeddingUnavailable if the file is not a model."""
        if self._facts is None:
            with self._lock:
                if self._facts is None:
                    self._facts = self._look()
        return self._facts

    def covers(self, text: str) -> bool:
        """Whether the text has letters or digits; Latin letters for an English-only model."""
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
        # Shorten the text until it fits: llama.cpp reports the number of tokens but does not cut.
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
        message = f"{facts.model} could not embed a text: {_error_text(answer)}."
        raise EmbeddingRejected(message, provider=PROVIDER, model=facts.model)

    def _vector(self, answer: dict[str, Any], identity: Identity) -> Vector:
        numbers = answer["data"][0]["embedding"]
        try:
            vector = struct.pack(f"<{len(numbers)}f", *numbers)
        except (struct.error, OverflowError) as error:
            message = f"{identity.model} gave a vector that holds something other than numbers."
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
                raise ValueError("it is a model that ranks passages and does not make vectors")
            server = start_server(xllamacpp, self._path, facts.tokens, header.pooling)
            # The identity belongs to the bytes that were hashed.
            if stamp_of(self._path) != facts.stamp:
                raise ValueError("it was replaced while it was in use; restart to use the new one")
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
    """The embedder for `memorySearch.local.modelPath`; raises EmbeddingUnavailable if the file or
    llama.cpp is missing. Only the header is read.
    """
    embedder = GgufEmbedder(path)
    model = embedder.facts.model
    if not is_installed("xllamacpp"):
        raise unavailable(
            f"The model {model} needs llama.cpp, which is not installed.", model, INSTALL
        )
    return embedder


def start_server(xllamacpp: Any, path: str, tokens: int, pooling: int) -> Any:
    """Load the model into llama.cpp, without logging, on few threads, and unreachable by others."""
    wanted = xllamacpp.CommonParams()
    wanted.model.path = path
    wanted.embedding = True
    wanted.n_ctx = wanted.n_batch = wanted.n_ubatch = tokens
    wanted.n_parallel = 1
    if pooling <= 0:
        wanted.pooling_type = xllamacpp.llama_pooling_type(MEAN)
    # Half the cores: llama.cpp's threads spin while they wait for each other, and on a busy machine
    # two of them take three times as long as one.
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
        # Unused with a socket file, but zero would make the server look for a free port.
        wanted.port = 1
    try:
        server = xllamacpp.Server(wanted)
        # A server that is dropped before its first answer may deadlock.
        server.handle_embeddings({"input": NOTHING})
        return server
    finally:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def _error_text(answer: dict[str, Any]) -> str:
    error = answer["error"]
    return plain(str(error.get("message", error) if isinstance(error, dict) else error)).rstrip(".")
