from __future__ import annotations

import math
import os
import struct
import subprocess
import sys
import tracemalloc
from importlib.util import find_spec
from pathlib import Path

import pytest
from ggufs import ARRAY, STRING, U32, Value, pair, text, write_gguf, write_transformer

from clawmark.embed.local.gguf import MODEL, GgufEmbedder, make
from clawmark.embed.local.gguf_header import TRUNCATED, read_header
from clawmark.embed.local.transformer import TransformerEmbedder
from clawmark.embed.local.weights import find_pack
from clawmark.model.errors import EmbeddingUnavailable
from clawmark.model.values import Vector
from clawmark.testing import embedder_contract

needs_model = pytest.mark.skipif(
    not (find_pack() and find_spec("xllamacpp")),
    reason="the extras `local` and `gguf` are not installed",
)
SMALL: dict[str, Value] = {
    "general.architecture": "bert",
    "general.name": "Small One",
    "bert.context_length": 512,
    "bert.embedding_length": 384,
}
TEXTS = (
    "which database did we pick?",
    "We chose PostgreSQL for billing.",
    "naïve café — “quoted” 😀 ²½",
    "  leading blanks and\ttabs\n\nand lines",
    "Redis replaces memcached for sessions. " * 40,
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_transformer(tmp_path_factory.mktemp("gguf") / "encoder.gguf"))


@pytest.fixture(scope="module")
def embedder(whole: str) -> GgufEmbedder:
    return make(whole)


def cosine(one: Vector, other: Vector) -> float:
    return sum(
        a * b for a, b in zip(memoryview(one).cast("f"), memoryview(other).cast("f"), strict=True)
    )


