"""Signatures of the test suite that AWS publishes for version 4."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from clawmark.embed.services.sigv4 import Credentials, Scope, canonical_request, sign

NOW = datetime(2015, 8, 30, 12, 36, tzinfo=UTC).timestamp()
WHO = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
TOKEN = (
    "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7m"
    "SEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0"
    "rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=="
)


def signature(
    method: str,
    path: str = "/",
    query: str = "",
    headers: dict[str, str] | None = None,
    body: bytes = b"",
    who: Credentials = WHO,
) -> str:
    added = sign(
        method,
        path,
        body,
        headers={"Host": "example.amazonaws.com", **(headers or {})},
        credentials=who,
        scope=Scope("us-east-1", "service"),
        now=NOW,
        query=query,
    )
    return added["authorization"].rpartition("Signature=")[2]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (signature("GET"), "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        (signature("POST"), "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        (
            signature("GET", query="Param2=value2&Param1=value1"),
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
        (
            signature("GET", query="ሴ=bar"),
            "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04",
        ),
        (
            signature("GET", "/ሴ"),
            "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85",
        ),
        (
            signature("GET", "/example space/"),
            "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741",
        ),
        (
            signature("POST", headers={"My-Header1": "value1"}),
            "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c",
        ),
        (
            signature("POST", headers=FORM, body=b"Param1=value1"),
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
        ),
        (
            signature("POST", who=WHO._replace(token=TOKEN)),
            "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
        ),
    ],
    ids=[
        "get",
        "post",
        "query-order",
        "query-utf8",
        "path-utf8",
        "path-space",
        "header",
        "form",
        "session-token",
    ],
)
def test_the_published_signature_is_found(found: str, expected: str) -> None:
    assert found == expected


def test_the_example_of_the_documentation_is_signed_as_documented() -> None:
    added = sign(
        "GET",
        "/",
        b"",
        headers={
            "host": "iam.amazonaws.com",
            "content-type": "application/x-www-form-urlencoded; charset=utf-8",
        },
        credentials=WHO,
        scope=Scope("us-east-1", "iam"),
        now=NOW,
        query="Action=ListUsers&Version=2010-05-08",
    )
    assert added == {
        "x-amz-date": "20150830T123600Z",
        "authorization": "AWS4-HMAC-SHA256 "
        "Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, "
        "SignedHeaders=content-type;host;x-amz-date, "
        "Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
    }


def test_a_path_is_signed_as_it_stands_in_the_request_encoded_once_more() -> None:
    canonical = canonical_request(
        "POST", "/model/amazon.titan-embed-text-v2%3A0/invoke", "", {"host": "h"}, b""
    )
    assert canonical.splitlines()[1] == "/model/amazon.titan-embed-text-v2%253A0/invoke"
