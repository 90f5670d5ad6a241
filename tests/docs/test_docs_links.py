"""Links lead somewhere, every document can be reached, and nothing names a machine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from docblocks import PROJECT, ROOT, anchors, documents, links, target, where

DOCUMENTS = documents()


@pytest.mark.parametrize("file", DOCUMENTS, ids=where)
def test_every_link_leads_to_a_file_and_a_heading_that_exist(file: Path) -> None:
    broken = []
    for link in links(file):
        if link.startswith(("https://", "http://")) and not link.startswith(f"{PROJECT}/"):
            continue
        path, anchor = target(file, link)
        if not path.exists() or (anchor and anchor not in anchors(path)):
            broken.append(link)
    assert broken == []


def test_every_document_can_be_reached_from_the_readme() -> None:
    reached = {ROOT / "README.md"}
    todo = [ROOT / "README.md"]
    while todo:
        file = todo.pop()
        for link in links(file):
            path, _ = target(file, link)
            found = path.rglob("*.md") if path.is_dir() else [path]
            fresh = [
                one for one in found if one.suffix == ".md" and one.is_file() and one not in reached
            ]
            reached.update(fresh)
            todo.extend(fresh)
    assert [where(file) for file in DOCUMENTS if file not in reached] == []


@pytest.mark.parametrize("file", DOCUMENTS, ids=where)
def test_no_document_names_a_folder_of_a_developers_machine(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert re.findall(r"(?<![\w.~])/(?:home|root|Users|work|tmp/w)/\S*", text) == []


@pytest.mark.parametrize("file", DOCUMENTS, ids=where)
def test_every_module_that_a_document_names_exists(file: Path) -> None:
    source = ROOT / "src" / "clawmark"
    packages = "|".join(sorted(path.name for path in source.iterdir() if path.is_dir()))
    named = re.findall(rf"`((?:{packages})/[\w/]+(?:\.py)?)`", file.read_text(encoding="utf-8"))
    missing = [
        name
        for name in named
        if not any((source / one).exists() for one in (name, f"{name}.py")) and "NAME" not in name
    ]
    assert missing == []
