"""Any text at all has a unit vector, and the same one however it is asked for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from clawmark.embed.base import check_vectors
from clawmark.embed.local.static import StaticEmbedder, split_words
from clawmark.testing import HashingEmbedder

EMBEDDER = StaticEmbedder()
TEXTS = st.text(st.characters(exclude_categories=()), max_size=300)


@given(st.lists(TEXTS, max_size=5))
def test_any_text_has_a_usable_static_vector(texts: list[str]) -> None:
    vectors = EMBEDDER.embed_texts(texts)
    check_vectors(vectors, len(texts), EMBEDDER.identity)
    assert vectors == [EMBEDDER.embed_query(text) for text in texts]


@given(
    st.lists(st.text(st.characters(categories=("Ll", "Nd")), min_size=1, max_size=12), min_size=1)
)
def test_the_order_of_words_does_not_change_a_static_vector(words: list[str]) -> None:
    shuffled = sorted(words)
    assert EMBEDDER.embed_query(" ".join(words)) == EMBEDDER.embed_query(" ".join(shuffled))


@given(TEXTS)
def test_words_hold_no_space_and_no_upper_case(text: str) -> None:
    for word in split_words(text):
        assert word
        assert word == word.lower()
        assert not set(word) & set(b" \n\t\r.,;:!?-")


@given(TEXTS)
def test_any_text_has_a_usable_hashed_vector(text: str) -> None:
    embedder = HashingEmbedder(dims=32)
    check_vectors([embedder.embed_query(text)], 1, embedder.identity)
