"""Find everything in a text that is shaped like a key, a password or a card number.

Every pattern runs in linear time: it starts at a fixed word or at the start of a run of characters
(enforced by a look-behind), each repetition is followed by something it cannot match itself, and
repetitions have upper bounds. Where a shape also matches ordinary words, a check decides."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple


class Shape(NamedTuple):
    """A kind of secret. The group `s` is masked; without such a group, the whole match."""

    kind: str
    hints: tuple[str, ...]
    """Lower-case strings, one of which is in every text with this shape; a cheap first test."""
    pattern: re.Pattern[str]
    is_secret: Callable[[str], bool] | None = None


def secrets_in(text: str, start: int, end: int) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and kind of every secret between two positions, shape by shape."""
    window = text[start:end].lower()
    for shape in _shapes():
        if shape.hints and not any(hint in window for hint in shape.hints):
            continue
        group = "s" if "s" in shape.pattern.groupindex else 0
        # Positions instead of a slice let look-behinds see the text before the window.
        for match in shape.pattern.finditer(text, start, end):
            if shape.is_secret is None or shape.is_secret(match[group]):
                yield match.start(group), match.end(group), shape.kind


def looks_random(token: str) -> bool:
    """Check whether a token contains a run with letters and digits, or with inner capitals."""
    return any(len(part) >= 12 and _is_mixed(part) for part in re.split(r"[^A-Za-z0-9]", token))


def _is_mixed(part: str) -> bool:
    has_digit = any(char.isdigit() for char in part)
    has_letter = any(char.isalpha() for char in part)
    inner = part[1:]
    return (has_digit and has_letter) or (inner != inner.lower() and inner != inner.upper())


def is_password(value: str) -> bool:
    """Check whether a value after `password:` is a password, not a path or an ordinary word."""
    if len(value) < 6 or value.startswith(
        ("http://", "https://", "/", ".", "~", "$", "%(", "***", "|")
    ):
        return False
    has_inner_capital = value[1:] != value[1:].lower() and value != value.upper()
    return len(value) >= 16 or has_inner_capital or any(char.isdigit() for char in value)


def is_token(value: str) -> bool:
    """Like `is_password`, for `token:` and `secret:`, which also precede numbers and names."""
    bare = "".join(char for char in value if char.isalnum())
    is_name = (
        bare.isalpha()
        and bare in (bare.lower(), bare.upper())
        and (len(bare) < 16 or len(bare) < len(value))
    )
    return is_password(value) and not bare.isdigit() and not is_name


def is_key(value: str) -> bool:
    """Like `is_password`, for names that end in `key`: keys of a table are not secret."""
    return len(value) >= 16 and looks_random(value)


def is_login(value: str) -> bool:
    """Check whether a value after `Basic` decodes to a user name and a password."""
    try:
        return b":" in b64decode(value + "=" * (-len(value) % 4))
    except ValueError:
        return False


_CARDS = re.compile(
    r"(?=[0-9]{16}$)(?:4|5[1-5]|2[2-7]|35|6011|62|64[4-9]|65)[0-9]+"
    r"|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}"
)


def is_card(text: str) -> bool:
    """Check the length for the issuer's prefix and the check digit."""
    number = text.replace(" ", "").replace("-", "")
    if not _CARDS.fullmatch(number):
        return False
    digits = [int(char) for char in number]
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
    return (sum(doubled) + sum(digits[-1::-2])) % 10 == 0


# Lengths of account numbers by country, from the IBAN registry.
_IBAN = """
15 NO, 16 BE, 18 DK FI FO GL NL, 19 MK SI, 20 AT BA EE KZ LT LU XK, 21 CH HR LI LV,
22 BG BH CR DE GB GE IE ME RS VA, 23 AE GI IL IQ, 24 AD CZ ES MD PK RO SA SE SK TN VG, 25 PT,
26 IS TR, 27 FR GR IT MC MR SM, 28 AL AZ BY CY DO GT HU LB PL, 29 BR EG PS QA UA, 30 JO KW MU,
31 MT SC, 32 LC
"""


def _iban() -> str:
    """Build one alternative per length, so that a word after the number is not matched."""
    ways = []
    for group in _IBAN.split(","):
        length, *countries = group.split()
        fours, rest = divmod(int(length) - 4, 4)
        tail = f" ?[A-Z0-9]{{{rest}}}" if rest else ""
        ways.append(f"(?:{'|'.join(countries)})[0-9]{{2}}(?: ?[A-Z0-9]{{4}}){{{fours}}}{tail}")
    return "|".join(ways)