def run(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{code}", *arguments],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# A real model.


@needs_model
def test_a_gguf_file_passes_the_contract(whole: str) -> None:
    embedder_contract(lambda: GgufEmbedder(whole))


@needs_model
def test_llama_cpp_gives_the_vectors_of_our_own_encoder(embedder: GgufEmbedder) -> None:
    reference = TransformerEmbedder()
    for one, other in zip(embedder.embed_texts(TEXTS), reference.embed_texts(TEXTS), strict=True):
        assert cosine(one, other) > 0.9995
        assert math.hypot(*memoryview(one).cast("f")) == pytest.approx(1, abs=1e-5)


@needs_model
def test_a_text_has_the_same_vector_alone_and_among_others_to_the_bit(
    embedder: GgufEmbedder, whole: str
) -> None:
    together = embedder.embed_texts(TEXTS)
    assert [GgufEmbedder(whole).embed_query(text) for text in TEXTS] == together


@needs_model
def test_a_text_beyond_the_context_is_cut_and_still_means_the_same(embedder: GgufEmbedder) -> None:
    text = "We chose PostgreSQL for billing, because the team knows it. "
    long, short = embedder.embed_query(text * 400), embedder.embed_query(text * 30)
    assert cosine(long, short) > 0.95


@needs_model
def test_the_identity_is_known_before_llama_cpp_is_imported(whole: str) -> None:
    code = (
        "from clawmark.embed.local.gguf import make\n"
        "embedder = make(sys.argv[1])\n"
        "print(embedder.identity.model, embedder.identity.dims, embedder.traits.label, "
        "'xllamacpp' in sys.modules)"
    )
    name = "Clawmark Encoder 1"
    assert run(code, whole) == f"{name} 384 {name} (gguf) False"


@needs_model
def test_nothing_can_reach_the_engine_from_outside(whole: str) -> None:
    code = (
        "import os, tempfile\n"
        "tempfile.tempdir = sys.argv[2]\n"
        "from clawmark.embed.local.gguf import make\n"
        "make(sys.argv[1]).embed_query('hello')\n"
        "mine = {os.readlink(f'/proc/self/fd/{number}') for number in os.listdir('/proc/self/fd') "
        "if os.path.exists(f'/proc/self/fd/{number}') or "
        "os.path.islink(f'/proc/self/fd/{number}')}\n"
        "rows = [line.split() for file in ('tcp', 'tcp6') if os.path.exists(f'/proc/net/{file}') "
        "for line in open(f'/proc/net/{file}')]\n"
        "print([row[1] for row in rows if f'socket:[{row[9]}]' in mine], os.listdir(sys.argv[2]))"
    )
    if not os.path.exists("/proc/net/tcp"):
        pytest.skip("this system has no /proc/net to look at")
    folder = os.path.dirname(whole)
    empty = os.path.join(folder, "t")
    os.mkdir(empty)
    assert run(code, whole, empty) == "[] []"


@needs_model
def test_prefixes_go_before_questions_and_passages_and_into_the_identity(
    embedder: GgufEmbedder, whole: str
) -> None:
    asking = GgufEmbedder(whole, prefixes=("query: ", "passage: "))
    assert asking.embed_query("hello") == embedder.embed_query("query: hello")
    assert asking.embed_texts(["hello"]) == embedder.embed_texts(["passage: hello"])
    assert asking.identity.provider_key != embedder.identity.provider_key


@needs_model
def test_a_file_that_is_replaced_while_in_use_is_refused(whole: str, tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(Path(whole).read_bytes())
    embedder = make(str(file))
    assert embedder.identity.dims == 384
    file.write_bytes(Path(whole).read_bytes())
    os.utime(file, ns=(1, 1))
    with pytest.raises(EmbeddingUnavailable, match="replaced while it was in use"):
        embedder.embed_query("hello")


@needs_model
def test_a_file_that_llama_cpp_cannot_load_is_refused_with_its_architecture(tmp_path: Path) -> None:
    file = write_gguf(
        tmp_path / "odd.gguf", {"general.architecture": "abacus", "abacus.embedding_length": 8}
    )
    with pytest.raises(EmbeddingUnavailable, match='architecture "abacus"') as caught:
        make(str(file)).embed_query("hello")
    assert str(file) in caught.value.message
    assert "xllamacpp" in caught.value.hint


@needs_model
@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [("split.count", 3, "one of 3 parts"), ("bert.pooling_type", 4, "ranks passages")],
)
def test_a_file_that_makes_no_vectors_is_refused(
    tmp_path: Path, key: str, value: int, reason: str
) -> None:
    file = write_gguf(tmp_path / "odd.gguf", {**SMALL, "tokenizer.ggml.model": "bert", key: value})
    with pytest.raises(EmbeddingUnavailable, match=reason):
        make(str(file)).embed_query("hello")


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "small.gguf", SMALL)
    code = (
        "sys.modules['xllamacpp'] = None\n"
        "from clawmark.embed.local.gguf import make\nfrom clawmark.model.errors import "
        "EmbeddingUnavailable\n"
        "try: make(sys.argv[1]).embed_query('x')\n"
        "except EmbeddingUnavailable as error: print(error.message, error.hint)"
    )
    printed = run(code, str(file))
    assert "pip install 'clawmark[gguf]'" in printed
    assert "Small One" in printed


# Headers.


def test_the_identity_follows_the_bytes_and_not_the_name_of_the_file(tmp_path: Path) -> None:
    one = write_gguf(tmp_path / "one.gguf", SMALL)
    same = write_gguf(tmp_path / "same.gguf", SMALL)
    other = write_gguf(tmp_path / "other.gguf", {**SMALL, "general.author": "somebody"})
    first, second, third = (GgufEmbedder(str(file)).identity for file in (one, same, other))
    assert first == second
    assert (first.provider, first.model, first.dims) == ("local", "Small One", 384)
    assert third.provider_key != first.provider_key


