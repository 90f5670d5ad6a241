"""Secrets are masked by value in every encoding and by shape, ordinary words stay, and the time
grows with the text.
"""

# The samples are put together here, so that no scanner takes this file for a leak.

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawmark.text.secrets.redact import OVERLAP, WINDOW, Redactor

KEY = 'my/very+secret=key?Ümläut "quoted\\'
A = "FAKEa1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6"
PEM = "-----BEGIN {} KEY-----\n" + "\n".join([A + A] * 20) + "\n-----END {} KEY-----"

SHAPES = [
    ("openai", "sk-" + A[:48]),
    ("openai", "sk-proj-" + A + "_" + A + "-x"),
    ("openai", "sk-or-v1-" + A),
    ("anthropic", "sk-ant-api03-" + A + "AA"),
    ("google", "AIza" + A[:35]),
    ("aws-id", "AKIA" + "FAKE2OQO4VVQFKPA"),
    ("github", "ghp_" + A[:36]),
    ("github", "github_pat_" + A),
    ("gitlab", "glpat-" + A[:20]),
    ("slack", "xoxb-92546169261-" + A[:24]),
    ("slack", "xapp-1-" + A[:34]),
    ("telegram", "641274269:AA" + A[:33]),
    ("discord", "MT" + A[:22] + "." + A[:6] + "." + A[:27]),
    ("stripe", "sk_live_" + A[:24]),
    ("npm", "npm_" + A[:36]),
    ("pypi", "pypi-AgEIcHlwaS5vcmc" + A),
    ("huggingface", "hf_" + A[:34]),
    ("groq", "gsk_" + A[:40]),
    ("perplexity", "pplx-" + A[:40]),
    ("voyage", "pa-" + A[:43]),
    ("sendgrid", "SG." + A[:22] + "." + A[:43]),
    ("jwt", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJmYWtlIn0." + A[:43]),
    ("private-key", PEM.replace("{}", "PRIVATE")),
    ("private-key", PEM.replace("{}", "OPENSSH PRIVATE")),
    ("private-key", PEM.replace("{}", "RSA PRIVATE").replace("\n", "\\n")),
    (
        "private-key",
        PEM.replace("{}", "RSA PRIVATE").replace(
            "\n", "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n", 1
        ),
    ),
    ("card", "4111 1111 1111 1111"),
    ("card", "5555-5555-5555-4444"),
    ("card", "378282246310005"),
    ("iban", "DE00 FAKE 0000 0000 0000 00"),
    ("iban", "GB82WEST12345698765432"),
    ("masked", "sk-FAKE********wxyz"),
]

PLACES = [
    ("Authorization: Bearer {}", A),
    ('{{"Authorization": "Bearer {}"}}', A),
    ("authorization={}", A),
    ("bearer {}", A[:24]),
    ("Authorization: Basic {}", base64.b64encode(b"fake:" + A.encode()).decode()),
    ("Cookie: {}", "session=" + A),
    ("set-cookie: {}", "a=b; session=" + A),
    ("postgres://fake:{}@127.0.0.1:5432/db", "p4ss"),
    ("http://127.0.0.1:9/v1?key={}&x=1", A),
    ("http://127.0.0.1:9/v1?x=1&access_token={}", A),
    ("export API_KEY={}", A[:36]),
    ("OPENAI_API_KEY='{}'", A[:12]),
    ("x-api-key: {}", A[:20]),
    ("aws_secret_access_key = {}", A[:40]),
    ("ENCRYPTION_KEY={}", A[:32]),
    ('{{"apiKey": "{}"}}', A[:36]),
    (r"{{\"apiKey\": \"{}\"}}", A[:36]),
    ("{{'refreshToken': '{}'}}", A[:16]),
    ("client_secret: {}", A[:16]),
    ("password: {}", "FAKE-xNZSOLLVy6eG1n1o"),
    ("password={}", "hunter2"),
    ("passwd: {}", "correcthorsebatterystaple"),
    ("--token {}", A[:20]),
    ("--password={}", "hunter22"),
    (
        "seed phrase: {}",
        "absent ability ability absorb absorb ability abstract absorb abandon absorb above ability",
    ),
    ("line one\\n{}", "sk-" + A[:48]),
    ("a%20{}", "sk-" + A[:48]),
]

INNOCENT = [
    "commit a828e60f5b1c2d3e4f5a6b7c8d9e0f1a2b3c4d5e",
    "sha256 " + "0" * 64,
    "uuid 123e4567-e89b-12d3-a456-426614174000",
    "sk-learn and sk-image, sk-learn-contrib-international-examples",
    "the word Bearer alone, and Basic understanding of authentication",
    "password: (none)",
    "password: required",
    "password: see the vault",
    "The secret: aws_secret_access_key is a name",
    "secret: 2026-03-01",
    "max_token=4096000",
    "tokens: 123456789",
    "token: https://docs.example.com/v2/tokens1",
    "token: ${TOKEN_2}",
    "api_key: $OPENAI_API_KEY_1",
    "key=value",
    "primary_key: user_id_2",
    "foreign key = customers.id",
    "Cookie: chocolate chip",
    "http://example.com:8080/a@b",
    "https://example.com/?page=2&sort=key",
    "phone +49 151 12345678, 4915112345678",
    "1790000000000000 and 20260224153000",
    "4111 1111 1111 1112",
    "ISO DE12 and VERSION AB12CD34",
    "see **bold** and ***both***",
    "the seed: plant it in spring",
    "-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----",
    "npm_config_registry and hf_transfer and pypi-server",
]


@pytest.mark.parametrize(("kind", "secret"), SHAPES)
@pytest.mark.parametrize("around", ["{}", "before {} after", "({})", '"{}",', "x={}\n", "`{}`"])
def test_secret_is_masked_by_its_shape_anywhere(kind: str, secret: str, around: str) -> None:
    before, after = around.split("{}")
    assert Redactor().clean(before + secret + after) == f"{before}[redacted:{kind}]{after}"


def test_a_private_key_that_was_cut_is_masked_to_its_end() -> None:
    cut = PEM.replace("{}", "RSA PRIVATE")[:700]
    assert Redactor().clean("before " + cut) == "before [redacted:private-key]"


@pytest.mark.parametrize(("place", "value"), PLACES)
def test_a_value_is_masked_by_its_place(place: str, value: str) -> None:
    before, after = place.format("\0").split("\0")
    clean = Redactor().clean(f"see {before}{value}{after}\nthere")
    assert clean.startswith(f"see {before}[redacted:")
    assert clean.endswith(f"]{after}\nthere")
    assert value not in clean


@pytest.mark.parametrize("text", INNOCENT)
def test_ordinary_text_is_unchanged(text: str) -> None:
    assert Redactor().clean(text) == text


@pytest.mark.parametrize(
    "form",
    [
        KEY,
        quote(KEY, safe=""),
        quote(KEY),
        quote_plus(KEY),
        json.dumps(KEY)[1:-1],
        json.dumps(KEY, ensure_ascii=False)[1:-1],
    ],
)
def test_a_configured_key_is_masked_in_every_encoding(form: str) -> None:
    assert Redactor([KEY]).clean(f"<{form}>") == "<[redacted:key]>"


def test_a_key_without_a_shape_is_masked_by_value() -> None:
    assert Redactor(["open sesame"]).clean("they said open sesame twice: open%20sesame") == (
        "they said [redacted:key] twice: [redacted:key]"
    )


def test_lower_case_escapes_are_known_too() -> None:
    assert Redactor(["a/b+c/d+e"]).clean("a%2fb%2bc%2fd%2be") == "[redacted:key]"


@pytest.mark.parametrize("before", ["", "a", "ab", "abc", "user:", "Aladdin:"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_key_inside_base64_is_masked_at_any_offset(
    before: str, encode: Callable[[bytes], bytes]
) -> None:
    key = "plain~words?as>key"
    text = encode((before + key + "?").encode()).decode()
    clean = Redactor([key]).clean(text)
    left = clean.replace("[redacted:key]", "")
    assert len(left) < len(clean)
    assert len(left) <= len(encode((before + "??????").encode()))


def test_very_short_values_are_not_masked() -> None:
    assert Redactor(["", "a", "test"]).clean("a test") == "a test"


def test_of_two_keys_the_longer_one_is_masked_whole() -> None:
    assert (
        Redactor(["abcdef", "abcdefghij"]).clean("abcdefghij abcdef")
        == "[redacted:key] [redacted:key]"
    )


@pytest.mark.parametrize(("kind", "secret"), SHAPES[:26])
def test_a_secret_on_the_edge_of_a_window_is_masked_whole(kind: str, secret: str) -> None:
    for shift in (0, 1, len(secret) // 2, len(secret) - 1):
        padding = "\n" * (WINDOW - shift)
        assert Redactor().clean(padding + secret + "\nend") == f"{padding}[redacted:{kind}]\nend"


def test_windows_overlap_by_more_than_the_longest_secret() -> None:
    token = "eyJ" + "a" * 2000 + "." + "b" * 16000 + "." + "c" * 4000
    assert len(token) < OVERLAP
    padding = " " * (WINDOW - len(token) + 1)
    assert Redactor().clean(padding + token) == padding + "[redacted:jwt]"


@given(st.text(), st.lists(st.text(max_size=20), max_size=3))
def test_cleaning_never_fails_and_removes_all_values(text: str, values: list[str]) -> None:
    long = [value for value in values if len(value) >= 6]
    clean = Redactor(values).clean(text.join([*values, ""]))
    assert not any(
        value in clean.replace("[redacted:key]", "\0") for value in long if "\0" not in value
    )


@given(
    st.lists(
        st.sampled_from(
            [secret for _, secret in SHAPES] + [p.format(v) for p, v in PLACES] + INNOCENT
        ),
        max_size=6,
    )
)
def test_cleaning_twice_is_cleaning_once(parts: list[str]) -> None:
    clean = Redactor([KEY]).clean("\n".join(parts))
    assert Redactor([KEY]).clean(clean) == clean


NASTY = [
    *(
        "a",
        "-",
        "sk-",
        "eyJ",
        "eyJaaaaaaaaa.",
        "token=",
        "password:",
        "secret",
        "://a:",
        "?key=",
        "-----BEGIN PRIVATE KEY-----",
    ),
    *(
        "seed phrase: abandon ",
        "4111-1111-",
        "DE00 ",
        "Basic ",
        "Authorization: ",
        "cookie: a",
        "--token ",
        "a****",
        "_key",
    ),
    *("SG.a.", "M" * 25 + ".aaaaaa.", "123456789:", "\\nsk-", "%20sk-", " ", "=", "aB3"),
]


@pytest.mark.parametrize("seed", range(3))
def test_a_megabyte_of_near_misses_is_cleaned(seed: int) -> None:
    """A pattern that is not linear would take hours."""
    dice = random.Random(seed)
    parts: list[str] = []
    while sum(map(len, parts)) < 1 << 20:
        parts.append(dice.choice(NASTY) * dice.choice([1, 10, 5000]))
    text = "".join(parts)
    assert len(Redactor([A, KEY]).clean(text)) <= len(text) * 3


@pytest.mark.parametrize("nasty", NASTY)
def test_a_long_run_of_each_near_miss_is_cleaned(nasty: str) -> None:
    text = (nasty * (256 << 10))[: 256 << 10] + "!"
    assert len(Redactor([A]).clean(text)) <= len(text) * 3