_NAMES_OF_KEYS = (
    r"api[-_ ]?key|access[-_ ]?key(?:[-_]id)?|secret[-_ "
    r"]?key|private[-_ ]?key|auth[-_ ]?key|account[-_ ]?key"
)
_NAMES_OF_TOKENS = (
    r"(?:api|auth|access|refresh|bearer|session|bot|id)?[-_ ]?token|client[-_ ]?secret|secret"
)
_NAMES_OF_PASSWORDS = r"passw(?:or)?d|passphrase|pwd|passcode"
# Between a name and its value: quotes, blanks, and one of : = := =>; backslashes in nested JSON.
_IS = r"\\?[\"']?[ \t]{0,4}(?::=|=>|[:=])[ \t]{0,4}\\?[\"'`]?"
_VALUE = r"(?P<s>[^\s\"'`,;<>()\[\]{}\\]{4,8192})"


@cache
def _shapes() -> tuple[Shape, ...]:
    """Compile the patterns on first use: most runs never need them."""
    return (
        *_keys_by_prefix(),
        *_keys_in_headers_and_urls(),
        *_keys_after_names(),
        *_longer_secrets(),
    )


_SEVERAL_PREFIXES = {
    "aws-id": ("akia", "asia", "aroa", "aida"),
    "stripe": ("sk_", "rk_", "pk_", "whsec_"),
}
_DIGITS = tuple("0123456789")


