"""The batch interfaces: files go up, a job is made of one, it is asked after until it is done, its
output comes down.

OpenAI and Voyage share their paths (`/v1/files`, `/v1/batches`); Gemini uploads to
`/upload/v1beta/files`, makes jobs with `:asyncBatchEmbedContent` and asks after
`/v1beta/batches/…`. Every look at a job moves it one state on, so that nobody has to wait. Output
lines come in another order than they went up. How a job ends is scripted; what it costs is counted
when it completes."""

from __future__ import annotations

import json
import random
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

from apis import Asked, Wrong, check_limits, from_openai_body, gemini_text
from loopback import Request

OUTCOMES = (
    "completed",
    "failed",
    "expired",
    "cancelled",
    "some-lines-fail",
    "some-lines-missing",
    "never-ends",
)
MOST_LINES = 50_000

_STATES = ("validating", "in_progress", "finalizing")
_GEMINI_STATES = {
    "validating": "BATCH_STATE_PENDING",
    "in_progress": "BATCH_STATE_RUNNING",
    "finalizing": "BATCH_STATE_RUNNING",
    "completed": "BATCH_STATE_SUCCEEDED",
    "failed": "BATCH_STATE_FAILED",
    "expired": "BATCH_STATE_EXPIRED",
    "cancelled": "BATCH_STATE_CANCELLED",
}
_CREATE = re.compile(r"/v1beta/models/([^/:]+):asyncBatchEmbedContent")
_GEMINI_JOB = re.compile(r"/v1beta/(batches/[\w-]+)")
_GEMINI_FILE = re.compile(r"(?:/download)?/v1beta/(files/[\w-]+):download")
_JOB = re.compile(r"(?:/v1)?/batches/([\w-]+)(/cancel)?")
_CONTENT = re.compile(r"(?:/v1)?/files/([\w-]+)/content")

Embed = Callable[[Asked], list[list[str]]]


class Job:
    """One batch."""

    def __init__(
        self, name: str, lines: list[tuple[str, Asked]], outcome: str, given: dict[str, Any]
    ) -> None:
        self.name = name
        self.lines = lines
        self.outcome = outcome
        self.given = given
        self.state = _STATES[0]
        self.looks = 0
        self.output = ""
        self.errors = ""


