"""OpenAI's batch interface: a JSONL file goes up, a job is made of it, another JSONL file comes
down.

The bodies of the requests are those of plain calls, so the vectors are the same. Voyage speaks
almost the same language and shares what is here. Limits, waiting and checking vectors are left to
`batch`."""

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
from clawmark.embed.services.parsing import complaint_of
from clawmark.embed.services.wire import Provider
from clawmark.model.providers import batch_facts

ENDPOINT = "/v1/embeddings"
LISTED = 100
"""How many jobs one look at the list shows, newest first: the one we look for was made moments
before a kill.
"""

_FAILED = ("failed", "expired", "cancelled", "canceled")


def dialect(provider: Provider) -> Dialect:
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
    """Voyage's dialect: what all requests share is said once for the job."""

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
    """The body of a plain call for one text; raises ValueError when the wire does not speak this
    language.
    """
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
            reason=f"{status}: {said}" if (said := complaint_of({"error": first})) else str(status),
        )
    # A state nobody has told us of is not the end: the time limit is.
    return Job("running", done, total)


def _read(row: Mapping[str, object]) -> Answer:
    who = row.get("custom_id")
    name = who if isinstance(who, str) else ""
    status, body = part(row, "response", "status_code"), part(row, "response", "body")
    if complaint := complaint_of(row) or complaint_of(body if isinstance(body, dict) else {}):
        return Answer(name, None, complaint)
    if isinstance(status, int) and status >= 400:
        return Answer(name, None, f"status {status}")
    data = part(body, "data")
    return Answer(
        name, part(data[0], "embedding") if isinstance(data, list) and len(data) == 1 else None
    )
