from __future__ import annotations

import pytest

from clawmark.embed.base import is_mostly_latin


@pytest.mark.parametrize(
    "text",
    [
        "plain English",
        "Größe, naïveté, żółw",
        "Tiếng Việt",
        "Redis 缓存 replaces memcached for sessions",
        "- [x] done — 100 % ✓",
    ],
)
def test_text_with_mostly_latin_letters_is_latin(text: str) -> None:
    assert is_mostly_latin(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2024-05-01 12:30",
        "***",
        "请问数据库",
        "Где база данных?",
        "قاعدة البيانات",
        "API 数据库的地址",
    ],
)
def test_text_without_letters_or_mostly_in_another_script_is_not(text: str) -> None:
    assert not is_mostly_latin(text)
