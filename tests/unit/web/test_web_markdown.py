"""Markdown becomes HTML in which nothing of a note runs, loads or leads astray."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawmark.web.markdown import MAX_RENDERED, as_lines, file_address, link_address, render

ALLOWED_TAGS = {
    *("a", "p", "span", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "pre", "code", "em"),
    *("strong", "s", "blockquote", "hr", "br", "table", "thead", "tbody", "tr", "th", "td"),
}


def tags_of(html: str) -> set[str]:
    return {tag.lower() for tag in re.findall(r"<\s*/?\s*([a-zA-Z][\w-]*)", html)}


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<svg/onload=alert(1)>",
        "a <b onclick=x>b</b>",
        "<style>*{display:none}</style>",
        "```html\n<script>x</script>\n```",
        "    <iframe src=//evil.example>",
    ],
)
def test_tags_of_a_note_are_shown_as_text(text: str) -> None:
    html = str(render(text))
    assert tags_of(html) <= ALLOWED_TAGS
    assert "&lt;" in html


@pytest.mark.parametrize(
    "target",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        " javascript:alert(1)",
        "data:text/html,x",
        "vbscript:x",
        "file:///etc/passwd",
        "//evil.example/x.md",
        "../../etc/passwd.md",
        "/etc/passwd",
    ],
)
def test_dangerous_link_is_not_a_link(target: str) -> None:
    assert link_address(target, "memory/x.md") == ""
    assert "href" not in str(render(f"[text](<{target}>)", path="memory/x.md"))


@pytest.mark.parametrize("target", ["\\\\evil.example\\x.md", "http://[bad", "https://[::1"])
def test_malformed_address_is_not_a_link(target: str) -> None:
    assert link_address(target, "memory/x.md") == ""


def test_relative_link_leads_to_the_file_of_the_memory() -> None:
    assert (
        link_address("2026-11-02.md#L3", "memory/2026-11-01.md") == "/file/memory/2026-11-02.md#L3"
    )
    assert link_address("../MEMORY.md", "memory/x.md") == "/file/MEMORY.md"


def test_picture_is_a_link_and_is_not_loaded() -> None:
    html = str(render("![a cat](https://evil.example/cat.png)"))
    assert "<img" not in html
    assert 'href="https://evil.example/cat.png"' in html


def test_every_line_has_its_number_as_an_anchor_once() -> None:
    text = "# Title\n\nfirst\nsecond\n\n- one\n- two\n\n```\ncode\nmore\n```\n"
    ids = re.findall(r'id="L(\d+)"', str(render(text, first_line=10)))
    assert ids == ["10", "12", "13", "15", "16", "19", "20"]


def test_direction_and_control_characters_can_be_seen() -> None:
    html = str(render("safe \u202egnp.exe \x1b[31mred"))
    assert "\u202e" not in html and "\x1b" not in html
    assert r"\u{202e}" in html


def test_wikilink_leads_to_the_note_that_it_names() -> None:
    html = str(render("See [[Ferry/Plan]], [[ferry|the boat]] and [[ferry#Times]]."))
    assert '<a class="wikilink" href="/note/Ferry%2FPlan">Ferry/Plan</a>' in html
    assert '<a class="wikilink" href="/note/ferry">the boat</a>' in html
    assert '<a class="wikilink" href="/note/ferry">ferry#Times</a>' in html


def test_wikilink_in_code_is_shown_as_it_is() -> None:
    assert "wikilink" not in str(render("`[[ferry]]` and\n\n    [[ferry]]\n"))


def test_long_text_is_shown_as_it_is() -> None:
    html = str(render("*x* <b>\n" * (MAX_RENDERED // 4)))
    assert html.startswith("<pre>")
    assert tags_of(html) == {"pre", "span"}


def test_name_with_undecodable_bytes_has_an_address() -> None:
    assert file_address("memory/caf\udce9 #1.md", 3) == "/file/memory/caf%E9%20%231.md#L3"


@given(st.text(alphabet=st.sampled_from("<>\"'&[]()!`*_~#|-\n \\/:ajhtps.x="), max_size=200))
def test_no_text_makes_a_tag_of_its_own(text: str) -> None:
    html = str(render(text, path="memory/x.md"))
    assert tags_of(html) <= ALLOWED_TAGS
    for target in re.findall(r'href="([^"]*)"', html):
        assert target.startswith(("/file/", "/note/", "#", "http:", "https:", "mailto:"))
    assert tags_of(str(as_lines(text))) == {"pre", "span"}
