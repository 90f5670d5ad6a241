"""A workspace, a folder of photos and an embedding server, for the tests of images and audio.

The server "sees" an image by the words in its bytes, so that a question finds a file whose name
says nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from commands import Place, new_place
from embeddings import EmbeddingServer

from clawmark import Memory

KEY = "AIza-FAKE-planted-9f3c1e7ab2d84650"
PNG, JPEG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8, b"\xff\xd8\xff\xe0" + b"\0" * 12
WAV = b"RIFF\x24\0\0\0WAVEfmt "
HERON = b"heron standing in shallow water near the wooden pier at sunrise, golden reflections"
BICYCLE = b"rusty red bicycle leaning against a crumbling brick wall under ivy leaves"
INVOICE = b"voice saying the Lisbon invoice is overdue and the accountant wants payment on Friday"


class Scene(NamedTuple):
    """A workspace with notes, a folder of photos, and a server."""

    place: Place
    photos: Path
    server: EmbeddingServer

    def configure(self, **search: Any) -> None:
        tree = {
            "provider": "gemini",
            "model": "gemini-embedding-2",
            "extraPaths": [str(self.photos)],
            "multimodal": {"enabled": True},
            "remote": {"baseUrl": self.server.gemini_url, "apiKey": KEY},
            **search,
        }
        self.place.state.mkdir(mode=0o700, exist_ok=True)
        (self.place.state / "clawmark.json").write_text(
            json.dumps({"memorySearch": tree}), encoding="utf-8"
        )

    def open(self, **options: Any) -> Memory:
        return Memory.open(
            self.place.workspace, state_dir=self.place.state, background=False, **options
        )

    def sent_files(self) -> list[str]:
        """The labels of the files that were sent so far, in order."""
        bodies = [json.loads(request.body) for request in self.server.requests]
        contents = [row["content"] for body in bodies for row in body.get("requests", [])]
        return [
            content["parts"][0]["text"].rpartition("/")[2]
            for content in contents
            if len(content["parts"]) == 2
        ]


@contextmanager
def open_scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    """Make the scene, and run its server until the end of the block."""
    place = new_place(tmp_path)
    for name, value in place.environment().items():
        monkeypatch.setenv(name, value)
    photos = tmp_path / "photos"
    photos.mkdir()
    (photos / "IMG_0001.png").write_bytes(PNG + HERON)
    (photos / "IMG_0002.jpg").write_bytes(JPEG + BICYCLE)
    (photos / "REC_0003.wav").write_bytes(WAV + INVOICE)
    with EmbeddingServer(dims=3072, key=KEY) as server:
        made = Scene(place, photos, server)
        made.configure()
        yield made


def found(memory: Memory, question: bytes) -> list[tuple[str, str]]:
    """The paths and types of the hits."""
    return [(hit.path, hit.mime) for hit in memory.search(question.decode()).hits]
