"""What comes back: right answers of every shape are read, and nothing else is."""

from __future__ import annotations

import base64
import json
import math
import struct
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawmark.embed.services import bedrock, gemini, ollama
from clawmark.embed.services.parsing import (
    LONG,
    error_message,
    load,
    read_data,
    to_unit,
    used_tokens,
)


def data(*rows: Any) -> bytes:
    return json.dumps({"data": list(rows)}).encode()


def row(index: Any, embedding: Any) -> dict[str, Any]:
    return {"object": "embedding", "index": index, "embedding": embedding}


def long(body: bytes) -> bytes:
    """The same answer, so long that it is read by `msgspec`."""
    return b" " * LONG + body


def test_vectors_are_matched_by_their_index() -> None:
    answer = data(row(1, [0, 1.0]), row(0, [1.0, 0]))
    assert read_data(answer, 2) == [[1.0, 0], [0, 1.0]]
    assert read_data(long(answer), 2) == [(1.0, 0.0), (0.0, 1.0)]


def test_without_any_index_the_order_counts() -> None:
    answer = data({"embedding": [1.0]}, {"embedding": [2.0]})
    assert read_data(answer, 2) == [[1.0], [2.0]]
    assert read_data(long(answer), 2) == [(1.0,), (2.0,)]


def test_base64_is_read_as_float32() -> None:
    packed = base64.b64encode(struct.pack("<3f", 0.5, -1.0, 2.0)).decode()
    for answer in (data(row(0, packed)), long(data(row(0, packed)))):
        assert read_data(answer, 1) == [[0.5, -1.0, 2.0]]


@given(
    st.lists(
        st.lists(st.floats(width=64, allow_nan=False) | st.integers(), min_size=3, max_size=3),
        min_size=1,
        max_size=5,
    )
)
def test_long_and_short_responses_are_read_alike(rows: list[list[float]]) -> None:
    answer = data(*[row(at, numbers) for at, numbers in enumerate(rows)]).replace(
        b"Infinity", b"1e999"
    )
    short, quick = read_data(answer, len(rows)), read_data(long(answer), len(rows))
    assert [list(map(float, numbers)) for numbers in short] == [
        list(map(float, numbers)) for numbers in quick
    ]


def test_long_response_must_be_json_as_a_whole() -> None:
    vectors = b'{"data":[{"embedding":[1.0],"index":0}],"usage":'
    assert read_data(long(vectors + b'{"total_tokens":9,"x":[[],"\\u00e9"]}}'), 1) == [(1.0,)]
    for rest, why in (
        (b'"\xff"}', "UTF-8"),
        (b"[NaN]}", "NaN"),
        (b"9,}", "not JSON"),
        (b"[" * 50_000, "too deeply"),
    ):
        with pytest.raises(ValueError, match=why):
            read_data(long(vectors + rest), 1)


def test_error_in_a_long_response_with_vectors_is_found() -> None:
    with pytest.raises(ValueError, match='it said "overloaded"'):
        read_data(long(b'{"data":[{"embedding":[1.0]}],"error":{"message":"overloaded"}}'), 1)


