"""When a question is asked again, how long the pauses are, and what the errors say."""

from __future__ import annotations

import logging

import pytest
from rawserver import Peer, RawServer, ok, serving

from clawmark.model.errors import (
    EmbeddingError,
    EmbeddingOverloaded,
    EmbeddingRejected,
    EmbeddingUnavailable,
)
from clawmark.net.client import HttpClient, HttpError, Response
from clawmark.net.failures import Verdict, classify, retry_after
from clawmark.net.retry import INDEXING, QUERY, Policy, QuotaExhausted, TooLarge, send_with_retries
from clawmark.text.secrets.redact import Redactor

KEY = "sk-FAKE" + "0123456789abcdefGHIJ"
NOW = 1_790_000_000.0


def answer(status: int, body: str = "{}", **headers: str) -> Response:
    return Response(
        status, {name.replace("_", "-"): value for name, value in headers.items()}, body.encode()
    )


def said(message: str) -> str:
    return f'{{"error": {{"message": "{message}"}}}}'


class World:
    """A provider that answers from a list (the last one for ever), and a clock that only moves when
    somebody waits.
    """

    def __init__(self, *script: Response | HttpError, cost: float = 0.0) -> None:
        self.script = list(script)
        self.cost = cost
        self.now = 100.0
        self.calls: list[float] = []
        self.pauses: list[float] = []

    def send(self, seconds: float) -> Response:
        self.calls.append(seconds)
        self.now += min(self.cost, seconds)
        step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(step, HttpError):
            raise step
        return step

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def ask(self, policy: Policy = INDEXING, jitter: float = 0.0) -> Response:
        return send_with_retries(
            self.send,
            policy,
            provider="openai",
            model="m",
            redact=Redactor([KEY]).clean,
            sleep=self.sleep,
            clock=lambda: self.now,
            jitter=lambda: jitter,
            now=lambda: NOW,
        )

    def error(self, policy: Policy = INDEXING, jitter: float = 0.0) -> EmbeddingError:
        with pytest.raises(EmbeddingError) as error:
            self.ask(policy, jitter)
        assert (error.value.provider, error.value.model) == ("openai", "m")
        assert error.value.hint
        return error.value


@pytest.mark.parametrize("status", [200, 201, 204])
def test_successful_response_is_returned_at_once(status: int) -> None:
    world = World(answer(status, "<html>"))
    assert world.ask().status == status
    assert world.pauses == []


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 501, 502, 503, 504, 520, 529, 599])
def test_busy_provider_gets_four_attempts_with_doubled_waits(status: int) -> None:
    world = World(answer(status, said(f"status {status}")))
    error = world.error()
    assert isinstance(error, EmbeddingOverloaded)
    assert f"status {status}" in error.message
    assert world.pauses == [0.5, 1.0, 2.0]


def test_jitter_lengthens_waits_by_at_most_a_fifth() -> None:
    world = World(answer(503))
    world.error(jitter=1.0)
    assert world.pauses == pytest.approx([0.6, 1.2, 2.4])


def test_waits_are_capped() -> None:
    world = World(answer(503))
    world.error(Policy(attempts=8, total=1000))
    assert world.pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0]


@pytest.mark.parametrize("status", [400, 404, 405, 415, 418, 422, 431, 451, 499, 999])
def test_wrong_request_is_not_retried(status: int) -> None:
    world = World(answer(status, said(f"status {status}")))
    error = world.error()
    assert type(error) is EmbeddingRejected
    assert len(world.calls) == 1


@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 307, 308])
def test_a_redirect_is_refused_and_its_target_is_not_shown(status: int) -> None:
    error = World(answer(status, "", location=f"http://169.254.169.254/{KEY}")).error()
    assert type(error) is EmbeddingRejected
    assert "answered with a redirect, which is not followed" in error.message
    assert "169.254" not in error.message


@pytest.mark.parametrize(
    "response",
    [
        answer(401, said(f"Incorrect API key provided: {KEY}")),
        answer(401, said("Incorrect API key provided: sk-FAKE********GHIJ.")),
        answer(403, said(f"The key {KEY} may not do that")),
        answer(400, said("API key not valid. Please pass a valid API key.")),
        answer(
            400,
            '[{"error": {"status": "INVALID_ARGUMENT", "details": [{"reason": '
            '"API_KEY_INVALID"}]}}]',
        ),
    ],
)
def test_refused_key_is_reported_and_not_quoted(response: Response) -> None:
    world = World(response)
    error = world.error()
    assert type(error) is EmbeddingUnavailable
    assert "the key was refused" in error.message
    assert "apiKey" in error.hint
    assert len(world.calls) == 1
    assert KEY not in error.message
    assert "GHIJ" not in error.message


