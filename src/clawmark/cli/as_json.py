"""Convert answers and errors to objects for JSON, with names in camelCase."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from clawmark.model.as_json import as_json as as_json
from clawmark.model.as_json import camel as camel
from clawmark.model.errors import ClawmarkError

if TYPE_CHECKING:
    from clawmark.model.values import Found, Hit


def error_as_json(error: ClawmarkError) -> dict[str, object]:
    """Return the type, message and hint of an error."""
    return {"type": type(error).__name__, "message": error.message, "hint": error.hint}


def hit_as_json(hit: Hit) -> dict[str, object]:
    """Return a hit under OpenClaw's names, with our additions."""
    body: dict[str, object] = {
        "path": hit.path,
        "startLine": hit.start_line,
        "endLine": hit.end_line,
        "score": hit.score,
        "snippet": hit.snippet,
        "source": hit.source,
        "citation": hit.citation,
        "snippetLines": [hit.snippet_start, hit.snippet_end],
        "snippetRanges": [list(lines) for lines in hit.snippet_ranges],
        "vectorScore": hit.vector_score,
        "textScore": hit.text_score,
    }
    if hit.date:
        body["date"] = hit.date
    if hit.space:
        body |= {"space": hit.space, "author": hit.author}
    if hit.replaced:
        body["replaced"] = [{"text": one.text, "until": one.until} for one in hit.replaced]
    if hit.mime:
        body |= {"modality": hit.modality, "mime": hit.mime}
    if hit.origin is not None:
        # Imported here: only --explain looks origins up.
        from clawmark.model.provenance import provenance_fields

        body["origin"] = provenance_fields(hit.origin)
    return body


def found_as_json(found: Found, absolute: Callable[[str], str] | None = None) -> dict[str, object]:
    """Return the answer to a search; `absolute` resolves the paths of files."""
    results = [hit_as_json(hit) for hit in found.hits]
    for result, hit in zip(results, found.hits, strict=True):
        if found.as_of is not None:
            result["asOf"] = found.as_of.asked
        elif absolute is not None:
            with suppress(ClawmarkError):  # the source of the file has been removed
                result["absolutePath"] = absolute(hit.path)
    body: dict[str, object] = {
        "results": results,
        "mode": found.mode,
        "provider": found.provider,
        "model": found.model,
    }
    if found.nothing is not None:
        body["nothing"] = as_json(found.nothing)
    if found.fallback_from and found.degraded is not None:
        body["fallback"] = {"from": found.fallback_from, "reason": found.degraded.reason}
    if found.degraded is not None:
        body["degraded"] = as_json(found.degraded)
    if found.as_of is not None:
        body["asOf"] = as_json(found.as_of)
    body["dueFiles"] = found.due_files
    body["dueVectors"] = found.due_vectors
    body["milliseconds"] = round(found.milliseconds, 1)
    if found.explanation is not None:
        body["explanation"] = as_json(found.explanation)
    return body
