from __future__ import annotations

import os
from pathlib import Path

import pytest

from clawmark.embed.local.model_file import (
    _FAMILIES,
    calibration_of,
    plain,
    prompts_of,
    sha256_of,
    slug,
    stamp_of,
)
from clawmark.embed.models import MODELS, UNKNOWN

EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_a_hash_changes_with_the_content_and_is_cached(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"")
    os.utime(file, ns=(1, 1))
    before = stamp_of(str(file))
    assert sha256_of(before) == EMPTY
    file.write_bytes(b"other")
    assert sha256_of(stamp_of(str(file))) != EMPTY
    assert sha256_of(before) == EMPTY


def test_a_file_that_changes_while_it_is_hashed_has_no_hash(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"one")
    before = stamp_of(str(file))._replace(mtime_ns=1)
    with pytest.raises(ValueError, match="being written"):
        sha256_of(before)


def test_a_link_and_its_target_are_one_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one")
    (tmp_path / "b").symlink_to("a")
    assert stamp_of(str(tmp_path / "b")) == stamp_of(str(tmp_path / "a"))


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("all-MiniLM-L6-v2", "all-minilm"),
        ("nreimers/MiniLM-L6-H384-uncased", "all-minilm"),
        ("Qwen3 Embedding 0.6B", "qwen3-embedding-0.6b"),
        ("multilingual-e5-small", "multilingual-e5-large"),
        ("bge_small_en_v1.5", "bge-large"),
        ("Embeddinggemma 300M", "embeddinggemma-300m"),
    ],
)
def test_a_family_is_known_by_many_names(name: str, family: str) -> None:
    assert calibration_of(name) == (MODELS[family].floor, MODELS[family].ceiling)


def test_unknown_model_has_average_cosines() -> None:
    assert calibration_of("", "my-own") == (UNKNOWN.floor, UNKNOWN.ceiling)
    assert prompts_of("", "my-own") == ("", "")


def test_every_family_names_a_known_model() -> None:
    assert set(_FAMILIES.values()) <= set(MODELS)


def test_a_name_is_printed_on_one_line_and_shortened() -> None:
    assert plain("a\n\tb\x1b[31m") == "a b [31m"
    assert len(plain("x" * 100_000)) == 120
    assert slug(" Owner/Some_Model 1.5 ") == "some-model-1.5"