@pytest.mark.parametrize(
    "response",
    [
        answer(
            429,
            '{"error": {"code": "insufficient_quota", "message": "You exceeded your current '
            'quota"}}',
        ),
        answer(
            429, said("You exceeded your current quota, please check your plan and billing details")
        ),
        answer(
            429,
            said(
                "Rate limit reached on tokens per day (TPD): Limit 1000. Please try again in 7m12s."
            ),
        ),
        answer(
            429,
            '{"error": {"details": [{"quotaId": "EmbedPerMinute"}, {"quotaId": '
            '"EmbedContentPerDayPerProject"}]}}',
        ),
        answer(403, said("Your account is not active, please check your billing details")),
        answer(402, said("status 402")),
        answer(400, said("Your credit balance is too low")),
    ],
)
def test_exhausted_quota_is_not_retried(response: Response) -> None:
    world = World(response)
    error = world.error()
    assert isinstance(error, QuotaExhausted)
    assert isinstance(error, EmbeddingUnavailable)
    assert "the quota is used up" in error.message
    assert world.pauses == []


@pytest.mark.parametrize(
    "message",
    [
        "Rate limit reached on tokens per min (TPM): Limit 40000. Add a payment method at "
        "https://x.test/account/billing",
        "You exceeded your current quota, please check your plan and billing details. quotaId: "
        "EmbedRequestsPerMinute",
        "Too many requests, slow down",
    ],
)
def test_rate_limit_is_not_an_exhausted_quota(message: str) -> None:
    world = World(answer(429, said(message)))
    assert isinstance(world.error(), EmbeddingOverloaded)
    assert len(world.calls) == 4


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (413, "Request Entity Too Large"),
        (413, ""),
        (
            400,
            "This model's maximum context length is 8192 tokens, however you requested 10000 "
            "tokens",
        ),
        (400, "'$.input' is too long. Maximum length is 2048, got 3000"),
        (400, "Requested 400000 tokens, max 300000 tokens per request"),
        (400, "BatchEmbedContentsRequest.requests: at most 100 requests can be in one batch"),
        (400, "The max allowed tokens per submitted batch is 120000. Your batch has 130000 tokens"),
        (400, "Too many inputs in request, split into more batches."),
        (
            400,
            "Value error, batch size is invalid, it should not be larger than 10.: input.contents",
        ),
        (400, "input batch size 136 > maximum allowed batch size 64"),
        (400, "batch size 20 is above the limit of 16 for this deployment"),
        (400, "invalid request: total number of texts must be at most 96 - received 100"),
        (400, "Malformed input request: #/texts: expected maximum item count: 96, found: 97"),
        (400, "input数组最大不得超过64条"),
        (422, "batch size 64 > maximum allowed batch size 32"),
        (429, "Request too large for m on tokens per min (TPM): Limit 40000, Requested 60000."),
        (500, "the input length exceeds the context length"),
        (500, "input is too large to process. increase the physical batch size"),
    ],
)
def test_too_many_or_too_long_inputs_are_recognised_by_their_message(
    status: int, message: str
) -> None:
    world = World(answer(status, said(message)))
    assert isinstance(world.error(), TooLarge)
    assert len(world.calls) == 1


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, said("status 400")),
        (
            400,
            '{"error": {"message": "The model does not exist", "type": "invalid_request_error", '
            '"param": "input"}}',
        ),
        (
            400,
            "<html><head><title>400 Request Header Or Cookie Too "
            "Large</title></head><body></body></html>",
        ),
        (422, said("field required")),
        (500, said("internal error: out of memory")),
        (503, said("model is overloaded, at most 3 requests at a time per batch")),
        (429, said("too busy: wait, or reduce the batch size")),
    ],
)
def test_other_rejections_are_not_taken_for_too_large(status: int, body: str) -> None:
    assert classify(answer(status, body)) is not Verdict.TOO_LARGE


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("0", 0),
        ("1", 1),
        ("1.5", 1.5),
        ("3600", 3600),
        ("999999999999", 86_400),
        ("9" * 400, 0),
        ("-1", 0),
        ("abc", 0),
        ("", 0),
        ("NaN", 0),
        ("inf", 0),
        ("1e3", 0),
        ("٣", 0),
        ("Wed, 21 Oct 2099 07:28:00 GMT", 86_400),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0),
        ("Mon, 21 Sep 2026 14:14:20 GMT", 60),
        ("Wed, 99 Oct 2099 99:28:00 GMT", 0),
    ],
)
def test_retry_after_is_understood_or_ignored(header: str, seconds: float) -> None:
    assert retry_after(answer(429, retry_after=header), 1_790_000_000.0) == seconds