class Jobs:
    """The files and jobs of one server; `embed` gives vectors, `paid` is told what a completed job
    held.
    """

    def __init__(
        self, embed: Embed, paid: Callable[[str, Sequence[str]], None], looks: int = 2
    ) -> None:
        self._embed = embed
        self._paid = paid
        self._looks = looks
        self._lock = threading.Lock()
        self._outcomes: list[str] = []
        self.files: dict[str, bytes] = {}
        self.jobs: dict[str, Job] = {}
        self.deleted: list[str] = []
        self._named = 0

    def script(self, outcomes: Sequence[str]) -> None:
        """How the next jobs end; the ones after them complete."""
        if not set(outcomes) <= set(OUTCOMES):
            raise ValueError(f"an outcome is one of {', '.join(OUTCOMES)}")
        self._outcomes = list(outcomes)

    def answer(self, request: Request) -> bytes | None:
        """The answer to a request for files or jobs; None when it is neither; raises Wrong."""
        with self._lock:
            if request.method == "DELETE":
                return self._delete(request)
            return self._openai(request) or self._gemini(request)

    # --- OpenAI, Voyage

    def _openai(self, request: Request) -> bytes | None:
        path, method = request.path, request.method
        if method == "POST" and path in ("/v1/files", "/files"):
            fields = _form_fields(request)
            if fields.get("purpose") != b"batch" or "file" not in fields:
                raise Wrong(400, "a file and the purpose batch are needed.")
            name = self._keep("file", fields["file"])
            return _dump(
                {"id": name, "object": "file", "bytes": len(fields["file"]), "purpose": "batch"}
            )
        if method == "POST" and path in ("/v1/batches", "/batches"):
            return self._create(json.loads(request.body))
        if method == "GET" and path in ("/v1/batches", "/batches"):
            return _dump(
                {"object": "list", "data": [_openai_job(job) for job in self._newest("batch_")]}
            )
        if content := _CONTENT.fullmatch(path):
            return self._file(content[1])
        if job := _JOB.fullmatch(path):
            found = self._job(job[1])
            if job[2]:
                found.state = "cancelled"
            else:
                self._move(found, _openai_line)
            return _dump(_openai_job(found))
        return None

    def _create(self, given: dict[str, Any]) -> bytes:
        if given.get("endpoint") != "/v1/embeddings" or given.get("completion_window") not in (
            "24h",
            "12h",
        ):
            raise Wrong(400, "endpoint or completion_window is wrong.")
        shared = dict(
            given.get("request_params") or {}
        )  # Voyage says once for all lines what OpenAI says in each
        lines = []
        for line in self._lines(str(given.get("input_file_id"))):
            if not shared and (line.get("method"), line.get("url")) != ("POST", "/v1/embeddings"):
                raise Wrong(400, "every line must have method POST and url /v1/embeddings.")
            lines.append((str(line["custom_id"]), from_openai_body({**shared, **line["body"]})))
        return _dump(_openai_job(self._start("batch_", lines, given)))

    # --- Gemini

    def _gemini(self, request: Request) -> bytes | None:
        path, method = request.path, request.method
        if method == "POST" and path == "/upload/v1beta/files":
            parts = _related_parts(request)
            if len(parts) != 2 or "uploadType=multipart" not in request.query:
                raise Wrong(
                    400, "an upload has uploadType=multipart, a JSON part and a JSONL part."
                )
            name = self._keep("files/", parts[1])
            return _dump(
                {"file": {"name": name, "mimeType": "application/jsonl", "state": "ACTIVE"}}
            )
        if method == "POST" and (create := _CREATE.fullmatch(path)):
            given = json.loads(request.body)["batch"]
            config = given.get("inputConfig") or given.get("input_config") or {}
            lines = [
                (str(line["key"]), gemini_text({"model": create[1], **line["request"]}))
                for line in self._lines(str(config.get("fileName") or config.get("file_name")))
            ]
            return _dump(_gemini_job(self._start("batches/", lines, given)))
        if method == "GET" and path == "/v1beta/batches":
            return _dump({"operations": [_gemini_job(job) for job in self._newest("batches/")]})
        if found := _GEMINI_JOB.fullmatch(path):
            job = self._job(found[1])
            self._move(job, _gemini_line)
            return _dump(_gemini_job(job))
        if found := _GEMINI_FILE.fullmatch(path):
            return self._file(found[1])
        return None

    # --- both

    def _delete(self, request: Request) -> bytes:
        """Forget an uploaded file or an output."""
        name = request.path.rpartition("/")[2]
        for known in (name, f"files/{name}"):
            if self.files.pop(known, None) is not None:
                self.deleted.append(known)
                return _dump({"id": known, "object": "file", "deleted": True})
        raise Wrong(404, f"No such File object: {name}")

    def _newest(self, prefix: str) -> list[Job]:
        return [job for name, job in reversed(self.jobs.items()) if name.startswith(prefix)]

    def _start(self, prefix: str, lines: list[tuple[str, Asked]], given: dict[str, Any]) -> Job:
        if not 0 < len(lines) <= MOST_LINES or len({name for name, _ in lines}) < len(lines):
            raise Wrong(400, f"a batch has 1 to {MOST_LINES} lines with names of their own.")
        for _, asked in lines:
            check_limits(asked)
        outcome = self._outcomes.pop(0) if self._outcomes else "completed"
        job = Job(name=f"{prefix}{len(self.jobs) + 1}", lines=lines, outcome=outcome, given=given)
        self.jobs[job.name] = job
        return job

    def _move(self, job: Job, line: Callable[[str, list[list[str]], str], dict[str, Any]]) -> None:
        """One state on."""
        job.looks += 1
        if job.state not in _STATES or job.outcome == "never-ends":
            return
        if job.looks < self._looks:
            job.state = _STATES[min(job.looks, len(_STATES) - 1)]
        elif job.outcome in ("failed", "expired", "cancelled"):
            job.state = job.outcome
        else:
            self._complete(job, line)

    def _complete(
        self, job: Job, line: Callable[[str, list[list[str]], str], dict[str, Any]]
    ) -> None:
        good, bad = [], []
        for number, (name, asked) in enumerate(job.lines):
            if job.outcome == "some-lines-missing" and number % 3 == 1:
                continue
            fails = job.outcome == "some-lines-fail" and number % 3 == 1
            if fails:
                bad.append(line(name, [], "this line could not be processed"))
            else:
                good.append(line(name, self._embed(asked), ""))
                self._paid(asked.api, asked.texts)
        random.Random(1).shuffle(good)
        job.output = self._keep(
            "file" if job.name.startswith("batch_") else "files/", _dump_lines(good)
        )
        job.errors = (
            self._keep("file" if job.name.startswith("batch_") else "files/", _dump_lines(bad))
            if bad
            else ""
        )
        job.state = "completed"

    def _keep(self, prefix: str, data: bytes) -> str:
        self._named += 1
        name = f"{prefix}{'' if prefix.endswith('/') else '-'}{self._named}"
        self.files[name] = data
        return name

    def _file(self, name: str) -> bytes:
        if name not in self.files:
            raise Wrong(404, f"No such File object: {name}")
        return self.files[name]

    def _job(self, name: str) -> Job:
        if name not in self.jobs:
            raise Wrong(404, f"No batch found with id '{name}'.")
        return self.jobs[name]

    def _lines(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._file(name).splitlines() if line.strip()]


