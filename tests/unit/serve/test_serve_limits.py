"""Rate limits, metrics and the shape of tokens, without a server."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("starlette")
pytest.importorskip("psycopg_pool")

from clawmark.serve.grants import is_token
from clawmark.serve.metrics import Metrics
from clawmark.serve.pages.sign_in import local
from clawmark.serve.rate_limits import KEPT, RateLimit


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_client_gets_its_allowance_back_with_time() -> None:
    clock = Clock()
    limit = RateLimit(60, clock)
    assert [limit.take("ada") for _ in range(10)] == [0] * 10
    assert limit.take("ada") == 1
    assert limit.take("bob") == 0
    clock.now = 3.0
    assert [limit.take("ada") for _ in range(4)] == [0, 0, 0, 1]


def test_a_costly_request_waits_longer_but_is_possible() -> None:
    clock = Clock()
    limit = RateLimit(60, clock)
    assert limit.take("ada", 10) == 0
    assert limit.take("ada", 10) == 10
    clock.now = 10.0
    assert limit.take("ada", 10) == 0
    assert limit.take("bob", 500) == 0  # more than the most that can be saved up


def test_zero_switches_a_limit_off_and_old_clients_are_forgotten() -> None:
    assert [RateLimit(0).take("ada") for _ in range(1000)] == [0] * 1000
    limit = RateLimit(1, Clock())
    for number in range(KEPT + 10):
        limit.take(number)
    assert len(limit._buckets) == KEPT


def test_workers_count_in_rows_of_their_own() -> None:
    metrics = Metrics(["search"], workers=2)
    metrics.observe("search", 200, 0.02)
    metrics.set("clawmark_workers", 1)
    metrics.worker = 1
    metrics.observe("search", 200, 3.0)
    metrics.observe("unheard-of", 418, 0.1)
    metrics.set("clawmark_workers", 1)
    text = metrics.text()
    assert 'clawmark_requests_total{route="search",status="200"} 2' in text
    assert 'clawmark_requests_total{route="other",status="other"} 1' in text
    assert 'clawmark_request_duration_seconds_bucket{route="search",le="0.025"} 1' in text
    assert 'clawmark_request_duration_seconds_bucket{route="search",le="+Inf"} 2' in text
    assert "\nclawmark_workers 2\n" in text
    metrics.clear_gauges(1)
    assert "\nclawmark_workers 1\n" in metrics.text()
    assert 'clawmark_requests_total{route="search",status="200"} 2' in metrics.text()


def test_the_text_is_in_the_format_of_prometheus() -> None:
    metrics = Metrics(["search"])
    metrics.observe("search", 503, 0.001)
    line = re.compile(r'[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.]+')
    for one in metrics.text().splitlines():
        assert one.startswith(("# HELP ", "# TYPE ")) or line.fullmatch(one), one


def test_only_tokens_of_the_right_form_are_looked_up() -> None:
    assert is_token("cmk_" + "aZ0-_" * 8 + "abc")
    for text in ("", "cmk_", "cmk_" + "x" * 42, "cmk_" + "x" * 44, "cmk_" + "é" * 43, "x" * 47):
        assert not is_token(text)


@pytest.mark.parametrize(
    "address",
    ["", "https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)",
     "evil", "/a\nb", "http://[", "\\\\evil"],
)  # fmt: skip
def test_signing_in_leads_to_pages_of_this_server_only(address: str) -> None:
    assert local(address) == "/search"


def test_signing_in_leads_back_to_the_page_that_was_wanted() -> None:
    assert local("/search?q=tea&space=team") == "/search?q=tea&space=team"
