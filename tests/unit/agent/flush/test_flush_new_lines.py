"""Only what a file does not hold yet is left of a text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from clawmark.agent.flush.new_lines import new_lines

HELD = """# 2026-11-15

- We chose PostgreSQL for billing. <!-- clawmark: origin=agent session=agent:main:main -->
- Ann prefers tea
  - with milk

## Open

- [ ] Call the bank
```sh
make install
```
"""


def test_what_is_new_stays_as_it_is() -> None:
    text = "- Redis replaces memcached\n- Bob is on holiday\n\n  until Monday"
    assert new_lines(text, HELD) == text
    assert new_lines(text, "") == text


def test_a_known_line_is_dropped_however_it_is_written() -> None:
    text = (
        "* we chose  PostgreSQL for Billing\n1. Call the bank\n- "
        "Redis replaces memcached\n[x] Ann prefers tea."
    )
    assert new_lines(text, HELD) == "- Redis replaces memcached"


def test_numbered_line_equals_a_line_with_a_dash() -> None:
    assert new_lines("1. one\n2. two\n3. three", "- 1. one\n  2. two\n") == "3. three"


def test_a_whole_file_again_is_nothing() -> None:
    assert new_lines(HELD, HELD) == ""


def test_a_known_line_stays_above_something_new() -> None:
    text = "## Open\n\n- Ann prefers tea\n  - without sugar\n- Call the bank"
    assert new_lines(text, HELD) == "## Open\n\n- Ann prefers tea\n  - without sugar"


def test_heading_without_new_lines_is_removed() -> None:
    assert (
        new_lines("## Decisions\n\n- We chose PostgreSQL for billing\n\n## Later\n\n---", HELD)
        == ""
    )


def test_a_fence_is_known_or_new_as_a_whole() -> None:
    assert new_lines("```sh\nmake install\n```", HELD) == ""
    new = "```sh\nmake install\nmake test\n```"
    assert new_lines(new, HELD) == new
    assert new_lines("```sh\nnever closed", HELD) == "```sh\nnever closed"


def test_a_table_is_known_or_new_as_a_whole() -> None:
    table = "| what | when |\n|---|---|\n| launch | May |"
    assert new_lines(f"- new\n{table}\n- old", "- old") == f"- new\n{table}"
    assert new_lines(f"{table}\n- new", f"# Log\n\n{table}\n") == "- new"
    other = table.replace("May", "June")
    assert new_lines(other, table) == other


def test_repeated_line_is_kept_once() -> None:
    assert new_lines("- new thing\n- other\n- New thing.", "") == "- new thing\n- other"


@given(
    st.text(alphabet="ab-*# \n`.1[]x", max_size=80), st.text(alphabet="ab-*# \n`.1[]x", max_size=80)
)
def test_result_has_no_new_lines_compared_with_itself(text: str, held: str) -> None:
    left = new_lines(text, held)
    assert new_lines(left, f"{held}\n\n{left}") == "" or "```" in held
