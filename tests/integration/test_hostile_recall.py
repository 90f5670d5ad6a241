"""Stored injections in the recall block: each comes back exactly, none leaves its place (I-38 to
I-40).
"""

from __future__ import annotations

import json
import string
from collections.abc import Iterator
from pathlib import Path

import hostile
import pytest

from clawmark import Memory
from clawmark.agent.prompt.recall import Recalled, parse_block, recall_block
from clawmark.model.errors import WorkspaceError
from clawmark.testing import HashingEmbedder
from clawmark.text.secrets.redact import Redactor
from clawmark.text.untrusted.injection_flags import flags_of
from clawmark.text.untrusted.recalled_blocks import strip_recalled

pytestmark = hostile.needs_maker


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = hostile.make(tmp_path_factory.mktemp("hostile-recall") / "made")
    yield folder
    hostile.remove(folder)


@pytest.fixture(scope="module")
def memory(made: Path) -> Iterator[Memory]:
    with Memory.open(
        made / "workspace", state_dir=made / "state", embedder=HashingEmbedder()
    ) as opened:
        opened.sync()
        yield opened


def injections(made: Path) -> dict[str, str]:
    folder = made / "workspace" / "memory" / "inj"
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md"))}


def test_all_of_them_come_back_exactly_from_one_block(made: Path) -> None:
    texts = injections(made)
    assert len(texts) == 18
    items = [
        Recalled(
            citation=f"memory/inj/{name}.md#L1",
            date="",
            origin="unknown",
            text=text,
            flags=flags_of(text),
        )
        for name, text in texts.items()
    ]
    block = recall_block(items)
    assert parse_block(block) == items
    first, *inside, last = block.split("\n")
    assert block.count(last) == block.count(first) == 1
    assert all(line.startswith("|") for line in inside)
    assert len([line for line in inside if line.startswith("| [")]) == len(items)
    assert set(block) <= set(string.printable) | set("".join(texts.values()))
    assert not any("\U000e0000" <= letter <= "\U000e0fff" for letter in block)


def test_the_hostile_ones_are_flagged_and_every_one_is_kept(made: Path) -> None:
    unflagged = [name for name, text in injections(made).items() if not flags_of(text)]
    assert unflagged in ([], ["benign-lookalike"])


def test_what_a_search_finds_is_recalled_whole_and_labelled(made: Path, memory: Memory) -> None:
    for name, text in injections(made).items():
        block = memory.recall(f"{name} {text[:300]}", max_results=5, min_score=0)
        items = parse_block(block)
        stored = [item for item in items if item.citation.startswith(f"memory/inj/{name}.md#L")]
        assert stored, name
        assert all(item.text.strip() in text for item in stored)
        assert strip_recalled(f"words\n{block}") == "words\n"


def test_the_prompt_holds_no_line_of_them_outside_a_block(made: Path, memory: Memory) -> None:
    """Recent logs made of injections: their lines are quoted, so none of them begins a line of the
    prompt.
    """
    day = memory.today()
    folder = made / "workspace" / "memory"
    for name, text in injections(made).items():
        (folder / f"{day}-{name}.md").write_text(text, encoding="utf-8")
    prompt = memory.prompt().text
    lines = prompt.split("\n")
    for text in injections(made).values():
        for line in filter(None, text.split("\n")):
            assert line not in lines or line == "# Notes"
    assert prompt.count("## Runtime") == 1


def test_recalled_and_wrapped_text_in_transcripts_is_not_captured(made: Path) -> None:
    sessions = next(made.rglob("recalled.jsonl")).parent
    said = [
        str(json.loads(line)["message"]["content"])
        for line in (sessions / "recalled.jsonl").read_text(encoding="utf-8").splitlines()
        if '"message"' in line
    ]
    assert any("old memory" in text for text in said)
    assert not any("old memory" in strip_recalled(text) for text in said)
    assert any("new question" in strip_recalled(text) for text in said)


def test_a_masked_secret_is_never_written(made: Path, memory: Memory) -> None:
    redactor = Redactor()
    append = memory.tools(append=True)[2]
    before = {
        path: path.read_bytes() for path in (made / "workspace").rglob("*.md") if path.is_file()
    }
    masked = 0
    for case in hostile.cases(made, "secrets").values():
        text = redactor.clean(hostile.input_bytes(case).decode("utf-8", "replace"))
        if "[redacted:" not in text:
            continue
        masked += 1
        for to in ("log", "MEMORY.md"):
            refused = append.call({"text": f"The value is {text}", "to": to})
            assert refused["written"] is False and refused["reason"] in (
                "mask",
                "too-long",
                "hidden",
            ), refused
        with pytest.raises(WorkspaceError, match="redaction mask"):
            memory.append(text)
    assert masked >= 20
    assert before == {
        path: path.read_bytes() for path in (made / "workspace").rglob("*.md") if path.is_file()
    }