def test_one_vector_is_read_without_loading_msgspec() -> None:
    """A search waits for it, and loading takes longer than `json` does."""
    code = (
        "import json, sys\n"
        "from clawmark.embed.services.parsing import read_data, to_unit\n"
        "answer = json.dumps({'data': [{'index': 0, 'embedding': [-0.012345678901234567] * "
        "4096}]}).encode()\n"
        "assert len(to_unit(read_data(answer, 1)[0])) == 4 * 4096\n"
        "assert 'msgspec' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_threads_can_read_their_first_long_responses_together() -> None:
    """Without a lock around the making of decoders this ended every process with a segmentation
    fault.
    """
    code = """
import sys, threading
from typing import TypedDict
from clawmark.embed.services.parsing import LONG, Numbers, load

sys.setswitchinterval(1e-6)
body = b'{"rows":[' + b",".join([b'{"values":[0.5,0.25]}'] * (LONG // 20)) + b"]}"

def ask(gate, shape):
    gate.wait()
    assert len(load(body, shape)["rows"]) == LONG // 20

for _ in range(20):
    row = TypedDict("row", {"values": Numbers})
    shape = TypedDict("shape", {"rows": list[row]})
    gate = threading.Barrier(6)
    threads = [threading.Thread(target=ask, args=(gate, shape)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "not JSON"),
        (b"null", "not a JSON object"),
        (b"[]", "not a JSON object"),
        (b"{}", "no list of vectors"),
        (b"{}{}", "not JSON"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b'{"data":"\xff"}', "not UTF-8"),
        (b"<html>portal</html>", "not JSON"),
        (b'{"data":[{"embedding":[0.1,', "not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"data":' * 100_000, "nested too deeply"),
        (b'{"error":{"message":"overloaded"}}', 'it said "overloaded"'),
        (b'{"data":{"0":{"index":0,"embedding":[1.0]}}}', "no list of vectors"),
        (data(), "0 vectors for 2 texts"),
        (data(row(0, [1.0])), "1 vectors for 2 texts"),
        (data(row(0, [1.0]), row(1, [1.0]), row(2, [1.0])), "3 vectors for 2 texts"),
        (data(row(0, [1.0]), row(0, [1.0])), "each once"),
        (data(row(0, [1.0]), row(2, [1.0])), "each once"),
        (data(row(0, [1.0]), row(-1, [1.0])), "each once"),
        (data(row(0, [1.0]), row("1", [1.0])), "each once"),
        (data(row(0, [1.0]), row(True, [1.0])), "each once"),
        (data(row(0, [1.0]), row(1.0, [1.0])), "each once"),
        (data(row(0, [1.0]), {"embedding": [1.0]}), "each once"),
        (data(row(0, [1.0]), row(1, None)), "something else where a vector"),
        (data(row(0, [1.0]), row(1, {"0": 1.0})), "something else where a vector"),
        (data(row(0, [1.0]), [1.0]), "something else where a vector"),
        (data(row(0, [1.0]), row(1, [])), "empty vector"),
        (data(row(0, [1.0]), row(1, "")), "empty vector"),
        (data(row(0, [1.0]), row(1, [1.0, 2.0])), "mixes vectors of 1 and 2 numbers"),
        (data(row(0, [1.0]), row(1, [None])), "not a number"),
        (data(row(0, [1.0]), row(1, [True])), "not a number"),
        (data(row(0, [1.0]), row(1, ["1.0"])), "not a number"),
        (data(row(0, [1.0]), row(1, [[1.0]])), "not a number"),
        (data(row(0, [1.0]), row(1, [math.nan])), "NaN where a number"),
        (data(row(0, [1.0]), row(1, [-math.inf])), "-Infinity where a number"),
        (data(row(0, [1.0]), row(1, "AAA")), "neither numbers nor base64"),
        (data(row(0, [1.0]), row(1, "!!!!")), "neither numbers nor base64"),
        (data(row(0, [1.0]), row(1, "AAAA")), "cut"),
        (b'{"data":[' + b"9" * 5000 + b"]}", "beyond all measure"),
    ],
)
def test_unexpected_response_is_refused(body: bytes, why: str) -> None:
    for answer in (body, long(body)):
        with pytest.raises(ValueError, match=why):
            read_data(answer, 2)


@pytest.mark.parametrize(
    "values", [[1e308] * 4, [math.inf, 1.0], [10**400, 1], [-math.inf, math.inf]]
)
def test_too_large_numbers_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="not finite or far too large"):
        to_unit(values)


@pytest.mark.parametrize("values", [[0.0, 0.0], [0, 0], [5e-324, 5e-324], [1e-11]])
def test_a_vector_without_direction_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="zeros"):
        to_unit(values)


def test_vectors_get_the_length_one() -> None:
    assert struct.unpack("<2f", to_unit([3, 4.0])) == pytest.approx((0.6, 0.8))
    assert struct.unpack("<1f", to_unit([-1e300])) == (-1.0,)
    assert struct.unpack("<2f", to_unit((1e-6, -1e-6))) == pytest.approx(
        (math.sqrt(0.5), -math.sqrt(0.5))
    )


def test_numbers_of_a_vector_that_has_the_length_one_stay_as_they_are() -> None:
    assert to_unit((0.6, 0.8)) == struct.pack("<2f", 0.6, 0.8)


def test_infinity_in_disguise_is_found() -> None:
    """JSON allows 1e999, which Python reads as infinity."""
    values = read_data(b'{"data":[{"index":0,"embedding":[1e999,1.0]}]}', 1)
    with pytest.raises(ValueError, match="not finite"):
        to_unit(values[0])


def test_long_responses_of_every_shape_are_read() -> None:
    assert gemini.parse(long(b'{"embeddings":[{"values":[1.0]},{"values":[2]}]}'), 2) == [
        (1.0,),
        (2.0,),
    ]
    assert gemini.parse(long(b'{"embedding":{"values":[1.0]}}'), 1) == [(1.0,)]
    assert ollama.parse(
        long(b'{"model":"m","embeddings":[[1.0],[2]],"prompt_eval_count":3}'), 2
    ) == [(1.0,), (2.0,)]
    assert bedrock.parse_cohere(long(b'{"embeddings":[[1.0],[2]],"texts":["a","b"]}'), 2) == [
        (1.0,),
        (2.0,),
    ]
    assert bedrock.parse_cohere(long(b'{"embeddings":{"float":[[1.0]]}}'), 1) == [(1.0,)]
    assert load(long(b'{"models":[]}')) == {"models": []}


def test_gemini_responses_hold_one_or_many_vectors() -> None:
    assert gemini.parse(b'{"embedding":{"values":[1.0]}}', 1) == [[1.0]]
    assert gemini.parse(b'{"embeddings":[{"values":[1.0]},{"values":[2.0]}]}', 2) == [[1.0], [2.0]]
    for body in (
        b"{}",
        b'{"embeddings":{}}',
        b'{"embeddings":[[1.0]]}',
        b'{"embeddings":null}',
        b'{"embedding":[1.0]}',
    ):
        with pytest.raises(ValueError, match="no list of vectors"):
            gemini.parse(body, 1)
    with pytest.raises(ValueError, match="something else"):
        gemini.parse(b'{"embeddings":[{}]}', 1)


def test_ollama_vectors_are_in_order() -> None:
    assert ollama.parse(b'{"model":"m","embeddings":[[1.0],[2.0]],"prompt_eval_count":3}', 2) == [
        [1.0],
        [2.0],
    ]
    with pytest.raises(ValueError, match='it said "model not found"'):
        ollama.parse(b'{"error":"model not found"}', 1)
    with pytest.raises(ValueError, match="no list"):
        ollama.parse(b'{"embedding":[1.0]}', 1)


def test_both_families_of_bedrock_are_read() -> None:
    assert bedrock.parse_titan(b'{"embedding":[1.0],"inputTextTokenCount":2}', 1) == [[1.0]]
    assert bedrock.parse_cohere(b'{"embeddings":[[1.0],[2.0]],"texts":["a","b"]}', 2) == [
        [1.0],
        [2.0],
    ]
    assert bedrock.parse_cohere(b'{"embeddings":{"float":[[1.0]]}}', 1) == [[1.0]]
    for body in (b"{}", b'{"embeddings":{"int8":[[1]]}}'):
        with pytest.raises(ValueError, match="no list"):
            bedrock.parse_cohere(body, 1)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"error": "plain"}, "plain"),
        ({"error": {"code": 7}}, "an error"),
        ({"error": {}}, ""),
        ({"error": {"type": "busy"}}, "busy"),
        ({"error": ["x"]}, "an error"),
        ({"error": None}, ""),
        ({"detail": "You are out"}, "You are out"),
        ({"object": "error", "message": "Bad"}, "Bad"),
        ({"message": "all well"}, ""),
        ({"error": "two\nlines\x1b[31m\u202e"}, "two lines [31m"),
    ],
)
def test_an_error_is_found_in_any_shape_and_made_one_line(
    answer: dict[str, Any], words: str
) -> None:
    assert error_message(answer) == words


def test_token_count_of_the_response_is_used_when_plausible() -> None:
    assert used_tokens(b'{"data":[],"usage":{"prompt_tokens":7,"total_tokens":9}}', 5) == 9
    assert used_tokens(b'{"prompt_eval_count": 12}', 5) == 12
    assert (
        used_tokens(b'{"embedding":[' + b"0.1," * 9000 + b'0.1],"inputTextTokenCount":3}', 5) == 3
    )
    for body in (b"{}", b'{"usage":{"total_tokens":999999999}}', b'{"usage":{"total_tokens":0}}'):
        assert used_tokens(body, 5) == 5


def test_null_error_with_vectors_is_ignored() -> None:
    assert load(b'{"error":null,"data":[]}') == {"error": None, "data": []}
