"""An index through a remote provider, killed at random moments and taken up again: nothing that was
paid is paid twice.

The server counts every text that comes again after it had been answered. Only what was on its way
when the process died may: answers that were written to a process that could not store them any
more."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from commands import CLAWMARK, Place
from embeddings import EmbeddingServer
from tally import Record

KEY = "sk-FAKE-kill-5b0d7c1e92aa4f36"
KILLS = 50 if os.environ.get("CLAWMARK_ALL") else 10
KILLS_A_ROUND = 2
"""An index of 300 chunks is over soon: after two kills it may end, and the next two begin with an
empty state.
"""
ON_THE_WAY = 6
"""Four requests run at once, while the answer of one more is read and that of another stored."""
FILES, SECTIONS = 30, 10
HANG_SECONDS = 120


def write_notes(place: Place) -> None:
    """300 chunks, each with words of its own."""
    for file in range(FILES):
        sections = [
            f"## Watch {file}-{number}\n\nAt watch {number} of voyage {file} the log says: wind "
            f"force {number % 9}, "
            f"{file * 37 + number} miles from the cape, {number * 3} sails mended, and the cook "
            f"burnt {file}{number}.\n"
            for number in range(SECTIONS)
        ]
        place.write(f"memory/voyage-{file:02}.md", f"# Voyage {file}\n\n" + "\n".join(sections))


def write_settings(place: Place, server: EmbeddingServer) -> Path:
    settings = {
        "memorySearch": {
            # 32 texts a request, so that there are ten of them; OpenAI's own limit would make two.
            "provider": "openai-compatible",
            "model": "text-embedding-3-small",
            "remote": {"baseUrl": server.url, "apiKey": "${PLANTED_KEY}"},
            "chunking": {"tokens": 48, "overlap": 0},
        }
    }
    path = place.folder / "clawmark.json"
    path.write_text(json.dumps(settings), encoding="utf-8")
    return path


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer(key=KEY, delay=0.02, text_delay=0.001) as made:
        yield made


def start(place: Place, config: Path) -> subprocess.Popen[bytes]:
    words = [*CLAWMARK, "index", "--json", "--config", str(config)]
    return subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=place.environment({"PLANTED_KEY": KEY}),
        cwd=place.folder,
    )


def kill_at(place: Place, config: Path, server: EmbeddingServer, seconds: float) -> int:
    """Kill an index so long after its first request; how many requests had come, or 0 when it ended
    before.
    """
    before = len(server.tally.log)
    with start(place, config) as child:
        deadline = time.monotonic() + HANG_SECONDS
        while child.poll() is None and len(server.tally.log) == before:
            assert time.monotonic() < deadline, "the index hangs"
            time.sleep(0.001)
        time.sleep(seconds)
        child.send_signal(signal.SIGKILL)
        _, err = child.communicate()
    assert child.returncode in (0, -signal.SIGKILL), err.decode()
    server.wait_until_abandoned(HANG_SECONDS)
    return len(server.tally.log) if child.returncode else 0


def complete(place: Place, config: Path) -> None:
    """Run the index to its end."""
    with start(place, config) as child:
        out, err = child.communicate(timeout=HANG_SECONDS)
    assert child.returncode == 0, err.decode()
    report = json.loads(out)
    assert report["degraded"] is None
    assert report["dueVectors"] == 0


def new_index(folder: Path, server: EmbeddingServer) -> tuple[Place, Path]:
    """A workspace of 300 chunks that was never indexed."""
    place = Place(folder)
    place.home.mkdir(parents=True)
    write_notes(place)
    server.tally.reset()
    return place, write_settings(place, server)


def in_vain(log: list[Record], began: int, died: int) -> list[Record]:
    """The requests of a killed process that were answered and not stored: some of their texts came
    again later.
    """
    again = {text for record in log[died:] for text in record.texts}
    return [
        record
        for record in log[began:died]
        if record.answered and not again.isdisjoint(record.texts)
    ]


def test_a_killed_index_pays_only_for_what_was_on_its_way_again(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    chance = random.Random(20261115)
    complete(*new_index(tmp_path / "measure", server))
    span = time.monotonic() - server.tally.log[0].began
    kills = 0
    for number in range(3 * KILLS):
        place, config = new_index(tmp_path / str(number), server)
        deaths = [
            kill_at(place, config, server, chance.uniform(0, span)) for _ in range(KILLS_A_ROUND)
        ]
        complete(place, config)
        log = list(server.tally.log)
        turns = [0, *[sent for sent in deaths if sent], len(log)]
        for began, ended in pairwise(turns):
            texts = [text for record in log[began:ended] for text in record.texts]
            assert len(texts) == len(set(texts)), "one process sent a text twice"
            assert len(in_vain(log, began, ended)) <= ON_THE_WAY
        assert (
            len({text for record in log if record.answered for text in record.texts})
            >= FILES * SECTIONS
        )
        assert server.tally.keys_in_url == server.tally.unauthorised == 0
        kills += sum(sent > 0 for sent in deaths)
        if kills >= KILLS:
            return
    pytest.fail(f"only {kills} of {3 * KILLS} processes could be killed before their end")


def test_an_index_that_is_not_killed_sends_every_text_once(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    place, config = new_index(tmp_path / "calm", server)
    complete(place, config)
    sent = server.tally.snapshot()
    assert sent["texts"] == sent["distinct_texts"]
    assert sent["repeated_texts"] == 0
    place.workspace.joinpath("memory/voyage-07.md").rename(place.workspace / "memory/renamed.md")
    complete(place, config)
    assert server.tally.snapshot() == sent, "a renamed file was paid for again"
