"""The LangGraph store answers as LangGraph's own store in memory does, from Markdown files."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph")

from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    SearchOp,
)
from langgraph.store.base import MatchCondition as Match
from langgraph.store.memory import InMemoryStore

from clawmark import Memory
from clawmark.adapters.langgraph import MemoryStore
from clawmark.model.errors import WorkspaceError, WriteConflict


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    (tmp_path / "agent" / "memory").mkdir(parents=True)
    with Memory.open(tmp_path / "agent", state_dir=tmp_path / "state") as opened:
        yield opened


@pytest.fixture
def store(memory: Memory) -> MemoryStore:
    return MemoryStore(memory)


@pytest.fixture
def folder(memory: Memory) -> Path:
    return Path(memory.workspace.root) / "memory" / "langgraph"


ODD = [
    "a/b",
    "..",
    ".",
    "a.b",
    ".hidden",
    "CON",
    "node_modules",
    "venv",
    " lead",
    "trail ",
    "a~b",
    "100%",
    "%2E",
    "",
    "日本",
    "🌸",
]
ODD += [
    "x" * 300,
    "x" * 299 + "y",
    "line\nbreak",
    "tab\t",
    "\x7f",
    "\ud800",
    "a\\b",
    "*",
    "a:b",
    "-",
    "prefs.md",
]

PEOPLE: list[Op] = [
    PutOp(
        ("users", "ann"),
        "a",
        {"name": "Ann", "age": 30, "tags": ["x", {"y": 1}], "home": {"city": "Oslo", "zip": 1}},
    ),
    PutOp(("users", "ben"), "b", {"name": "Ben", "age": 40, "home": {"city": "Rome"}}),
    PutOp(("users", "ben", "cats"), "c", {"name": "Cleo", "age": 3}),
    PutOp(("users-old",), "d", {"name": "Dan", "age": 50}),
    PutOp(("teams", "a", "b", "c"), "e", {"name": "Eve"}),
]

SCRIPTS: dict[str, list[list[Op]]] = {
    "get": [
        PEOPLE,
        [GetOp(("users", "ann"), "a"), GetOp(("users", "ann"), "b"), GetOp(("nobody",), "a")],
    ],
    "put again": [
        PEOPLE,
        [PutOp(("users", "ann"), "a", {"name": "Anna"})],
        [GetOp(("users", "ann"), "a")],
    ],
    "delete": [
        PEOPLE,
        [PutOp(("users", "ann"), "a", None), PutOp(("no",), "no", None)],
        [GetOp(("users", "ann"), "a")],
    ],
    "reads before puts": [
        [PutOp(("n",), "k", {"v": 1}), GetOp(("n",), "k"), PutOp(("n",), "k", {"v": 2})],
        [GetOp(("n",), "k")],
    ],
    "search a prefix": [
        PEOPLE,
        [SearchOp(prefix, None, 10) for prefix in (("users",), ("users", "ben"), ("none",), ())],
    ],
    "filter": [
        PEOPLE,
        [
            SearchOp((), wanted)
            for wanted in (
                {"name": "Ann"},
                {"home": {"city": "Rome"}},
                {"home": {"city": "Oslo", "zip": 1}},
                {"tags": ["x", {"y": 1}]},
                {"tags": ["x"]},
                {"name": {"$eq": "Ben"}},
                {"name": {"$ne": "Ben"}, "age": 3},
                {"nothing": None},
                {},
            )
        ],
        [
            SearchOp(("users",), {"age": {operator: 30}})
            for operator in ("$gt", "$gte", "$lt", "$lte")
        ],
    ],
    "namespaces": [
        PEOPLE,
        [
            ListNamespacesOp(conditions, depth, limit, offset)
            for conditions, depth, limit, offset in (
                (None, None, 100, 0),
                (None, 1, 100, 0),
                (None, 2, 2, 1),
                ((Match("prefix", ("users",)),), None, 100, 0),
                ((Match("suffix", ("cats",)),), None, 100, 0),
                ((Match("prefix", ("*", "a")),), None, 100, 0),
                ((Match("prefix", ("teams",)), Match("suffix", ("c",))), 2, 100, 0),
                ((Match("prefix", ("a", "b", "c", "d", "e")),), None, 100, 0),
            )
        ],
    ],
    "odd keys": [
        [PutOp(("n",), key, {"is": number}) for number, key in enumerate(ODD)],
        [GetOp(("n",), key) for key in ODD],
    ],
    "odd labels": [
        [PutOp((label, "x"), "k", {"is": label}) for label in ODD if label and "." not in label],
        [GetOp((label, "x"), "k") for label in ODD if label and "." not in label],
        [ListNamespacesOp(limit=99)],
    ],
    "odd values": [
        [
            PutOp(
                ("n",),
                "k",
                {
                    "text": "```\n---\nline\r\n\u2028 \x85 \ud800 🌸",
                    "deep": [None, True, 1.5, {"": ""}],
                    "e": {},
                },
            )
        ],
        [GetOp(("n",), "k")],
        [PutOp(("n",), "k", {})],
        [GetOp(("n",), "k")],
    ],
}


def plain(results: list[Any]) -> list[Any]:
    """Items without their times."""

    def one(result: Any) -> Any:
        if isinstance(result, Item):
            return result.namespace, result.key, result.value
        return [one(item) for item in result] if isinstance(result, list) else result

    return [one(result) for result in results]


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_store_answers_as_langgraphs_own(name: str, store: MemoryStore) -> None:
    theirs: BaseStore = InMemoryStore()
    for ops in SCRIPTS[name]:
        mine, expected = plain(store.batch(ops)), plain(theirs.batch(ops))
        if any(
            isinstance(op, SearchOp) for op in ops
        ):  # without a query neither store promises an order
            mine, expected = (
                [sorted(each, key=repr) for each in mine],
                [sorted(each, key=repr) for each in expected],
            )
        assert mine == expected


def test_pages_of_a_search_hold_every_item_once(store: MemoryStore) -> None:
    store.batch(PEOPLE)
    found = [
        item.key for offset in range(0, 6, 2) for item in store.search((), limit=2, offset=offset)
    ]
    assert sorted(found) == ["a", "b", "c", "d", "e"]


def test_a_query_is_the_memorys_own_search_within_the_namespace(
    store: MemoryStore, memory: Memory
) -> None:
    for number in range(60):
        store.put(
            ("others",),
            f"{number}",
            {"text": f"Jasmine tea number {number} is served in the kitchen."},
        )
    store.put(("users", "carla"), "drink", {"text": "Carla takes jasmine tea in the morning."})
    store.put(("users", "carla"), "car", {"text": "Carla drives an old Volvo to the harbour."})
    store.put(("users", "carla"), "secret", {"text": "jasmine tea jasmine tea"}, index=False)
    found = store.search(("users",), query="jasmine tea")
    assert found[0].key == "drink" and found[0].score
    assert {item.namespace for item in found} == {("users", "carla")}
    assert "secret" not in [item.key for item in found], (
        "what is put with index=False is found by its key only"
    )
    assert store.get(("users", "carla"), "secret") is not None
    assert store.search(("users",), query="jasmine tea", filter={"text": "no such"}) == []
    assert any(
        hit.path.startswith("memory/langgraph/users/carla/drink")
        for hit in memory.search("Carla jasmine").hits
    )


def test_an_item_is_a_file_a_person_can_edit(store: MemoryStore, folder: Path) -> None:
    store.put(("users", "carla"), "prefs", {"drink": "tea"})
    file = folder / "users" / "carla" / "prefs.md"
    file.write_text(file.read_text(encoding="utf-8").replace("tea", "cocoa"), encoding="utf-8")
    item = store.get(("users", "carla"), "prefs")
    assert item is not None and item.value == {"drink": "cocoa"}
    file.write_text("# Not an item any more\n", encoding="utf-8")
    assert store.get(("users", "carla"), "prefs") is None
    assert store.search(("users",)) == [] and store.list_namespaces() == []


def test_an_item_keeps_the_time_of_its_birth(store: MemoryStore) -> None:
    store.put(("n",), "k", {"v": 1})
    first = store.get(("n",), "k")
    store.put(("n",), "k", {"v": 2})
    second = store.get(("n",), "k")
    assert first is not None and second is not None
    assert first.created_at == first.updated_at == second.created_at < second.updated_at
    assert second.created_at.tzinfo is not None


def test_value_that_is_not_json_is_refused_and_writes_nothing(
    store: MemoryStore, folder: Path
) -> None:
    with pytest.raises(WorkspaceError, match="cannot be written as JSON"):
        store.put(("n",), "k", {"v": object()})
    assert not folder.exists()


def test_no_namespace_or_key_leads_out_of_the_folder(store: MemoryStore, folder: Path) -> None:
    for key in ODD:
        store.put(("n", "a/b", "~"), key, {"v": 1})
    workspace = folder.parents[1]
    assert {path.relative_to(workspace).parts[:3] for path in workspace.rglob("*.md")} == {
        ("memory", "langgraph", "n")
    }
    assert len(list(folder.rglob("*.md"))) == len(ODD)
    with pytest.raises(InvalidNamespaceError):
        store.put(("..", "x"), "k", {"v": 1})
    with pytest.raises(InvalidNamespaceError):
        store.batch([PutOp(("a.b",), "k", {"v": 1})])


def test_an_item_never_takes_the_place_of_another(store: MemoryStore, folder: Path) -> None:
    store.put(("n",), "Key", {"v": 1})
    (folder / "n" / "Key.md").rename(
        folder / "n" / "key.md"
    )  # as a disk that does not tell upper from lower case has it
    with pytest.raises(WriteConflict, match="holds the item 'Key'"):
        store.put(("n",), "key", {"v": 2})
    assert store.get(("n",), "key") is None


def test_expiry_is_refused_as_unsupported(store: MemoryStore) -> None:
    with pytest.raises(NotImplementedError, match="TTL"):
        store.put(("n",), "k", {"v": 1}, ttl=5)


def test_the_awaited_calls_do_the_same(store: MemoryStore) -> None:
    async def tried() -> list[Any]:
        await store.aput(("n",), "k", {"v": 1})
        item = await store.aget(("n",), "k")
        found, names = await store.asearch(("n",)), await store.alist_namespaces()
        await store.adelete(("n",), "k")
        return [
            item and item.value,
            [one.key for one in found],
            names,
            await store.aget(("n",), "k"),
        ]

    assert asyncio.run(tried()) == [{"v": 1}, ["k"], [("n",)], None]
