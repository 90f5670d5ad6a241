"""A run that is killed (-9) at any step is taken up by the next one: one job, no text paid twice,
nothing stored lost.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from batch_desk import DIMS, KEY, PROVIDERS, Runs, make_texts
from embeddings import EmbeddingServer

TEXTS = make_texts(600)

CHILD = """
import base64, json, os, sys
from clawmark.embed.services import gemini
from clawmark.embed.services import openai
from clawmark.embed.services import voyage
from clawmark.embed.batch.run import BatchOptions, run_batches
from clawmark.net.client import HttpClient
from clawmark.embed.services.wire import RemoteOptions

name, base_url, key, dims, folder, texts, cache = sys.argv[1:]
module = {"openai": openai, "gemini": gemini, "voyage": voyage}[name]
provider = module.provider(RemoteOptions(base_url=base_url, api_key=key, dims=int(dims)), {})

def store(portion):
    with open(cache, "a") as file:
        for hash_, vector in portion.items():
            file.write(json.dumps([hash_, base64.b64encode(vector).decode()]) + "\\n")

with open(texts) as file:
    due = json.load(file)
if os.path.exists(cache):
    with open(cache) as file:
        for line in file:
            if line.endswith("]\\n"):
                due.pop(json.loads(line)[0], None)
options = BatchOptions(True, smallest=1, poll_ms=1)
client = HttpClient(provider.base_url, provider.headers, secrets=provider.secrets)
run_batches(
    provider, due, options, folder=folder, client=client, store=store, progress=lambda *_: None
)
"""


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer(key=KEY, dims=DIMS) as server:
        yield server


class Killed:
    """A child process that runs a batch, and the same run again in this one."""

    def __init__(self, server: EmbeddingServer, folder: Path, name: str) -> None:
        self.runs = Runs(server, folder, name)
        self.cache = folder / "cache.jsonl"
        self.texts = folder / "texts.json"
        self.texts.write_text(json.dumps(TEXTS))
        self.name = name

    def until(self, is_time: Callable[[], bool]) -> None:
        """Start the child, wait for the moment, kill it."""
        base_url, folder = self.runs.provider.base_url, str(self.runs.folder)
        words = [self.name, base_url, KEY, str(DIMS), folder, str(self.texts), str(self.cache)]
        child = subprocess.Popen([sys.executable, "-c", CHILD, *words])
        try:
            deadline = time.monotonic() + 60
            while not is_time():
                assert child.poll() is None, "the child ended before its time"
                assert time.monotonic() < deadline
                time.sleep(0.002)
        finally:
            child.kill()
            child.wait()

    def stored(self) -> set[str]:
        lines = self.cache.read_text().splitlines() if self.cache.exists() else []
        return {json.loads(line)[0] for line in lines if line.endswith("]")}

    def again(self) -> None:
        """Embed what the child did not store; then every text has one vector from one job."""
        stored = self.stored()
        due = {hash_: text for hash_, text in TEXTS.items() if hash_ not in stored}
        outcome = self.runs(due)
        assert (outcome.failed, outcome.waiting) == ((), ())
        assert stored | outcome.vectors.keys() == TEXTS.keys()
        assert len(self.runs.desk.jobs) == 1
        assert self.runs.server.tally.repeated == []
        assert self.runs.state == []


def requests(server: EmbeddingServer, method: str, where: str) -> int:
    return sum(
        request.method == method and where in request.target for request in list(server.requests)
    )


@pytest.mark.parametrize("name", PROVIDERS)
def test_killed_while_it_waits(server: EmbeddingServer, tmp_path: Path, name: str) -> None:
    killed = Killed(server, tmp_path, name)
    killed.runs.desk.script(["never-ends"])
    killed.until(lambda: requests(server, "GET", "/batches/") >= 3)
    assert len(killed.runs.state) == 1
    for job in killed.runs.desk.jobs.values():
        job.outcome = "completed"
    killed.again()
    assert killed.runs.desk.files == {}


@pytest.mark.parametrize("name", PROVIDERS)
def test_killed_after_the_upload_was_taken_and_before_it_knew(
    server: EmbeddingServer, tmp_path: Path, name: str
) -> None:
    killed = Killed(server, tmp_path, name)
    server.script(["accept-then-silence"], where="/files")
    killed.until(lambda: bool(killed.runs.desk.files))
    server.heal()
    killed.again()
    assert len(killed.runs.desk.files) == 1  # the orphan: one upload that nobody knows


@pytest.mark.parametrize("name", PROVIDERS)
def test_killed_after_the_job_was_made_and_before_it_knew(
    server: EmbeddingServer, tmp_path: Path, name: str
) -> None:
    killed = Killed(server, tmp_path, name)
    server.script(["accept-then-silence"], where=":async" if name == "gemini" else "/v1/batches")
    killed.until(lambda: bool(killed.runs.desk.jobs))
    server.heal()
    killed.again()
    assert requests(server, "POST", "/files") == 1


def test_killed_before_the_job_was_made_uses_the_same_upload(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    killed = Killed(server, tmp_path, "openai")
    server.script([503] * 9, where="/v1/batches")
    killed.until(lambda: requests(server, "POST", "/v1/batches") >= 1)
    server.heal()
    killed.again()
    assert requests(server, "POST", "/files") == 1


@pytest.mark.parametrize("name", PROVIDERS)
def test_killed_in_the_middle_of_the_download_keeps_what_was_stored(
    server: EmbeddingServer, tmp_path: Path, name: str
) -> None:
    killed = Killed(server, tmp_path, name)
    server.script(
        ["half-a-body-then-silence"], where=":download" if name == "gemini" else "/content"
    )
    killed.until(lambda: len(killed.stored()) >= 256)
    server.heal()
    assert 256 <= len(killed.stored()) < 600
    killed.again()


def test_killed_while_it_tidies_up_leaves_nothing_at_the_provider(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    killed = Killed(server, tmp_path, "openai")
    server.script(["accept-then-silence"], where="/v1/files/file-1")
    killed.until(lambda: requests(server, "DELETE", "/v1/files/") >= 1)
    server.heal()
    assert len(killed.stored()) == 600
    more = make_texts(3, 1000)
    outcome = killed.runs(more)
    assert outcome.vectors.keys() == more.keys()
    assert server.tally.repeated == []
    assert killed.runs.desk.files == {}


def test_killed_at_the_end_of_any_write_leaves_a_state_that_can_be_read(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    killed = Killed(server, tmp_path, "openai")
    folder = killed.runs.folder
    killed.until(
        lambda: (
            folder.exists() and any(path.suffix in (".new", ".json") for path in folder.iterdir())
        )
    )
    killed.again()
    assert not list(folder.glob("*.damaged"))
