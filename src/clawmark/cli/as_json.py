"""Our values in; plain objects for JSON out, with the names in camelCase as everywhere outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from clawmark.model.errors import ClawmarkError
from clawmark.model.values import Found, Hit


def as_json(value: object) -> object:
    """Named tuples become objects, tuples lists; everything else stays what it is."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {camel(name): as_json(inner) for name, inner in value._asdict().items()}
    if isinstance(value, Mapping):
        return {str(name): as_json(inner) for name, inner in value.items()}
    if isinstance(value, (tuple, list)):
        return [as_json(inner) for inner in value]
    return value


def camel(name: str) -> str:
    """`max_results` → `maxResults`, `lambda_` → `lambda`."""
    first, *others = name.rstrip("_").split("_")
    return first + "".join(part.capitalize() for part in others)


def _where(path: str, absolute: Callable[[str], str]) -> str:
    try:
        return absolute(path)
    except ClawmarkError:  # its source was removed since
        return ""


def hit_as_json(hit: Hit) -> dict[str, object]:
    """A hit under the names OpenClaw gives it, and what we know beyond that."""
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
    return body


def found_as_json(found: Found, absolute: Callable[[str], str] | None = None) -> dict[str, object]:
    """An answer: what was found, how, and what stands in the way of a better one; `absolute` says
    where files are.
    """
    results = [hit_as_json(hit) for hit in found.hits]
    for result, hit in zip(results, found.hits, strict=True):
        if absolute is not None and (path := _where(hit.path, absolute)):
            result["absolutePath"] = path
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
    body["dueFiles"] = found.due_files
    body["dueVectors"] = found.due_vectors
    body["milliseconds"] = round(found.milliseconds, 1)
    if found.explanation is not None:
        body["explanation"] = as_json(found.explanation)
    return body
