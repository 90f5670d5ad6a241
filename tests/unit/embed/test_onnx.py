from __future__ import annotations

import math
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from clawmark.embed.local.onnx import OnnxEmbedder, make
from clawmark.embed.local.transformer import TransformerEmbedder
from clawmark.embed.local.weights import has_numpy
from clawmark.model.errors import EmbeddingRejected, EmbeddingUnavailable
from clawmark.model.values import Vector
from clawmark.testing import embedder_contract

if TYPE_CHECKING or find_spec("numpy"):
    import numpy as np
    import onnxes
    from onnxes import FLOAT, INT64, node, write_json, write_rows

pytestmark = pytest.mark.skipif(
    not (find_spec("numpy") and find_spec("onnxruntime")),
    reason="the extra `onnx` is not installed",
)
needs_weights = pytest.mark.skipif(not has_numpy(), reason="numpy is not installed")
WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "hello", "world", "##s", "query", ":")
TEXTS = (
    "which database did we pick?",
    "",
    "naïve café — “quoted” 😀 ²½",
    "Redis replaces memcached for sessions. " * 40,
    "the cat sat on the mat " * 200,
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(onnxes.write_transformer(tmp_path_factory.mktemp("onnx") / "encoder"))


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A model of nine words with four numbers each; the vector of a token is its row."""
    return write_rows(tmp_path / "small", WORDS, ROWS)


ROWS: Any = np.arange(1, 37, dtype=np.float32).reshape(9, 4) ** 1.5 if find_spec("numpy") else None


def numbers(vector: Vector) -> list[float]:
    return [float(number) for number in memoryview(vector).cast("f")]


def unit(row: list[float]) -> list[float]:
    return [number / math.hypot(*row) for number in row]


def refusal(source: Path | str) -> EmbeddingUnavailable:
    with pytest.raises(EmbeddingUnavailable) as caught:
        OnnxEmbedder(str(source)).embed_query("hello")
    assert str(source) in caught.value.message
    assert caught.value.hint
    return caught.value


# A real model.


@needs_weights
def test_an_onnx_folder_passes_the_contract(whole: str) -> None:
    embedder_contract(lambda: OnnxEmbedder(whole))


@needs_weights
def test_onnxruntime_gives_the_vectors_of_our_own_encoder(whole: str) -> None:
    for one, other in zip(
        make(whole).embed_texts(TEXTS), TransformerEmbedder().embed_texts(TEXTS), strict=True
    ):
        assert numbers(one) == pytest.approx(numbers(other), abs=2e-5)


@needs_weights
def test_a_text_has_the_same_vector_alone_and_among_others_to_the_bit(whole: str) -> None:
    embedder = make(whole)
    assert embedder.embed_texts(TEXTS) == [make(whole).embed_query(text) for text in TEXTS]


@needs_weights
def test_the_identity_is_known_before_anything_heavy_is_imported(whole: str) -> None:
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}; from clawmark.embed.local.onnx import make; "
        f"embedder = make(sys.argv[1]); "
        "print(*embedder.identity[:2], embedder.identity.dims, embedder.traits.label, "
        "sys.modules.keys() & {'numpy', 'onnxruntime'})"
    )
    done = subprocess.run([sys.executable, "-c", code, whole], capture_output=True, text=True)
    assert done.stdout == "local encoder 384 encoder (onnx) set()\n", done.stderr


# Folders.


def test_mean_pooling_is_the_default(small: Path) -> None:
    expected = ROWS[[2, 4, 5, 6, 3]].mean(axis=0).tolist()
    assert numbers(make(str(small)).embed_query("Hello worlds")) == pytest.approx(
        unit(expected), abs=1e-6
    )


def test_the_first_token_is_used_with_cls_pooling(small: Path) -> None:
    write_json(
        small / "1_Pooling" / "config.json",
        {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False},
    )
    assert numbers(make(str(small)).embed_query("hello")) == pytest.approx(
        unit(ROWS[2].tolist()), abs=1e-6
    )


def test_the_output_of_a_model_that_pools_itself_is_used(small: Path) -> None:
    nodes = [
        node("Gather", ["rows", "input_ids"], ["token_embeddings"]),
        node("Gather", ["rows", "first"], ["sentence_embedding"]),
    ]
    outputs: dict[str, onnxes.Shape] = {
        "token_embeddings": ("batch", "sequence", 4),
        "sentence_embedding": ("batch", 4),
    }
    tensors = {"rows": ROWS, "first": np.array([7])}
    (small / "model.onnx").write_bytes(onnxes.model(nodes, tensors, {"input_ids": INT64}, outputs))
    assert numbers(make(str(small)).embed_query("hello")) == pytest.approx(
        unit(ROWS[7].tolist()), abs=1e-6
    )


def test_the_models_own_prompts_are_put_before_questions(small: Path) -> None:
    plain = make(str(small))
    before = plain.embed_query("query: hello"), plain.identity
    write_json(
        small / "config_sentence_transformers.json",
        {"prompts": {"query": "query: ", "document": ""}},
    )
    asking = make(str(small))
    assert asking.embed_query("hello") == before[0]
    assert asking.embed_texts(["hello"]) == plain.embed_texts(["hello"])
    assert asking.identity.provider_key != before[1].provider_key


def test_the_smallest_configured_length_is_used(small: Path) -> None:
    write_json(small / "sentence_bert_config.json", {"max_seq_length": 10})
    embedder = make(str(small))
    assert embedder.embed_query("hello " * 8) == embedder.embed_query("hello " * 500)


def test_the_size_of_a_model_without_configuration_is_read_from_the_model(small: Path) -> None:
    (small / "config.json").unlink()
    assert make(str(small)).identity.dims == 4


@pytest.mark.parametrize("kind", ["int64", "int32"])
def test_inputs_that_every_text_has_are_filled_in(tmp_path: Path, kind: str) -> None:
    code = {"int64": INT64, "int32": 6}[kind]
    folder = write_rows(
        tmp_path / "a", WORDS, ROWS, attention_mask=code, token_type_ids=code, position_ids=code
    )
    assert len(numbers(make(str(folder)).embed_query("hello"))) == 4


def test_the_identity_changes_with_the_vectors_and_with_nothing_else(
    small: Path, tmp_path: Path
) -> None:
    first = make(str(small)).identity
    moved = tmp_path / "elsewhere" / "small"
    moved.parent.mkdir()
    small.rename(moved)
    assert make(str(moved)).identity == first
    pooling = '{"pooling_mode": "cls"}'
    for file, content in (
        ("vocab.txt", "x\n"),
        ("1_Pooling/config.json", pooling),
        ("model.onnx_data", "x"),
    ):
        before = make(str(moved)).identity
        (moved / file).parent.mkdir(exist_ok=True)
        with (moved / file).open("a") as stream:
            stream.write(content)
        assert make(str(moved)).identity != before


def test_a_file_in_a_subfolder_finds_its_tokenizer_above(small: Path) -> None:
    before = make(str(small)).embed_query("hello")
    (small / "onnx").mkdir()
    (small / "model.onnx").rename(small / "onnx" / "model_quantized.onnx")
    assert make(str(small)).embed_query("hello") == before
    assert make(str(small / "onnx" / "model_quantized.onnx")).embed_query("hello") == before
    assert make(str(small)).identity.model == "small"


def test_an_installed_package_is_used_without_being_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_rows(tmp_path / "tiny_model", WORDS, ROWS)
    (folder / "__init__.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert make("tiny-model").identity == make(str(folder)).identity
    assert make("tiny-model").embed_query("hello") == make(str(folder)).embed_query("hello")


def test_a_tokenizer_may_be_in_another_folder(small: Path, tmp_path: Path) -> None:
    expected = make(str(small)).embed_query("hello")
    (tmp_path / "words").mkdir()
    (small / "vocab.txt").rename(tmp_path / "words" / "vocab.txt")
    assert (
        OnnxEmbedder(str(small), tokenizer=str(tmp_path / "words")).embed_query("hello") == expected
    )


# Refused files.


def test_a_missing_model_is_refused(tmp_path: Path) -> None:
    assert "no such folder" in refusal(tmp_path / "absent").message
    assert "no such package is installed" in refusal("absent-model").message
    (tmp_path / "empty").mkdir()
    assert "no .onnx file" in refusal(tmp_path / "empty").message


def test_one_of_several_models_has_to_be_named(small: Path) -> None:
    (small / "model.onnx").rename(small / "a.onnx")
    (small / "b.onnx").write_bytes(b"")
    assert "holds 2 models; name one of them, such as a.onnx" in refusal(small).message


def test_a_model_without_tokenizer_is_refused(small: Path) -> None:
    (small / "vocab.txt").unlink()
    assert "no tokenizer" in refusal(small).message


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("model.onnx", "not a model", "onnxruntime cannot load it"),
        ("model.onnx", "", "onnxruntime cannot load it"),
        ("config.json", "{", "its config.json is not JSON"),
        ("config.json", "[" * 100_000, "its config.json is not JSON"),
        ("config.json", "[]", "its config.json does not hold a JSON object"),
        (
            "config.json",
            '{"hidden_size": 5}',
            "its vectors have 4 numbers, but its configuration says 5",
        ),
        ("1_Pooling/config.json", '{"pooling_mode_max_tokens": true}', "it pools by max_tokens"),
        ("vocab.txt", "hello\n", "its vocab.txt has no [CLS]"),
        ("tokenizer.json", '{"model": 5}', "does not describe a tokenizer"),
        ("tokenizer.json", '{"model": {"type": "WordPiece", "vocab": {"a": "b"}}}', "tokenizers"),
    ],
)
def test_a_damaged_folder_is_refused_with_the_reason(
    small: Path, file: str, content: str, reason: str
) -> None:
    (small / file).parent.mkdir(exist_ok=True)
    (small / file).write_text(content)
    assert reason in refusal(small).message


def test_a_missing_dense_layer_is_noticed(small: Path) -> None:
    write_json(
        small / "modules.json", [{"path": "2_Dense", "type": "sentence_transformers.models.Dense"}]
    )
    assert "dense layer" in refusal(small).message


def test_a_model_with_unknown_inputs_is_refused(tmp_path: Path) -> None:
    folder = write_rows(tmp_path / "picture", WORDS, ROWS, pixel_values=FLOAT)
    assert 'an input "pixel_values" of float' in refusal(folder).message


def test_a_model_that_was_replaced_while_in_use_is_refused(small: Path) -> None:
    embedder = make(str(small))
    assert embedder.identity.dims == 4
    os.utime(small / "model.onnx", ns=(1, 1))
    with pytest.raises(EmbeddingUnavailable, match="replaced while it was in use"):
        embedder.embed_query("hello")


@pytest.mark.parametrize("value", [0.0, math.nan, math.inf])
def test_unusable_vectors_are_refused(tmp_path: Path, value: float) -> None:
    folder = write_rows(tmp_path / "broken", WORDS, np.full((9, 4), value, np.float32))
    with pytest.raises(EmbeddingRejected, match="unusable"):
        make(str(folder)).embed_texts(["hello"])


def test_a_token_beyond_the_models_table_rejects_the_text(tmp_path: Path) -> None:
    folder = write_rows(tmp_path / "short", WORDS, ROWS[:5])
    with pytest.raises(EmbeddingRejected, match="could not embed a text"):
        make(str(folder)).embed_query("hello worlds")


def test_without_the_extra_it_says_what_to_install(small: Path) -> None:
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}; sys.modules['onnxruntime'] = None\n"
        "from clawmark.embed.local.onnx import make; from clawmark.model.errors import "
        "EmbeddingUnavailable\n"
        "try: make(sys.argv[1]).embed_query('x')\n"
        "except EmbeddingUnavailable as error: print(error.hint)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(small)], capture_output=True, text=True)
    assert "pip install 'clawmark[onnx]'" in done.stdout, done.stderr


def test_another_kind_of_tokenizer_names_the_package_to_install(small: Path) -> None:
    write_json(small / "tokenizer.json", {"model": {"type": "Unigram", "vocab": [["a", -1.0]]}})
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}; sys.modules['tokenizers'] = None\n"
        "from clawmark.embed.local.onnx import make; from clawmark.model.errors import "
        "EmbeddingUnavailable\n"
        "try: make(sys.argv[1]).embed_query('x')\n"
        "except EmbeddingUnavailable as error: print(error.message, error.hint)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(small)], capture_output=True, text=True)
    assert "of the kind Unigram" in done.stdout, done.stderr
    assert "pip install tokenizers" in done.stdout


# Tokenizers.

BERT = {
    "normalizer": {
        "type": "BertNormalizer",
        "lowercase": True,
        "strip_accents": None,
        "handle_chinese_chars": True,
    },
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": "[CLS]"}},
            {"Sequence": {"id": "A"}},
            {"SpecialToken": {"id": "[SEP]"}},
        ],
        "special_tokens": {"[CLS]": {"ids": [2]}, "[SEP]": {"ids": [3]}},
    },
    "model": {
        "type": "WordPiece",
        "vocab": {word: number for number, word in enumerate(WORDS)},
        "unk_token": "[UNK]",
    },
}


def test_a_vocabulary_and_a_description_of_the_same_tokenizer_agree(small: Path) -> None:
    texts = ["Hello, worlds", "", "xyz", "héllo"]
    before = make(str(small)).embed_texts(texts)
    write_json(small / "tokenizer.json", BERT)
    (small / "vocab.txt").unlink()
    assert make(str(small)).embed_texts(texts) == before


@pytest.mark.skipif(not find_spec("tokenizers"), reason="the package tokenizers is not installed")
def test_the_package_is_used_for_other_kinds(small: Path) -> None:
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    described: dict[str, object] = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "Whitespace"},
        "normalizer": None,
    }
    level = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"}
    write_json(
        small / "tokenizer.json",
        {**described, "post_processor": None, "decoder": None, "model": level},
    )
    expected = ROWS[[4, 5]].mean(axis=0).tolist()
    assert numbers(make(str(small)).embed_query("hello world")) == pytest.approx(
        unit(expected), abs=1e-6
    )
    assert len(numbers(make(str(small)).embed_query(""))) == 4
