"""The batch interfaces of OpenAI and Voyage: upload a JSONL file, create a job, get the output.

The request bodies are those of plain requests, so the vectors are the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

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
from clawmark.model.providers import batch_facts

ENDPOINT = "/v1/embeddings"
LISTED = 100
"""Jobs in one listing, newest first; the wanted one was created just before a kill."""

_FAILED = ("failed", "expired", "cancelled", "canceled")


def dialect(provider: Provider) -> Dialect:
    """Return OpenAI's batch interface."""

    def line(hash_: str, text: str) -> bytes:
        return jsonl(
            {
                "custom_id": hash_,
                "method": "POST",
                "url": ENDPOINT,
                "body": _body_of(provider, text),
            }
        )

    return _dialect(line, {})


def voyage_dialect(provider: Provider) -> Dialect:
    """Return Voyage's batch interface, in which the job holds what all requests share."""

    def line(hash_: str, text: str) -> bytes:
        return jsonl({"custom_id": hash_, "body": {"input": _body_of(provider, text)["input"]}})

    shared = {name: value for name, value in _body_of(provider, "").items() if name != "input"}
    return _dialect(line, {"request_params": shared})


def _dialect(line: Callable[[str, str], bytes], terms: Mapping[str, object]) -> Dialect:
    def create(calls: Calls, upload: str) -> str:
        order = {
            "input_file_id": upload,
            "endpoint": ENDPOINT,
            "completion_window": batch_facts(calls.provider.name).window,
            **terms,
            "metadata": {"source": "clawmark-memory"},
        }
        return calls.id(calls.json("POST", "/batches", order, policy=ONCE).get("id"), "a batch job")

    return Dialect(
        line=line,
        upload=_upload,
        create=create,
        find=_find,
        poll=_poll,
        output=lambda file: f"/files/{file}/content",
        read=_read,
        discard=lambda file: f"/files/{file}",
    )


def _body_of(provider: Provider, text: str) -> dict[str, object]:
    """Return the body of a plain request for one text; raise ValueError for another format."""
    body = json.loads(provider.wire.request([text], False)[1])
    if not isinstance(body, dict) or "input" not in body:
        raise ValueError("the provider's requests cannot be put into a batch job")
    return body


def _upload(calls: Calls, lines: bytes) -> str:
    name = f"memory-embeddings.{stamp()}.jsonl"
    form, body = multipart(
        "form-data",
        [
            ({"Content-Disposition": 'form-data; name="purpose"'}, b"batch"),
            (
                {
                    "Content-Disposition": f'form-data; name="file"; filename="{name}"',
                    "Content-Type": "application/jsonl",
                },
                lines,
            ),
        ],
    )
    return calls.id(
        calls.json("POST", "/files", body, policy=UPLOAD, content_type=form).get("id"), "an upload"
    )


def _find(calls: Calls, upload: str) -> str:
    rows = calls.json("GET", f"/batches?limit={LISTED}").get("data")
    for row in rows if isinstance(rows, list) else []:
        if part(row, "input_file_id") == upload:
            return calls.id(part(row, "id"), "a batch job")
    return ""


def _poll(calls: Calls, job: str) -> Job:
    row = calls.json("GET", f"/batches/{job}")
    status = row.get("status")
    output, errors = (
        calls.id(row[name], "an output") if row.get(name) else ""
        for name in ("output_file_id", "error_file_id")
    )
    done = count(part(row, "request_counts", "completed")) + count(
        part(row, "request_counts", "failed")
    )
    total = count(part(row, "request_counts", "total"))
    if status == "completed":
        return Job(state="done", done=done, total=total, output=output, errors=errors)
    if status in _FAILED:
        details = part(row, "errors", "data")
        first = details[0] if isinstance(details, list) and details else None
        return Job(
            state="failed",
            done=done,
            total=total,
            output=output,
            errors=errors,
            reason=f"{status}: {said}"
            if (said := error_message({"error": first}))
            else str(status),
        )
    # An unknown state counts as running until the time limit.
    return Job(state="running", done=done, total=total)


def _read(row: Mapping[str, object]) -> Answer:
    text_hash = row.get("custom_id")
    name = text_hash if isinstance(text_hash, str) else ""
    status, body = part(row, "response", "status_code"), part(row, "response", "body")
    if error := error_message(row) or error_message(body if isinstance(body, dict) else {}):
        return Answer(name, None, error)
    if isinstance(status, int) and status >= 400:
        return Answer(name, None, f"status {status}")
    data = part(body, "data")
    return Answer(
        name, part(data[0], "embedding") if isinstance(data, list) and len(data) == 1 else None
    )
