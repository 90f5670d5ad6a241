"""Images are found by meaning although their vectors lie apart from those of texts.

Models that embed texts and images place them in two regions: a text is nearer to any other text
than to the image that it describes. The server here does the same."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from apis import Answer, Asked, Row
from commands import Place, new_place
from embeddings import EmbeddingServer
from hashed import numbers

from clawmark import Memory

KEY = "not-a-real-key"
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8
SUBJECTS = (
    "heron standing shallow water wooden pier sunrise golden reflections",
    "rusty bicycle leaning crumbling brick wall ivy leaves courtyard",
    "birthday cake chocolate candles children laughing garden table",
    "snow mountain hut skis frozen window chimney smoke valley",
    "whiteboard arrows boxes deadline budget figures meeting marker",
    "harbour crane containers cargo ship rain twilight lamps",
    "kitten sleeping laundry basket striped towel afternoon sunlight",
    "train platform suitcase farewell hat crowd station clock",
    "tomato plants greenhouse watering can rows seedlings gloves",
    "violin orchestra rehearsal conductor sheet music spotlight stage",
)
NOTES = 150


class ApartServer(EmbeddingServer):
    """Texts share one direction and images another; both also point to what they are about."""

    def _right(self, asked: Asked) -> Answer:
        rows = []
        for at, text in enumerate(asked.texts):
            about = [0.6 * float(number) for number in numbers(text, self.dims)]
            is_image = "Image file: " in text
            about[0] += 0.5 if is_image else 0.8
            about[1] += 0.6 if is_image else 0.0
            length = math.hypot(*about)
            rows.append(Row(at, json.dumps([number / length for number in about])))
        return Answer(rows, asked.model)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    place = new_place(tmp_path)
    for name, value in place.environment().items():
        monkeypatch.setenv(name, value)
    for number in range(NOTES):
        text = f"Invoice {number} of supplier {number * 7} was paid by transfer {number * 13}."
        place.write(f"memory/invoices/{number}.md", f"# Invoice {number}\n\n{text}\n")
    (tmp_path / "photos").mkdir()
    for number, subject in enumerate(SUBJECTS):
        data = PNG + b"picture showing " + subject.encode()
        (tmp_path / "photos" / f"IMG_{number:04}.png").write_bytes(data)
    return place


def test_a_question_finds_the_image_it_describes_among_many_notes(
    place: Place, tmp_path: Path
) -> None:
    with ApartServer(dims=768, key=KEY) as server:
        search = {
            "provider": "gemini",
            "model": "gemini-embedding-2",
            "outputDimensionality": 768,
            "extraPaths": [str(tmp_path / "photos")],
            "multimodal": {"enabled": True},
            "remote": {"baseUrl": server.gemini_url, "apiKey": KEY},
        }
        place.state.mkdir()
        (place.state / "clawmark.json").write_text(json.dumps({"memorySearch": search}))
        with Memory.open(place.workspace, state_dir=place.state, background=False) as memory:
            assert memory.sync().degraded is None
            first = {
                subject: [hit.path for hit in memory.search(subject).hits][:1]
                for subject in SUBJECTS
            }
            assert first == {
                subject: [f"../photos/IMG_{number:04}.png"]
                for number, subject in enumerate(SUBJECTS)
            }
            (hit, *_) = memory.search("which supplier got transfer 1300 for invoice 100?").hits
            assert hit.path == "memory/invoices/100.md"
            assert not [hit for hit in memory.search("supplier invoice 42").hits if hit.mime]
            assert memory.search(SUBJECTS[0], path="memory/**").hits == ()
            (hit,) = memory.search(SUBJECTS[0], path="../photos/**").hits
            assert hit.path == "../photos/IMG_0000.png"
