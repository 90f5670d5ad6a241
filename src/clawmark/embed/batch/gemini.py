"""Gemini's batch interface: `:asyncBatchEmbedContent` over an uploaded file of requests.

Uploads have an address of their own; Google deletes them after two days."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from clawmark.embed.batch.calls import (
    ONCE,
    UPLOAD,
    Answer,
    Calls,
    Dialect,
    Job,
    count,
    jsonl,
    multipart,
    part,
    stamp,
)
from clawmark.embed.services.parsing import error_message
from clawmark.embed.services.wire import Provider
from clawmark.net.headers import as_json

LISTED = 100

_VERSION = re.compile(r"/(v1[a-z]*)$")
_DONE = ("SUCCEEDED", "COMPLETED", "DONE")
_FAILED = ("FAILED", "CANCELLED", "CANCELED", "EXPIRED")


def dialect(provider: Provider) -> Dialect:
    """Return Gemini's batch interface."""
    return Dialect(
        line=lambda hash_, text: jsonl({"key": hash_, "request": _request(provider, text)}),
        upload=_upload,
        create=_create,
        find=_find,
        poll=_poll,
        output=lambda file: f"/files/{file}:download?alt=media",
        read=_read,
        discard=lambda file: f"/files/{file}",
    )


def upload_base(base_url: str) -> str:
    """Return the address for uploads: `/upload` is inserted before the version."""
    base = base_url.rstrip("/")
    return _VERSION.sub(r"/upload/\1", base) if _VERSION.search(base) else f"{base}/upload"


def _request(provider: Provider, text: str) -> object:
    requests = json.loads(provider.wire.request([text], False)[1]).get("requests")
    if not isinstance(requests, list) or len(requests) != 1:
        raise ValueError("the provider's requests cannot be put into a batch job")
    return requests[0]


def _upload(calls: Calls, lines: bytes) -> str:
    about = as_json(
        {"file": {"displayName": f"memory-embeddings.{stamp()}", "mimeType": "application/jsonl"}}
    )
    form, body = multipart(
        "related",
        [
            ({"Content-Type": "application/json; charset=UTF-8"}, about),
            ({"Content-Type": "application/jsonl"}, lines),
        ],
    )
    client = calls.at(upload_base(calls.provider.base_url))
    try:
        path = "/files?uploadType=multipart"
        answer = calls.json("POST", path, body, policy=UPLOAD, client=client, content_type=form)
    finally:
        client.close()
    return _name(calls, part(answer, "file", "name") or answer.get("name"), "files", "an upload")


def _create(calls: Calls, upload: str) -> str:
    order = {
        "batch": {"displayName": _title(upload), "inputConfig": {"file_name": f"files/{upload}"}}
    }
    path = f"/models/{calls.provider.model}:asyncBatchEmbedContent"
    return _name(
        calls, calls.json("POST", path, order, policy=ONCE).get("name"), "batches", "a batch job"
    )


def _find(calls: Calls, upload: str) -> str:
    answer = calls.json("GET", f"/batches?pageSize={LISTED}")
    rows = answer.get("operations") or answer.get("batches")
    for row in rows if isinstance(rows, list) else []:
        about = part(row, "metadata") or row
        if (
            part(about, "displayName") == _title(upload)
            or part(about, "inputConfig", "fileName") == f"files/{upload}"
        ):
            return _name(calls, part(row, "name"), "batches", "a batch job")
    return ""


def _poll(calls: Calls, job: str) -> Job:
    row = calls.json("GET", f"/batches/{job}")
    about = row.get("metadata") if isinstance(row.get("metadata"), dict) else row
    said = part(about, "state") or row.get("state")
    # BATCH_STATE_SUCCEEDED, JOB_STATE_SUCCEEDED, or the bare word from older versions.
    state = said.rpartition("_STATE_")[2] if isinstance(said, str) else ""
    stats = part(about, "batchStats")
    done = count(part(stats, "successfulRequestCount")) + count(part(stats, "failedRequestCount"))
    total = count(part(stats, "requestCount"))
    file = _output_of(row)
    output = _name(calls, file, "files", "an output") if file else ""
    error = error_message(row)
    if state in _FAILED or error:
        word = state.lower() if state in _FAILED else "failed"
        return Job(
            state="failed",
            done=done,
            total=total,
            output=output,
            errors="",
            reason=f"{word}: {error}" if error else word,
        )
    if state in _DONE or (not state and row.get("done") is True):
        return Job(state="done", done=done, total=total, output=output)
    return Job(state="running", done=done, total=total)


def _output_of(row: Mapping[str, object]) -> object:
    """Return the output file, whose place differs between versions."""
    found = (
        part(row, "metadata", "output", "responsesFile"),
        part(row, "response", "responsesFile"),
        part(row, "response", "output", "responsesFile"),
        part(row, "output", "responsesFile"),
        part(row, "outputConfig", "file"),
        part(row, "outputConfig", "fileId"),
    )
    return next((file for file in found if file), "")


def _read(row: Mapping[str, object]) -> Answer:
    text_hash = next(
        (
            row[name]
            for name in ("key", "custom_id", "request_id")
            if isinstance(row.get(name), str)
        ),
        "",
    )
    answer = row.get("response")
    if error := error_message(row) or error_message(answer if isinstance(answer, dict) else {}):
        return Answer(str(text_hash), None, error)
    return Answer(
        str(text_hash), part(row, "embedding", "values") or part(answer, "embedding", "values")
    )


def _name(calls: Calls, value: object, kind: str, what: str) -> str:
    """Return the id in a resource name such as `files/abc`."""
    return calls.id(value.removeprefix(f"{kind}/") if isinstance(value, str) else None, what)


def _title(upload: str) -> str:
    return f"clawmark-memory-{upload}"
