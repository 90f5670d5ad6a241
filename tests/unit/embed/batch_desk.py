"""What batch tests share: the loopback server's jobs with a list, deletions and spoiled outputs,
and one run against it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from batches import Job, Jobs
from embeddings import EmbeddingServer
from loopback import Request

from clawmark.embed.batch.run import BatchOptions, BatchOutcome, run_batches
from clawmark.embed.services import gemini, openai, voyage
from clawmark.embed.services.ledger import Ledger
from clawmark.embed.services.wire import Provider, RemoteOptions
from clawmark.model.providers import PROVIDERS as FACTS
from clawmark.model.providers import batch_facts
from clawmark.model.values import Vector
from clawmark.net.client import HttpClient

KEY = "sk-batch-0123456789abcdef"
DIMS = 16
PROVIDERS = ("openai", "gemini", "voyage")


class Desk(Jobs):
    """Jobs that can be listed, files that can be deleted, and outputs that come down otherwise than
    they should.
    """

    def __init__(self, server: EmbeddingServer) -> None:
        super().__init__(server._vectors, server._paid)
        self.deleted: list[str] = []
        self.ends_as = ""
        self.output: Callable[[bytes], bytes] = lambda data: data
        server.jobs = self

    def answer(self, request: Request) -> bytes | None:
        if request.method == "DELETE":
            name = request.path.removeprefix("/v1beta/").removeprefix("/v1/files/")
            with self._lock:
                self.deleted.append(name)
                self.files.pop(name, None)
            return b"{}"
        if request.method == "GET" and request.path == "/v1/batches":
            return json.dumps(
                {"data": [{"id": job.name, **job.given} for job in self.jobs.values()]}
            ).encode()
        if request.method == "GET" and request.path == "/v1beta/batches":
            return json.dumps(
                {
                    "operations": [
                        {"name": job.name, "metadata": job.given} for job in self.jobs.values()
                    ]
                }
            ).encode()
        return super().answer(request)

    def uploads(self) -> list[str]:
        """The files that are there and were never an output."""
        outputs = {name for job in self.jobs.values() for name in (job.output, job.errors)}
        return [name for name in self.files if name not in outputs]

    def _complete(
        self, job: Job, line: Callable[[str, list[list[str]], str], dict[str, Any]]
    ) -> None:
        super()._complete(job, line)
        job.state = self.ends_as or job.state

    def _file(self, name: str) -> bytes:
        is_output = any(name in (job.output, job.errors) for job in self.jobs.values())
        return self.output(super()._file(name)) if is_output else super()._file(name)


def make_provider(name: str, server: EmbeddingServer, *, dims: int = DIMS) -> Provider:
    base_url = server.gemini_url if name == "gemini" else server.url
    makes = {"openai": openai.provider, "gemini": gemini.provider, "voyage": voyage.provider}
    return makes[name](RemoteOptions(base_url=base_url, api_key=KEY, dims=dims), {})


def make_texts(number: int, start: int = 0) -> dict[str, str]:
    texts = [
        f"text number {count} about subject {count % 7}" for count in range(start, start + number)
    ]
    return {hashlib.sha256(text.encode()).hexdigest(): text for text in texts}


def limit_jobs(monkeypatch: pytest.MonkeyPatch, **limits: Any) -> None:
    """Make the batch jobs of all providers take less."""
    for name in PROVIDERS:
        row = FACTS[name]._replace(batch=batch_facts(name)._replace(**limits))
        monkeypatch.setitem(FACTS, name, row)


class Runs:
    """Runs of one index against one server: what was stored, said and slept is kept."""

    def __init__(self, server: EmbeddingServer, folder: Path, name: str = "openai") -> None:
        self.server = server
        self.desk = Desk(server)
        self.folder = folder / "batches"
        self.provider = make_provider(name, server)
        self.stored: dict[str, Vector] = {}
        self.portions: list[int] = []
        self.progress: list[tuple[int, int]] = []
        self.slept: list[float] = []
        self.time = 0.0

    def __call__(
        self,
        texts: dict[str, str],
        ledger: Ledger | None = None,
        now: float = 1_790_000_000.0,
        **options: Any,
    ) -> BatchOutcome:
        """One run; time passes only when it sleeps."""
        client = HttpClient(
            self.provider.base_url, self.provider.headers, secrets=self.provider.secrets
        )
        try:
            return run_batches(
                self.provider,
                texts,
                BatchOptions(True)._replace(**{"smallest": 1, "poll_ms": 1000, **options}),
                folder=str(self.folder),
                client=client,
                store=self._store,
                progress=lambda done, total: self.progress.append((done, total)),
                ledger=ledger,
                sleep=self._sleep,
                clock=lambda: self.time,
                now=lambda: now + self.time,
            )
        finally:
            client.close()

    @property
    def state(self) -> list[Path]:
        """The files that are not locks."""
        return (
            [path for path in self.folder.iterdir() if path.suffix != ".lock"]
            if self.folder.exists()
            else []
        )

    def _store(self, portion: dict[str, Vector]) -> None:
        self.portions.append(len(portion))
        self.stored.update(portion)

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds
