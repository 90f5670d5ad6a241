"""The lines to paste on each host's page are what `clawmark install` would write."""

from __future__ import annotations

import json
import tomllib

import pytest
from docblocks import ROOT, blocks

from clawmark.config.json5 import parse
from clawmark.hooks.hosts import NAMES, Launch, Surroundings, additions

FOLDER = ROOT / "docs" / "how-to" / "hosts"


def workspace(host: str) -> str:
    return "~/.openclaw/workspace" if host == "openclaw" else "~/agent"


def shown(host: str) -> list[object]:
    """What the blocks of a page say, read as the host reads them."""
    found = [block for block in blocks(FOLDER / f"{host}.md") if block.language in ("json", "toml")]
    return [
        tomllib.loads(block.text) if block.language == "toml" else parse(block.text).value
        for block in found
    ]


@pytest.mark.parametrize("host", NAMES)
def test_what_the_page_of_a_host_says_is_what_is_installed(host: str) -> None:
    launch = Launch(("clawmark",), ("--workspace", workspace(host)))
    wanted: dict[str, object] = {}
    for file, form, path, value, lines in additions(
        host,
        "user",
        Surroundings(home="/none", project="/none", environ={}, platform="linux"),
        launch,
        "",
    ):
        if form == "toml":
            wanted[file] = tomllib.loads("\n".join(lines))
        elif form != "text":
            at: dict[str, object] = wanted.setdefault(file, {})  # type: ignore[assignment]
            for key in path[:-1]:
                at = at.setdefault(key, {})  # type: ignore[assignment]
            at[path[-1]] = [value] if form == "item" else value
    # A shell would not look into quotes for ~; we do, and a reader needs none.
    assert shown(host) == json.loads(
        json.dumps(list(wanted.values())).replace("'~/agent'", "~/agent")
    )


def test_the_index_names_every_host() -> None:
    text = (FOLDER / "index.md").read_text(encoding="utf-8")
    assert [host for host in NAMES if f"]({host}.md)" not in text] == []
