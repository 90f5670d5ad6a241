"""Every configuration shown in a document is read without a complaint."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from docblocks import ROOT, Block, blocks, documents, where

from clawmark.config.load import load
from clawmark.config.paths import resolve_places
from clawmark.embed.choose import BUILT_IN
from clawmark.embed.known_services import COMPATIBLE, LADDER, REMOTE

SHOWN = [block for file in documents() for block in blocks(file) if block.language == "json5"]


@pytest.mark.parametrize("block", SHOWN, ids=lambda block: f"{where(block.file)}:{block.line}")
def test_every_configuration_shown_is_valid(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in re.findall(r"\$\{(\w+)\}", block.text):
        monkeypatch.setenv(name, "sk-example")
    file = tmp_path / "clawmark.json"
    file.write_text(block.text, encoding="utf-8")
    (tmp_path / "workspace").mkdir()
    places = resolve_places(str(tmp_path / "workspace"), None, str(file), str(tmp_path / "state"))
    loaded = load(places, {})
    assert loaded.warnings == ()
    assert str(file) in " ".join(loaded.origins.values())


def test_there_are_some() -> None:
    assert len(SHOWN) > 5


def test_every_provider_has_lines_to_paste() -> None:
    page = (ROOT / "docs" / "how-to" / "use-a-provider.md").read_text(encoding="utf-8")
    providers = (*BUILT_IN, *REMOTE, *COMPATIBLE)
    assert [
        name for name in providers if name != "auto" and f'provider: "{name}"' not in page
    ] == []
    variables = [variable for names in LADDER.values() for variable in names]
    assert [variable for variable in variables if f"`{variable}`" not in page] == []