@pytest.mark.parametrize(
    ("architecture", "name", "model"),
    [
        ("bert", "", "bert"),
        ("gemma-embedding", "", MODEL),
        ("bert", "two\nlines\x1b[2J \u202e" + "x" * 500, "two lines [2J " + "x" * 106),
    ],
)
def test_a_model_has_a_name_that_can_be_printed(
    tmp_path: Path, architecture: str, name: str, model: str
) -> None:
    values: dict[str, Value] = {"general.architecture": architecture, "general.name": name}
    values[f"{architecture}.embedding_length"] = 8
    assert GgufEmbedder(str(write_gguf(tmp_path / "a.gguf", values))).identity.model == model


@pytest.mark.parametrize(
    ("architecture", "name", "query", "passage"),
    [
        ("gemma-embedding", "", "task: search result | query: ", "title: none | text: "),
        (
            "gemma-embedding",
            "Embeddinggemma 300M Qat",
            "task: search result | query: ",
            "title: none | text: ",
        ),
        ("nomic-bert", "nomic-embed-text-v1.5", "search_query: ", "search_document: "),
        ("nomic-bert-moe", "my own name", "search_query: ", "search_document: "),
        ("bert", "all-MiniLM-L6-v2", "", ""),
    ],
)
def test_known_families_get_their_prefixes(
    tmp_path: Path, architecture: str, name: str, query: str, passage: str
) -> None:
    values: dict[str, Value] = {"general.architecture": architecture, "general.name": name}
    values[f"{architecture}.embedding_length"] = 8
    file = str(write_gguf(tmp_path / "a.gguf", values))
    assert GgufEmbedder(file).identity == GgufEmbedder(file, prefixes=(query, passage)).identity


def test_qwen_gets_an_instruction_before_questions(tmp_path: Path) -> None:
    values: dict[str, Value] = {
        "general.architecture": "qwen3",
        "general.name": "Qwen3 Embedding 0.6B",
    }
    values["qwen3.embedding_length"] = 8
    file = str(write_gguf(tmp_path / "a.gguf", values))
    assert GgufEmbedder(file).identity != GgufEmbedder(file, prefixes=("", "")).identity


def test_a_model_of_english_only_does_not_cover_other_scripts(tmp_path: Path) -> None:
    english = GgufEmbedder(
        str(write_gguf(tmp_path / "en.gguf", {**SMALL, "general.languages": ["en"]}))
    )
    every = GgufEmbedder(str(write_gguf(tmp_path / "all.gguf", SMALL)))
    assert english.covers("where is the database?") and not english.covers("Где база данных?")
    assert every.covers("Где база данных?") and not every.covers("***")


def test_a_large_vocabulary_is_not_read_for_the_identity_and_skipped_when_loading(
    tmp_path: Path,
) -> None:
    words = [f"word{number}" for number in range(5_000)]
    late: dict[str, Value] = {**SMALL, "tokenizer.ggml.tokens": words, "bert.pooling_type": 2}
    file = str(write_gguf(tmp_path / "a.gguf", late))
    assert read_header(file).pooling == -1
    assert read_header(file, whole=True).pooling == 2


# Refused files.

