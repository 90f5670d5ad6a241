"""Read the JSON answers of a Clawmark server; ValueError for one that cannot be used."""

from __future__ import annotations

import json
from typing import Any, cast, get_args

from clawmark.backends.team.base import Appended, Changes, SharedDocument, SpaceInfo
from clawmark.model.documents import Excerpt
from clawmark.model.explanation import CandidateStory, Explanation, Factor, Step
from clawmark.model.values import Degraded, Found, Hit, Mode, NothingFound

MODES: tuple[Mode, ...] = get_args(Mode)


def parse_object(body: bytes) -> dict[str, Any]:
    """Return the object in a body."""
    try:
        value = json.loads(body)
    except RecursionError:
        raise ValueError("too deep") from None
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def parse_spaces(answer: dict[str, Any]) -> tuple[SpaceInfo, ...]:
    """Return the spaces of a caller."""
    return tuple(
        SpaceInfo(
            name=_text(one, "name"),
            may_write=_flag(one, "mayWrite"),
            documents=_number(one, "documents"),
            entries=_number(one, "entries"),
        )
        for one in _objects(answer, "spaces")
    )


def parse_found(answer: dict[str, Any]) -> Found:
    """Return the answer to a search."""
    mode = _text(answer, "mode")
    if mode not in MODES:
        raise ValueError("mode")
    nothing, degraded = answer.get("nothing"), answer.get("degraded")
    explanation = answer.get("explanation")
    return Found(
        hits=tuple(_hit(one) for one in _objects(answer, "results")),
        nothing=_nothing(nothing) if nothing else None,
        mode=mode,
        provider=_text(answer, "provider"),
        model=_text(answer, "model"),
        degraded=Degraded(_text(degraded, "reason"), _text(degraded, "fix")) if degraded else None,
        due_files=0,
        milliseconds=_real(answer, "milliseconds"),
        explanation=_explanation(explanation) if explanation else None,
    )


def _hit(one: dict[str, Any]) -> Hit:
    first, last = one["snippetLines"]
    ranges = tuple((int(start), int(end)) for start, end in one.get("snippetRanges", ()))
    return Hit(
        path=_text(one, "path"),
        start_line=_number(one, "startLine"),
        end_line=_number(one, "endLine"),
        score=_real(one, "score"),
        snippet=_text(one, "snippet"),
        snippet_start=int(first),
        snippet_end=int(last),
        source="memory",
        vector_score=_real(one, "vectorScore"),
        text_score=_real(one, "textScore"),
        date=str(one.get("date", "")),
        snippet_ranges=ranges,
        space=_text(one, "space"),
        author=str(one.get("author", "")),
    )


def _nothing(one: dict[str, Any]) -> NothingFound:
    best = one.get("bestScore")
    code = cast(Any, _text(one, "code"))
    return NothingFound(code, _text(one, "message"), None if best is None else float(best))


def _explanation(one: dict[str, Any]) -> Explanation:
    def named(kind: Any, value: dict[str, Any]) -> Any:
        names = {_camel(name): name for name in kind._fields}
        return kind(**{names[key]: inner for key, inner in value.items() if key in names})

    def story(value: dict[str, Any]) -> CandidateStory:
        factors = tuple(named(Factor, each) for each in value.get("factors", ()))
        made: CandidateStory = named(CandidateStory, value | {"factors": factors})
        return made

    return Explanation(
        steps=tuple(named(Step, step) for step in _objects(one, "steps")),
        candidates=tuple(story(each) for each in _objects(one, "candidates")),
        passages=int(one.get("passages", 0)),
    )


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)


def parse_excerpt(answer: dict[str, Any]) -> Excerpt:
    """Return lines of a document."""
    following = answer.get("nextStart")
    return Excerpt(
        path=_text(answer, "path"),
        text=_text(answer, "text"),
        start=_number(answer, "start"),
        lines=_number(answer, "lines"),
        total_lines=_number(answer, "totalLines"),
        truncated=_flag(answer, "truncated"),
        next_start=None if following is None else int(following),
        missing=_flag(answer, "missing"),
    )


def parse_appended(answer: dict[str, Any]) -> Appended:
    """Return where an entry is."""
    return Appended(
        path=_text(answer, "path"),
        start_line=_number(answer, "startLine"),
        end_line=_number(answer, "endLine"),
        author=_text(answer, "author"),
        at=_text(answer, "at"),
        is_repeated=_flag(answer, "isRepeated"),
    )


def parse_published(answer: dict[str, Any]) -> dict[str, str]:
    """Return the hashes of the caller's files."""
    documents = answer["documents"]
    if not isinstance(documents, dict):
        raise ValueError("documents")
    return {path: _text(documents, path) for path in documents}


def parse_changes(answer: dict[str, Any]) -> Changes:
    """Return what has changed in a space."""
    documents = tuple(
        SharedDocument(
            path=_text(one, "path"),
            author=_text(one, "author"),
            hash=_text(one, "hash"),
            text=None if one["text"] is None else _text(one, "text"),
            changed=_text(one, "changed"),
            version=_number(one, "version"),
        )
        for one in _objects(answer, "documents")
    )
    return Changes(documents, _number(answer, "version"), _flag(answer, "isComplete"))


def _objects(value: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = value[name]
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise ValueError(name)
    return found


def _text(value: dict[str, Any], name: str) -> str:
    found: str = _typed(value, name, str)
    return found


def _number(value: dict[str, Any], name: str) -> int:
    found: int = _typed(value, name, int)
    return found


def _flag(value: dict[str, Any], name: str) -> bool:
    found: bool = _typed(value, name, bool)
    return found


def _real(value: dict[str, Any], name: str) -> float:
    return float(_typed(value, name, (int, float)))


def _typed(value: dict[str, Any], name: str, kind: Any) -> Any:
    found = value[name]
    if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
        raise ValueError(name)
    return found