def _openai_line(name: str, vectors: list[list[str]], problem: str) -> dict[str, Any]:
    if problem:
        body: dict[str, Any] = {"error": {"message": problem, "code": "server_error"}}
    else:
        data = [
            {"object": "embedding", "index": at, "embedding": _floats(numbers)}
            for at, numbers in enumerate(vectors)
        ]
        body = {"object": "list", "data": data}
    return {
        "custom_id": name,
        "response": {"status_code": 500 if problem else 200, "body": body},
        "error": None,
    }


def _gemini_line(name: str, vectors: list[list[str]], problem: str) -> dict[str, Any]:
    if problem:
        return {"key": name, "error": {"code": 13, "message": problem}}
    return {"key": name, "response": {"embedding": {"values": _floats(vectors[0])}}}


def _openai_job(job: Job) -> dict[str, Any]:
    failed = {
        "errors": {
            "object": "list",
            "data": [{"code": "x", "message": "the file could not be read", "line": 1}],
        }
    }
    return {
        "id": job.name,
        "object": "batch",
        "endpoint": "/v1/embeddings",
        "input_file_id": job.given.get("input_file_id"),
        "completion_window": job.given.get("completion_window"),
        "metadata": job.given.get("metadata"),
        "status": job.state,
        "output_file_id": job.output or None,
        "error_file_id": job.errors or None,
        "request_counts": {
            "total": len(job.lines),
            "completed": len(job.lines) if job.output else 0,
            "failed": 0,
        },
        **(failed if job.state == "failed" else {}),
    }


def _gemini_job(job: Job) -> dict[str, Any]:
    state = _GEMINI_STATES[job.state]
    output = {"responsesFile": job.output} if job.output else {}
    operation: dict[str, Any] = {
        "name": job.name,
        "metadata": {
            "state": state,
            "displayName": job.given.get("displayName"),
            **({"output": output} if output else {}),
        },
    }
    if job.state not in _STATES:
        operation["done"] = True
    if output:
        operation["response"] = output
    if job.state == "failed":
        operation["error"] = {"code": 3, "message": "the file could not be read"}
    return operation


def _form_fields(request: Request) -> dict[str, bytes]:
    """The fields of a multipart form by name."""
    fields = {}
    for headers, body in _parts(request):
        name = re.search(r'name="([^"]*)"', headers)
        if name:
            fields[name[1]] = body
    return fields


def _related_parts(request: Request) -> list[bytes]:
    return [body for _, body in _parts(request)]


def _parts(request: Request) -> list[tuple[str, bytes]]:
    boundary = re.search(r'boundary="?([^";]+)"?', request.headers.get("content-type", ""))
    if not boundary:
        raise Wrong(400, "the body is no multipart message.")
    parts = []
    for part in request.body.split(b"--" + boundary[1].encode())[1:-1]:
        headers, _, body = part.partition(b"\r\n\r\n")
        parts.append((headers.decode("latin-1"), body.removesuffix(b"\r\n")))
    return parts


def _floats(numbers: Sequence[str]) -> list[float]:
    return [float(number) for number in numbers]


def _dump(value: object) -> bytes:
    return json.dumps(value).encode()


def _dump_lines(lines: Sequence[object]) -> bytes:
    return b"".join(_dump(line) + b"\n" for line in lines)
