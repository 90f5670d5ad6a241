"""Cross-encoders in ONNX folders: small graphs with known answers, run by the real engine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clawmark.embed.rerank.onnx import OnnxReranker
from clawmark.embed.rerank.pairs import open_pair_tokenizer
from clawmark.model.errors import RerankError
from clawmark.testing import reranker_contract
from clawmark.testing.embedders import OTHER, PASSAGE, QUESTION

if TYPE_CHECKING or find_spec("numpy"):
    import numpy as np
    from onnxes import INT64, model, node, write_json

pytestmark = pytest.mark.skipif(
    not (find_spec("onnxruntime") and find_spec("numpy")), reason="the extra onnx is not installed"
)

MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
WORDS = sorted(set(re.findall(r"\w+", f"{PASSAGE} {QUESTION} {OTHER}".lower())))


def write_overlap(folder: Path, words: Sequence[str] = WORDS, outputs: int = 1) -> Path:
    """Write a cross-encoder whose score is the number of words that the two texts share."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = np.zeros((len(MARKS) + len(words), len(words)), "float32")
    rows[len(MARKS) :] = np.eye(len(words), dtype="float32")
    tensors = {
        "rows": rows,
        "one": np.array(1.0, "float32"),
        "last": np.array([2]),
        "middle": np.array([1]),
    }
    tensors["spread"] = (
        np.full((1, outputs), 0.5, "float32")
        if outputs == 1
        else np.eye(1, outputs, 1, dtype="float32") * 0.5
    )
    nodes = [
        node("Gather", ["rows", "input_ids"], ["embedded"]),
        node("Cast", ["token_type_ids"], ["types"], to=1),
        node("Unsqueeze", ["types", "last"], ["second"]),
        node("Sub", ["one", "second"], ["first"]),
        node("Mul", ["embedded", "first"], ["question_rows"]),
        node("Mul", ["embedded", "second"], ["passage_rows"]),
        node("ReduceSum", ["question_rows", "middle"], ["question"], keepdims=0),
        node("ReduceSum", ["passage_rows", "middle"], ["passage"], keepdims=0),
        node("Mul", ["question", "passage"], ["shared"]),
        node("ReduceSum", ["shared", "middle"], ["count"], keepdims=1),
        node("MatMul", ["count", "spread"], ["logits"]),
    ]
    inputs = {"input_ids": INT64, "token_type_ids": INT64}
    (folder / "model.onnx").write_bytes(
        model(nodes, tensors, inputs, {"logits": ("batch", outputs)})
    )
    (folder / "vocab.txt").write_text(
        "".join(f"{word}\n" for word in [*MARKS, *words]), encoding="utf-8"
    )
    write_json(folder / "config.json", {"hidden_size": len(words), "max_position_embeddings": 64})
    return folder


@pytest.mark.parametrize("outputs", [1, 2])
def test_a_cross_encoder_keeps_the_contract(tmp_path: Path, outputs: int) -> None:
    folder = write_overlap(tmp_path / "cross", outputs=outputs)
    reranker_contract(lambda: OnnxReranker(str(folder)))


def test_a_score_is_the_models_answer_for_the_pair(tmp_path: Path) -> None:
    folder = write_overlap(tmp_path / "cross", ["tea", "heron", "plan"])
    scores = OnnxReranker(str(folder)).rerank(
        "heron plan", ["tea", "heron", "the heron plan"], seconds=30.0
    )
    assert scores == pytest.approx([1 / (1 + np.exp(-0.5 * shared)) for shared in (0, 1, 2)])


def test_a_pair_is_put_together_as_bert_does_and_cut_in_the_passage(tmp_path: Path) -> None:
    folder = write_overlap(tmp_path / "cross", ["tea", "heron", "plan"])
    encode = open_pair_tokenizer(str(folder))
    assert encode("heron plan", "tea", 64) == ([2, 5, 6, 3, 4, 3], [0, 0, 0, 0, 1, 1])
    tokens, kinds = encode("heron plan", "tea " * 50, 16)
    assert len(tokens) == 16 and tokens[:4] == [2, 5, 6, 3] and tokens[-1] == 3
    assert kinds == [0] * 4 + [1] * 12


def test_a_template_says_how_two_texts_are_put_together(tmp_path: Path) -> None:
    special = {
        mark: {"id": mark, "ids": [number], "tokens": [mark]} for number, mark in enumerate(MARKS)
    }

    def mark(name: str, kind: int) -> dict[str, object]:
        return {"SpecialToken": {"id": name, "type_id": kind}}

    def text(name: str, kind: int) -> dict[str, object]:
        return {"Sequence": {"id": name, "type_id": kind}}

    write_json(
        tmp_path / "tokenizer.json",
        {
            "model": {
                "type": "WordPiece",
                "unk_token": "[UNK]",
                "vocab": {**{m: n for n, m in enumerate(MARKS)}, "tea": 4},
            },
            "normalizer": {"type": "BertNormalizer", "lowercase": True},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {
                "type": "TemplateProcessing",
                "single": [mark("[CLS]", 0), text("A", 0), mark("[SEP]", 0)],
                "pair": [
                    mark("[CLS]", 0),
                    text("A", 0),
                    mark("[SEP]", 0),
                    mark("[SEP]", 0),
                    text("B", 1),
                    mark("[SEP]", 1),
                ],
                "special_tokens": special,
            },
        },
    )
    assert open_pair_tokenizer(str(tmp_path))("tea", "tea tea", 32) == (
        [2, 4, 3, 3, 4, 4, 3],
        [0, 0, 0, 0, 1, 1, 1],
    )


def test_what_is_not_a_cross_encoder_is_refused_with_a_reason(tmp_path: Path) -> None:
    for name, source, message in (
        ("absent", str(tmp_path / "absent"), "cannot be used"),
        ("classes", str(write_overlap(tmp_path / "classes", outputs=3)), "it gives 3 numbers"),
    ):
        with pytest.raises(RerankError, match=message) as raised:
            OnnxReranker(source).rerank("tea", ["tea"], seconds=30.0)
        assert raised.value.hint, name


def test_a_model_that_is_damaged_is_refused(tmp_path: Path) -> None:
    folder = write_overlap(tmp_path / "cross")
    (folder / "model.onnx").write_bytes(b"not a model")
    with pytest.raises(RerankError, match="onnxruntime cannot load it"):
        OnnxReranker(str(folder)).rerank("tea", ["tea", "plan"], seconds=30.0)


def test_a_score_that_is_not_a_number_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "cross"
    write_overlap(folder)
    tensors = {
        "rows": np.full((len(MARKS) + len(WORDS), 1), np.nan, "float32"),
        "middle": np.array([1]),
    }
    nodes = [
        node("Gather", ["rows", "input_ids"], ["embedded"]),
        node("ReduceSum", ["embedded", "middle"], ["logits"], keepdims=0),
    ]
    (folder / "model.onnx").write_bytes(
        model(nodes, tensors, {"input_ids": INT64}, {"logits": ("batch", 1)})
    )
    with pytest.raises(RerankError, match="not a finite number"):
        OnnxReranker(str(folder)).rerank("tea", ["tea"], seconds=30.0)
