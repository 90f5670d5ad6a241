"""Which values are kept out of notes, indexes and logs: every key that is configured, wherever it
stands.
"""

from __future__ import annotations

import pytest

from clawmark.backends.known_secrets import configured_keys
from clawmark.config.schema import Remote


@pytest.mark.parametrize(
    ("remote", "variable"),
    [
        (Remote(api_key="${MINE}"), "MINE"),
        (Remote(api_key={"source": "env", "id": "MINE"}), "MINE"),
        (Remote(headers={"Authorization": "Bearer ${MINE}"}), "MINE"),
        (Remote(), "OPENAI_API_KEY"),
        (Remote(), "DEEPINFRA_API_KEY"),
        (Remote(), "AWS_SECRET_ACCESS_KEY"),
    ],
)
def test_a_key_is_known_wherever_it_is_configured(remote: Remote, variable: str) -> None:
    assert "FAKE-value-of-a-key" in configured_keys(remote, {variable: "FAKE-value-of-a-key"})


def test_each_of_several_keys_is_found() -> None:
    environ = {
        "GEMINI_API_KEYS": "FAKE-first-of-them, FAKE-second-one",
        "GEMINI_API_KEY_2": "FAKE-third-of-them",
    }
    assert configured_keys(Remote(), environ) == (
        "FAKE-first-of-them",
        "FAKE-second-one",
        "FAKE-third-of-them",
    )


def test_a_reference_that_leads_nowhere_hides_nothing() -> None:
    remote = Remote(api_key="${ABSENT}", headers={"Authorization": "${ABSENT}"})
    assert configured_keys(remote, {}) == ()
