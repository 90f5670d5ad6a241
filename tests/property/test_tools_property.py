"""Whatever is passed to a tool, the answer is a payload that can be written down."""

from __future__ import annotations

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from clawmark.agent.tools import make_tools, render
from clawmark.agent.tools.policy import access_of
from clawmark.model.documents import Excerpt
from clawmark.model.values import Filters, Found
from clawmark.text.transcripts.session_keys import is_private, kind_of

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=20)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)
NAMES = (
    st.sampled_from(
        ["query", "maxResults", "max_results", "minScore", "path", "from", "lines", "agentId"]
    )
    | st.text()
)
ARGUMENTS = st.dictionaries(NAMES, VALUES, max_size=6)


def search(query: str, limit: int, threshold: float, filters: Filters) -> Found:
    assert query.strip() == query != ""
    assert 1 <= limit <= 50
    assert 0 <= threshold <= 1
    return Found(
        hits=(),
        nothing=None,
        mode="fts-only",
        provider="none",
        model="",
        degraded=None,
        due_files=0,
        milliseconds=0.0,
    )


def read(path: str, start: int, lines: int | None) -> Excerpt:
    assert path.strip()
    assert 1 <= start <= 10**9
    assert lines is None or 1 <= lines <= 10**9
    return Excerpt(
        path=path, text="", start=start, lines=0, total_lines=0, truncated=False, next_start=None
    )


TOOLS = make_tools(search, read, citations="auto", session_key=None, max_results=6, min_score=0.35)


@given(ARGUMENTS | VALUES)
def test_no_arguments_raise_and_every_answer_is_json(arguments: object) -> None:
    for tool in TOOLS:
        payload = tool.call(arguments)
        assert "disabled" not in payload, payload
        assert json.loads(render(payload).encode("utf-8")) == payload


@given(st.text())
def test_no_text_in_place_of_json_raises(text: str) -> None:
    for tool in TOOLS:
        assert "disabled" not in tool.call(text)


@given(ARGUMENTS.filter(lambda arguments: "agentId" not in arguments), st.floats())
def test_a_threshold_that_is_not_a_share_never_reaches_the_search(
    arguments: dict[str, object], score: float
) -> None:
    payload = TOOLS[0].call(
        {**arguments, "query": "tea", "maxResults": None, "max_results": None, "minScore": score}
    )
    if math.isnan(score) or not 0 <= score <= 1:
        assert "minScore" in str(payload["error"]) or "min_score" in arguments


@given(st.text())
def test_every_session_key_has_a_kind_and_only_private_ones_may_do_anything(key: str) -> None:
    access = access_of(key)
    assert access.cites == access.reads == access.writes == is_private(kind_of(key))


@given(
    st.lists(st.text(alphabet="abc:", min_size=1), max_size=4),
    st.sampled_from(["group", "channel", "cron", "subagent", "heartbeat"]),
)
def test_no_key_with_a_shared_or_machine_word_is_private(parts: list[str], word: str) -> None:
    assert not is_private(kind_of(":".join(["agent", "main", *parts, word, "direct", "ada"])))