def test_retry_after_date_uses_the_clock_of_the_server() -> None:
    response = answer(
        429, retry_after="Wed, 21 Oct 2015 07:28:30 GMT", date="Wed, 21 Oct 2015 07:28:00 GMT"
    )
    assert retry_after(response, NOW) == 30


def test_other_forms_of_retry_after_are_understood() -> None:
    assert retry_after(answer(429, retry_after_ms="250", retry_after="9"), NOW) == 0.25
    assert retry_after(answer(429, '{"details": [{"retryDelay": "34.5s"}]}'), NOW) == 34.5


def test_requested_wait_is_kept() -> None:
    world = World(answer(429, retry_after="7"), answer(429, retry_after="0.01"), answer(200))
    assert world.ask().status == 200
    assert world.pauses == [7, 1.0]


@pytest.mark.parametrize("policy", [INDEXING, QUERY])
def test_requested_wait_beyond_the_deadline_fails_at_once(policy: Policy) -> None:
    world = World(answer(429, retry_after="3600"))
    error = world.error(policy)
    assert isinstance(error, EmbeddingOverloaded)
    assert error.retry_after == 3600
    assert "3600" in error.hint
    assert world.pauses == []


def test_failed_connection_is_retried() -> None:
    world = World(HttpError("the connection was refused"), answer(200))
    assert world.ask().status == 200
    assert world.pauses == [0.5]


def test_repeatedly_failing_connection_is_unavailable() -> None:
    world = World(HttpError("the connection was refused", hint="Start it."))
    error = world.error()
    assert type(error) is EmbeddingUnavailable
    assert error.message == "openai cannot be used: the connection was refused."
    assert error.hint == "Start it."
    assert len(world.calls) == 4


def test_permanent_error_is_not_retried() -> None:
    world = World(HttpError("the certificate is for another name", permanent=True))
    assert isinstance(world.error(), EmbeddingUnavailable)
    assert len(world.calls) == 1


def test_attempts_get_no_more_time_than_is_left() -> None:
    world = World(HttpError("no answer within 30 s"), cost=30.0)
    world.error()
    assert world.calls == [30.0, 29.5]
    assert world.now <= 160.0


def test_query_without_a_response_ends_after_three_seconds() -> None:
    world = World(HttpError("no answer within 3 s"), cost=10.0)
    world.error(QUERY)
    assert world.calls == [3.0]


def test_query_is_retried_when_the_first_attempt_fails_fast() -> None:
    world = World(answer(503), answer(200), cost=0.1)
    assert world.ask(QUERY).status == 200
    assert world.pauses == [0.25]


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("<!DOCTYPE html><html>Sign in</html>", "an HTML page"),
        ('{"error": "no such\\nmodel"}', "no such model"),
        ('{"detail": [{"msg": "wrong", "loc": ["x"]}]}', "wrong"),
        ('{"message": "wrong"}', "wrong"),
        ('{"odd": 1}', '{"odd": 1}'),
        ("plain\x00words\x1b[31m", "plain?words?[31m"),
        ("[" * 5000, "[" * 199 + "…"),
    ],
)
def test_server_message_is_one_short_printable_line(body: str, shown: str) -> None:
    assert (
        World(answer(404, body)).error().message
        == f"openai refused the request (status 404): {shown}."
    )


@pytest.mark.parametrize("body", ["", " ", "{}", "null", "[]"])
def test_rejection_without_a_message_is_reported_without_one(body: str) -> None:
    assert World(answer(404, body)).error().message == "openai refused the request (status 404)."


def test_server_message_is_redacted_before_it_is_cut() -> None:
    """The key begins where the message ends."""
    for length in range(150, 205):
        message = (
            World(answer(404, said("x" * length + " " + KEY + " and more " * 9))).error().message
        )
        assert KEY[:12] not in message


def test_message_that_is_not_text_is_tolerated() -> None:
    assert World(Response(404, {}, b"\xff\xfe\x00")).error().message


def test_no_key_reaches_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    World(answer(500, said(f"failed for {KEY}"))).error()
    assert [record.message for record in caplog.records] == ["request is tried again"] * 3
    assert KEY not in "".join(str(vars(record)) for record in caplog.records)


def test_a_real_server_that_recovers_gets_three_requests() -> None:
    answers = [
        b"HTTP/1.1 429 X\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n",
        ok(),
    ]

    def script(peer: Peer, server: RawServer) -> None:
        while request := peer.request():
            server.requests.append(request)
            peer.send(answers[len(server.requests) - 1])

    with serving(script) as server:
        client = HttpClient(server.url)
        response = send_with_retries(
            lambda seconds: client.send("POST", "/", b"{}", seconds=seconds),
            INDEXING,
            provider="p",
            model="m",
            redact=str,
            sleep=lambda _: None,
        )
        client.close()
        assert (response.status, len(server.requests), server.connections) == (200, 3, 1)