def _keys_by_prefix() -> Iterator[Shape]:
    """Yield keys with a prefix that names the service."""
    # A key may also follow an escaped line break, or an escape in a URL.
    word, edge = r"[A-Za-z0-9_-]", r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"
    for kind, prefix, rest in (
        ("anthropic", "sk-ant-", word + r"{16,4096}"),
        ("google", "AIza", word + r"{30,4096}"),
        ("aws-id", r"(?:AKIA|ASIA|AROA|AIDA)", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
        ("github", r"gh[pousr]_", r"[A-Za-z0-9]{20,255}"),
        ("github", "github_pat_", r"[A-Za-z0-9_]{20,255}"),
        ("gitlab", r"gl(?:pat|dt|rt|ptt|soat)-", word + r"{16,255}"),
        ("slack", r"xox[a-z]-", r"[A-Za-z0-9-]{10,255}"),
        ("slack", "xapp-", r"[A-Za-z0-9-]{10,255}"),
        ("stripe", r"(?:sk|rk|pk|whsec)_(?:live_|test_)?", r"[A-Za-z0-9]{16,255}"),
        ("npm", "npm_", r"[A-Za-z0-9]{30,255}"),
        ("pypi", "pypi-", word + r"{40,4096}"),
        ("huggingface", "hf_", r"[A-Za-z0-9]{20,255}"),
        ("groq", "gsk_", r"[A-Za-z0-9]{20,255}"),
        ("perplexity", "pplx-", r"[A-Za-z0-9]{20,255}"),
        ("sendgrid", r"SG\.", r"[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,128}"),
        ("jwt", "eyJ", r"[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{4,16000}\.[A-Za-z0-9_-]{8,4000}"),
    ):
        literal = re.split(r"[\\(\[]", prefix)[0].lower()
        yield Shape(
            kind, _SEVERAL_PREFIXES.get(kind) or (literal,), re.compile(edge + prefix + rest)
        )
    # These prefixes are also words, so the rest must look random.
    yield Shape(
        kind="openai",
        hints=("sk-",),
        pattern=re.compile(rf"{edge}sk-{word}{{16,4096}}"),
        is_secret=looks_random,
    )
    yield Shape(
        kind="voyage",
        hints=("pa-", "al-"),
        pattern=re.compile(rf"{edge}(?:pa|al)-{word}{{32,4096}}"),
        is_secret=looks_random,
    )
    yield Shape(
        kind="telegram",
        hints=(":",),
        pattern=re.compile(r"(?<![0-9])[0-9]{8,10}:[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
        is_secret=looks_random,
    )
    yield Shape(
        "discord",
        (".",),
        re.compile(
            rf"{edge}[MNO][A-Za-z0-9_-]{{23,27}}\.[A-Za-z0-9_-]{{6}}\.[A-Za-z0-9_-]{{27,40}}"
            r"(?![A-Za-z0-9_-])"
        ),
    )


def _keys_in_headers_and_urls() -> Iterator[Shape]:
    any_case = re.IGNORECASE
    yield Shape(
        kind="bearer",
        hints=("bearer",),
        pattern=re.compile(
            r"(?<![a-z0-9])bearer[ \t]{1,4}(?P<s>[A-Za-z0-9._~+/=-]{16,4096})", any_case
        ),
        is_secret=looks_random,
    )
    yield Shape(
        kind="basic",
        hints=("basic",),
        pattern=re.compile(
            r"(?<![a-z0-9])basic[ \t]{1,4}(?P<s>[A-Za-z0-9+/_-]{12,4096}={0,2})", any_case
        ),
        is_secret=is_login,
    )
    yield Shape(
        kind="authorization",
        hints=("authorization",),
        pattern=re.compile(
            rf"authorization{_IS}(?:[a-z]{{3,12}}[ "
            rf"\t]{{1,4}})?(?P<s>[^\s\"'`,;<>()\[\]{{}}\\]{{8,4096}})",
            any_case,
        ),
        is_secret=is_token,
    )
    yield Shape(
        "cookie",
        ("cookie",),
        re.compile(
            r"(?<![a-z0-9])cookie[\"']?[ \t]{0,4}:[ "
            r"\t]{0,4}[\"']?(?P<s>[^\s=;\"'\[]{1,64}=[^\r\n\"']{1,4096})",
            any_case,
        ),
    )
    yield Shape(
        "url-password",
        ("://",),
        re.compile(r"://[^\s/@:\"'<>]{0,64}:(?P<s>[^\s/@\"'<>\[\]]{1,256})@"),
    )
    yield Shape(
        kind="url-key",
        hints=("=",),
        pattern=re.compile(
            r"[?&](?:api[-_]?|access[-_]?|auth[-_]?|x-goog-)?"
            r"(?:key|token|secret|password|pwd|signature|sig|x-amz-signature)"
            r"=(?P<s>[^\s&#\"'<>\[\]]{6,2048})",
            any_case,
        ),
        is_secret=is_token,
    )


def _keys_after_names() -> Iterator[Shape]:
    any_case = re.IGNORECASE
    yield Shape(
        kind="password",
        hints=("passw", "passphrase", "pwd", "passcode"),
        pattern=re.compile(f"(?:{_NAMES_OF_PASSWORDS}){_IS}{_VALUE}", any_case),
        is_secret=is_password,
    )
    yield Shape(
        kind="token",
        hints=("token", "secret"),
        pattern=re.compile(f"(?:{_NAMES_OF_TOKENS}){_IS}{_VALUE}", any_case),
        is_secret=is_token,
    )
    yield Shape(
        kind="api-key",
        hints=("key",),
        pattern=re.compile(f"(?:{_NAMES_OF_KEYS}){_IS}{_VALUE}", any_case),
        is_secret=is_token,
    )
    yield Shape(
        kind="key",
        hints=("key",),
        pattern=re.compile(rf"(?<=[_a-z-])key{_IS}{_VALUE}", any_case),
        is_secret=is_key,
    )
    yield Shape(
        kind="flag",
        hints=("--",),
        pattern=re.compile(
            rf"--(?:api-key|apikey|access-key|token|secret|password|passwd)[ "
            rf"\t=]{{1,4}}[\"']?{_VALUE}",
            any_case,
        ),
        is_secret=is_password,
    )
    # A key masked by another program still shows its ends.
    yield Shape(
        "masked",
        ("****",),
        re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{1,64}\*{4,256}[A-Za-z0-9_-]{0,64}"),
    )


def _longer_secrets() -> Iterator[Shape]:
    yield Shape(
        "private-key",
        ("private key",),
        re.compile(
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----)){0,11000}"
            r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?"
        ),
    )
    yield Shape(
        "seed-phrase",
        ("phrase", "mnemonic", "seed", "words"),
        re.compile(
            r"(?:(?:seed|recovery|backup|secret|mnemonic)[ _-]?(?:phrase|words)|mnemonic|seed)"
            r"[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?(?P<s>(?:[a-z]{3,8}[ "
            r",]{1,2}){11,23}[a-z]{3,8})(?![a-z])",
            re.IGNORECASE,
        ),
    )
    yield Shape(
        kind="card",
        hints=_DIGITS,
        pattern=re.compile(
            r"(?<![0-9A-Za-z.-])(?:[2-6][0-9]{13,15}|[2-6][0-9]{3}([ "
            r"-])[0-9]{4}\1[0-9]{4}\1[0-9]{4}"
            r"|3[47][0-9]{2}[ -][0-9]{6}[ -][0-9]{5})(?![0-9A-Za-z-]|\.[0-9])"
        ),
        is_secret=is_card,
    )
    yield Shape("iban", _DIGITS, re.compile(rf"(?<![A-Za-z0-9])(?:{_iban()})(?![A-Za-z0-9])"))
