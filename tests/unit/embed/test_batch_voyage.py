"""Voyage's batch interface on the wire, where it is not OpenAI's."""

from __future__ import annotations

import json
from pathlib import Path

from batch_desk import DIMS, KEY, Runs, make_texts
from embeddings import EmbeddingServer

TEXTS = make_texts(3)


def test_lines_hold_the_texts_and_the_order_holds_what_they_share(tmp_path: Path) -> None:
    with EmbeddingServer(key=KEY, dims=DIMS) as server:
        Runs(server, tmp_path, "voyage")(TEXTS)
    upload, order = (request for request in server.requests if request.method == "POST")
    lines = upload.body.split(b"\r\n--clawmark-")[1].partition(b"\r\n\r\n")[2].splitlines()
    assert [json.loads(line) for line in lines] == [
        {"custom_id": hash_, "body": {"input": [text]}} for hash_, text in TEXTS.items()
    ]
    assert json.loads(order.body) == {
        "input_file_id": "file-1",
        "endpoint": "/v1/embeddings",
        "completion_window": "12h",
        "request_params": {
            "model": "voyage-4-large",
            "input_type": "document",
            "output_dimension": DIMS,
        },
        "metadata": {"source": "clawmark-memory"},
    }
