"""Which values are kept out of notes, indexes and logs: every key that is configured, wherever it
stands.
"""

from __future__ import annotations

import pytest

from clawmark.backends.known_secrets import configured_keys


@pytest.mark.parametrize(
    ("remote", "variable"),
    [
        ({"apiKey": "${MINE}"}, "MINE"),
        ({"apiKey": {"source": "env", "id": "MINE"}}, "MINE"),
        ({"headers": {"Authorization": "Bearer ${MINE}"}}, "MINE"),
        ({}, "OPENAI_API_KEY"),
        ({}, "DEEPINFRA_API_KEY"),
        ({}, "AWS_SECRET_ACCESS_KEY"),
    ],
)
def test_a_key_is_found_wherever_it_is_configured(remote: dict[str, object], variable: str) -> None:
    assert "FAKE-value-of-a-key" in configured_keys(remote, {variable: "FAKE-value-of-a-key"})


def test_each_of_several_keys_is_found() -> None:
    environ = {
        "GEMINI_API_KEYS": "FAKE-first-of-them, FAKE-second-one",
        "GEMINI_API_KEY_2": "FAKE-third-of-them",
    }
    assert configured_keys({}, environ) == (
        "FAKE-first-of-them",
        "FAKE-second-one",
        "FAKE-third-of-them",
    )


def test_a_reference_that_cannot_be_resolved_yields_no_key() -> None:
    assert (
        configured_keys({"apiKey": "${ABSENT}", "headers": {"Authorization": "${ABSENT}"}}, {})
        == ()
    )