START = struct.pack("<4sIQQ", b"GGUF", 3, 0, 1)
HOSTILE = {
    "a text": (b"# Notes\n\nnothing here\n", "does not begin like a GGUF file"),
    "nothing": (b"", "it is empty"),
    "only a beginning": (b"GGUF", TRUNCATED),
    "version 1": (struct.pack("<4sIQQ", b"GGUF", 1, 0, 0), "version 1"),
    "version 3 the other way round": (struct.pack(">4sIQQ", b"GGUF", 3, 0, 0), "version 50331648"),
    "more tensors than bytes": (
        struct.pack("<4sIQQ", b"GGUF", 3, 2**63, 0),
        "announces 9223372036854775808 tensors",
    ),
    "more values than bytes": (
        struct.pack("<4sIQQ", b"GGUF", 3, 0, 2**64 - 1),
        "18446744073709551615 values",
    ),
    "an endless key": (START + struct.pack("<Q", 2**62), "a key of 4611686018427387904 bytes"),
    "an endless text": (
        START + text("general.name") + struct.pack("<IQ", STRING, 2**63),
        TRUNCATED,
    ),
    "an endless list": (
        START + text("x") + struct.pack("<IIQ", ARRAY, STRING, 2**60),
        "a list of 1152921504606846976",
    ),
    "an endless list of numbers": (
        START + text("x") + struct.pack("<IIQ", ARRAY, U32, 2**21),
        TRUNCATED,
    ),
    "texts beyond the end": (
        START + text("x") + struct.pack("<IIQQ", ARRAY, STRING, 1_000, 2**63),
        TRUNCATED,
    ),
    "a list of lists": (
        START + text("x") + struct.pack("<IIQ", ARRAY, ARRAY, 1),
        "a list of the unknown type 9",
    ),
    "an unknown type": (START + text("x") + struct.pack("<I", 99), "unknown type 99"),
    "no architecture": (START + pair("general.name", "x"), "names no architecture"),
    "no size": (START + pair("general.architecture", "bert"), "no usable size"),
    "an absurd size": (
        struct.pack("<4sIQQ", b"GGUF", 3, 0, 2)
        + pair("general.architecture", "b")
        + pair("b.embedding_length", 2**31),
        "no usable size of its vectors",
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_file_that_is_not_a_model_is_refused_by_name_and_reason_without_using_memory(
    tmp_path: Path, case: str
) -> None:
    data, reason = HOSTILE[case]
    file = tmp_path / "bad.gguf"
    file.write_bytes(data)
    tracemalloc.start()
    try:
        with pytest.raises(EmbeddingUnavailable) as caught:
            _ = GgufEmbedder(str(file)).identity
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert str(file) in caught.value.message
    assert reason in caught.value.message
    assert "memorySearch.local.modelPath" in caught.value.hint


def test_a_header_cut_anywhere_is_refused(tmp_path: Path) -> None:
    whole = write_gguf(
        tmp_path / "whole.gguf",
        {**SMALL, "general.languages": ["en", "de"]},
        [("t", (4, 8), 0, bytes(128))],
    )
    data = whole.read_bytes()
    file = tmp_path / "cut.gguf"
    for size in range(len(data) - 128):
        file.write_bytes(data[:size])
        with pytest.raises(ValueError, match=r"empty|GGUF|ends in the middle|missing"):
            read_header(str(file), whole=True)


def test_an_incomplete_download_is_noticed_before_it_is_loaded(tmp_path: Path) -> None:
    tensors = [(f"t{number}", (1_000,), 0, bytes(4_000)) for number in range(10)]
    file = write_gguf(tmp_path / "a.gguf", SMALL, tensors)
    assert read_header(str(file), whole=True).dims == 384
    os.truncate(file, file.stat().st_size - 5_000)
    with pytest.raises(ValueError, match="downloaded to the end"):
        read_header(str(file), whole=True)


def test_a_path_that_is_not_a_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    cases = {
        "": "No GGUF file",
        str(tmp_path): "folder",
        str(tmp_path / "pipe"): "not a file",
        str(tmp_path / "no"): "no such file",
    }
    for path, reason in cases.items():
        with pytest.raises(EmbeddingUnavailable, match=reason) as caught:
            _ = GgufEmbedder(path).identity
        assert (caught.value.provider, caught.value.model) == ("local", MODEL)


@pytest.mark.skipif(not find_spec("xllamacpp"), reason="the extra `gguf` is not installed")
def test_choosing_a_damaged_file_is_refused_at_once(tmp_path: Path) -> None:
    file = tmp_path / "bad.gguf"
    file.write_bytes(b"GGUF")
    with pytest.raises(EmbeddingUnavailable, match="ends in the middle"):
        make(str(file))


def test_a_refused_file_can_be_repaired(tmp_path: Path) -> None:
    file = tmp_path / "a.gguf"
    embedder = GgufEmbedder(str(file))
    with pytest.raises(EmbeddingUnavailable):
        _ = embedder.identity
    write_gguf(file, SMALL)
    assert embedder.identity.dims == 384
