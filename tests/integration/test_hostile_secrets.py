"""Every secret of the hostile cases is masked, and what only looks like one is left alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile import cases, make, needs_maker, remove

from clawmark.text.secrets.redact import Redactor

pytestmark = needs_maker


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = make(tmp_path_factory.mktemp("hostile") / "tree")
    yield folder
    remove(folder)


def secret_part(text: str) -> str:
    """What must not be left over: the longest stretch without a blank, or the whole for numbers and
    phrases.
    """
    return (
        max(text.split(), key=len)
        if any(char.isdigit() for char in max(text.split(), key=len))
        else text
    )


def test_all_33_shapes_are_masked_alone_and_in_a_document(tree: Path) -> None:
    found = cases(tree, "secrets")
    assert len(found) == 33
    document = (tree / "workspace" / "memory" / "sec" / "pasted.md").read_text(encoding="utf-8")
    clean_document = Redactor().clean(document)
    for name, case in found.items():
        clean = Redactor().clean(case["input"])
        assert "[redacted:" in clean, name
        for line in secret_part(case["input"]).splitlines():
            if not line.startswith("-----"):
                assert line not in clean, name
                assert line not in clean_document, name


def test_what_looks_like_a_secret_and_is_none_stays(tree: Path) -> None:
    text = (tree / "workspace" / "memory" / "sec" / "lookalikes.md").read_text(encoding="utf-8")
    assert Redactor().clean(text) == text
