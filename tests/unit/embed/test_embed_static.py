from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from clawmark.embed.local import static, static_table, weights
from clawmark.embed.local.static import PATH, StaticEmbedder, open_table, split_pieces, split_words
from clawmark.model.errors import EmbeddingUnavailable

# The longest pieces of the table, from the left; bytes stand for themselves.
PIECES = {
    "database": ["▁database"],
    "postgresql": ["▁postgresql"],
    "memcached": ["▁memcached"],
    "a828e60": ["▁a", "82", "8", "e", "60"],
    "foo_bar": ["▁foo", "_", "bar"],
    "größe": ["▁gr", "<C3>", "<B6>", "<C3>", "<9F>", "e"],
    "база": ["▁", "<D0>", "<B1>", "<D0>", "<B0>", "<D0>", "<B7>", "<D0>", "<B0>"],
    "😀": ["▁", "<F0>", "<9F>", "<98>", "<80>"],
}


def names(word: str) -> list[str]:
    table = open_table(PATH)
    data = Path(PATH).read_bytes()
    pieces = data[20:].split(b"\n", 60_000)
    rows = split_pieces(table.find, "▁" + word)
    return [f"<{row:02X}>" if row < 256 else pieces[row - 256].decode() for row in rows]


@pytest.mark.parametrize("word", PIECES)
def test_words_are_cut_into_the_longest_pieces_of_the_table(word: str) -> None:
    assert names(word) == PIECES[word]


def test_words_are_lower_case_and_free_of_punctuation() -> None:
    text = "**PostgreSQL** (v2.3.1): don’t—use `foo_bar`!\n\n- Größe"
    assert [word.decode() for word in split_words(text)] == [
        *("postgresql", "v2", "3", "1", "don", "t", "use", "foo_bar", "größe"),
    ]


def test_case_punctuation_and_order_do_not_change_a_vector() -> None:
    embedder = StaticEmbedder()
    assert embedder.embed_query("Redis replaces memcached.") == embedder.embed_query(
        "memcached: REPLACES — redis"
    )


def test_vectors_are_the_same_to_the_bit_on_every_machine() -> None:
    vector = StaticEmbedder().embed_query("We chose PostgreSQL for billing.")
    assert hashlib.sha256(vector).hexdigest() == VECTOR_HASH


def test_a_vector_is_the_same_before_and_after_the_cache_is_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("clawmark.embed.local.static.CACHED_WORDS", 1_500)
    embedder = StaticEmbedder()
    text = "the quick brown fox jumps over the lazy dog"
    first = embedder.embed_query(text)
    for start in range(0, 6_000, 600):
        embedder.embed_query(
            " ".join(f"word{number}" for number in range(start, start + 600)) + " fox"
        )
    assert embedder.embed_query(text) == first


def test_a_long_text_is_the_sum_of_all_its_words() -> None:
    embedder = StaticEmbedder()
    short = embedder.embed_query("alpha beta gamma")
    assert embedder.embed_query("alpha beta gamma " * 5_000) == short


def test_the_longest_words_of_unknown_characters_do_not_overflow() -> None:
    embedder = StaticEmbedder()
    word = "\U0001f9ff" * 16
    assert embedder.embed_query(f"{word} " * 3_000) == embedder.embed_query(word)


def test_one_text_and_many_texts_go_through_different_lookups_to_the_same_vectors() -> None:
    texts = ["Redis replaces memcached", "größe żółw 😀 база", "a828e60 v2.3.1"]
    assert StaticEmbedder().embed_texts(texts) == [
        StaticEmbedder().embed_query(text) for text in texts
    ]


def test_a_damaged_table_is_refused_with_the_next_step(tmp_path: Path) -> None:
    damaged = bytearray(Path(PATH).read_bytes())
    damaged[-1] ^= 1
    file = tmp_path / "static.bin"
    file.write_bytes(damaged)
    with pytest.raises(EmbeddingUnavailable, match="damaged") as caught:
        StaticEmbedder(str(file)).embed_query("hello")
    assert "pip install" in caught.value.hint


@pytest.mark.parametrize("content", [None, b""])
def test_a_missing_or_empty_table_is_refused(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "static.bin"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(EmbeddingUnavailable, match="cannot be read"):
        StaticEmbedder(str(file)).embed_query("hello")


def test_the_static_embedder_needs_neither_numpy_nor_the_network_nor_the_package_metadata() -> None:
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}; from clawmark.embed.choose import *; "
        "around = EmbedderContext({}, '', '', lambda *_: 0); "
        "choose(EmbeddingOptions(), around).embedders[0].embed_query('hello world'); "
        "print({'numpy', 'socket', 'importlib.metadata', 'pathlib', 'logging', 'dataclasses'} & "
        "set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True)
    assert done.stdout == b"set()\n", done.stderr


def test_covers_latin_script_only() -> None:
    embedder = StaticEmbedder()
    assert embedder.covers("Où est la base de données ?")
    assert not embedder.covers("数据库在哪里？")


VECTOR_HASH = "b686a4234272a8828d8dd9ec3eba3a2da6aa4fc44a614b38bb7de9035dd763cd"


@pytest.mark.parametrize(
    ("key", "parts"),
    [
        (static.PROVIDER_KEY, ("static", static.MODEL, static_table.SHA256, static.POOLING)),
        *(
            (model.key, ("local", model.name, model.sha256, weights.POOLING))
            for model in (weights.OWN, weights.TEACHER)
        ),
    ],
)
def test_the_key_of_a_vector_space_is_the_hash_of_what_the_vectors_depend_on(
    key: str, parts: tuple[str, ...]
) -> None:
    assert hashlib.sha256("\n".join(parts).encode()).hexdigest() == key
