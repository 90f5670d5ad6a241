"""Exports are read one conversation at a time, whatever their size and however they are cut into
blocks.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawmark.importers import exports
from clawmark.importers.chats import chatgpt_notes, claude_notes
from clawmark.importers.exports import ImportFailed, conversations, elements
from clawmark.importers.notes import Note, Skip


class Drip(io.RawIOBase):
    """A file that gives a few bytes at a time."""

    def __init__(self, data: bytes, step: int) -> None:
        self._left = memoryview(data)
        self._step = step

    def read(self, size: int = -1) -> bytes:
        block, self._left = bytes(self._left[: self._step]), self._left[self._step :]
        return block


def dripped(data: bytes, step: int) -> Iterator[Any]:
    return elements(Drip(data, step), "x.json")  # type: ignore[arg-type]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.text(), VALUES, max_size=3), max_size=5), st.integers(1, 40))
def test_the_elements_of_any_list_of_objects_come_back(items: list[Any], step: int) -> None:
    data = json.dumps(items, ensure_ascii=False).encode()
    assert list(dripped(data, max(step, 1))) == items


@pytest.mark.parametrize("text", ["", "{}", "null", '"x"', "[{", '[{"a": "b', "[{}", '[{"a" 1}]'])
def test_file_without_conversations_is_a_clear_error(tmp_path: Path, text: str) -> None:
    file = tmp_path / "conversations.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ImportFailed) as caught:
        list(conversations(str(file)))
    assert "\n" not in caught.value.message


def test_a_zip_is_read_in_place(tmp_path: Path) -> None:
    archive = tmp_path / "export.zip"
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("../../evil.txt", "x")
        out.writestr("user/conversations.json", '[{"uuid": "1"}, {"uuid": "2"}]')
    assert [one["uuid"] for one in conversations(str(archive))] == ["1", "2"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["export.zip"]


def test_an_export_that_came_in_parts_is_read_in_their_order(tmp_path: Path) -> None:
    parts = {
        f"conversations-{number:03}.json": json.dumps([{"uuid": str(number)}])
        for number in range(12)
    }
    folder, archive = tmp_path / "export", tmp_path / "export.zip"
    folder.mkdir()
    with zipfile.ZipFile(archive, "w") as out:
        for name, text in reversed(parts.items()):
            (folder / name).write_text(text, encoding="utf-8")
            out.writestr(f"export/{name}", text)
        out.writestr("export/copies/conversations.json", '[{"uuid": "copy"}]')
        out.writestr("export/shared_conversations.json", '[{"uuid": "shared"}]')
    for path in (folder, archive):
        assert [one["uuid"] for one in conversations(str(path))] == [
            str(number) for number in range(12)
        ]


def test_a_zip_that_grows_beyond_all_proportion_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "bomb.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("conversations.json", b"[" + b" " * 50_000_000 + b"]")
    with pytest.raises(ImportFailed, match="no export does"):
        list(conversations(str(archive)))


def test_a_damaged_zip_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(b"PK\x03\x04" + b"\0" * 40)
    with pytest.raises(ImportFailed, match="damaged zip"):
        list(conversations(str(tmp_path / "x.zip")))


def test_memory_follows_the_longest_conversation_and_not_the_export() -> None:
    class Endless(io.RawIOBase):
        left = 200

        def read(self, size: int = -1) -> bytes:
            self.left -= 1
            start = b"[" if self.left == 199 else b""
            return start + (b'{"text": "' + b"x" * 500_000 + b'"},') if self.left > 0 else b"{}]"

    import tracemalloc

    tracemalloc.start()
    count = 0
    for _ in elements(Endless(), "x"):  # type: ignore[arg-type]
        count += 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 200
    assert peak < 20 * exports._BLOCK


def node(parent: str | None, role: str, text: str, **more: Any) -> dict[str, Any]:
    content = {"content_type": more.pop("kind", "text"), "parts": [text]}
    return {
        "parent": parent,
        "children": [],
        "message": {"author": {"role": role}, "content": content, **more},
    }


def test_chatgpt_gives_the_branch_that_was_shown() -> None:
    mapping = {
        "root": {"parent": None, "children": ["a"], "message": None},
        "a": node("root", "system", "You are helpful"),
        "b": node("a", "user", "Which queue?", create_time=1741082400.0),
        "old": node("b", "assistant", "RabbitMQ"),
        "new": node("b", "assistant", "NATS, because it is small", create_time=1741082460.0),
        "tool": node("new", "assistant", "search()", recipient="browser"),
        "code": node("tool", "assistant", "print()", kind="code"),
    }
    export = [
        {
            "id": "c-1",
            "title": "Queues",
            "create_time": 1741082400.0,
            "current_node": "code",
            "mapping": mapping,
        }
    ]
    (note,) = chatgpt_notes(export)
    assert isinstance(note, Note)
    assert (note.id, note.title, note.date) == ("c-1", "Queues", "2025-03-04")
    assert (
        note.body == "**User** (2025-03-04 10:00): Which queue?\n\n**Assistant** "
        "(2025-03-04 10:01): NATS, because it is small"
    )


def test_claude_export_has_messages_of_both_roles() -> None:
    export = [
        {
            "uuid": "u-1",
            "name": "",
            "created_at": "2026-01-05T08:00:00.000000Z",
            "chat_messages": [
                {
                    "sender": "human",
                    "text": "",
                    "content": [{"type": "text", "text": "Hello there"}],
                },
                {
                    "sender": "assistant",
                    "text": "Good morning",
                    "created_at": "2026-01-05T08:00:09Z",
                },
                {"sender": "assistant", "content": [{"type": "tool_use", "input": {}}], "text": ""},
                "nonsense",
            ],
        },
        {"uuid": "u-2", "chat_messages": []},
        7,
    ]
    note, empty, wrong = claude_notes(export)
    assert isinstance(note, Note)
    assert note.title == "Hello there"
    assert note.date == "2026-01-05"
    assert note.body == "**User**: Hello there\n\n**Assistant** (2026-01-05 08:00): Good morning"
    assert empty == Skip("u-2", "has no messages by you or the assistant")
    assert wrong == Skip("entry 3", "is not a conversation of Claude: it is not an object")


def test_a_tree_that_bites_its_tail_ends() -> None:
    mapping = {"a": node("b", "user", "one"), "b": node("a", "assistant", "two")}
    (note,) = chatgpt_notes([{"id": "x", "current_node": "a", "mapping": mapping}])
    assert isinstance(note, Note)
    assert "one" in note.body
