"""Non-interference: whatever happens in what a member cannot see, its answers stay the same.

Random worlds of spaces, members, tokens and private indexes are made in a real PostgreSQL. All that
one member can ask is recorded, byte by byte: answers with scores and explanations, counts, versions
and error messages. Then everything hidden is changed, added and deleted, and all is asked again."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager

import psycopg
import pytest
from team_scene import FastEmbedder, make_spaces

from clawmark.backends.team.base import Published
from clawmark.backends.team.direct import DirectSpaces
from clawmark.embed.base import Choice
from clawmark.model.errors import ClawmarkError
from clawmark.model.values import Filters, Found, Query
from clawmark.store.postgres.servers import Connection, Server
from clawmark.store.postgres.store import PostgresStore
from clawmark.store.postgres.team import admin
from clawmark.store.postgres.team.access_tokens import create_token, list_tokens, revoke_token
from clawmark.testing import HashingEmbedder
from clawmark.testing.store_samples import any_of, put

TEXT = (
    "heron otter pier lake nest billing invoice postgres backup deploy river stone paper lamp "
    "garden bridge ticket budget review report winter summer north south"
)
WORDS = TEXT.split()
OTHERS = ("ben", "cy", "dan", "eve")
HIDDEN = ("ops", "board", "attic")
ABSENT = "ghost"
"""A space that does not exist at first, and is made with the hidden changes."""
SEEDS = range(int(os.environ.get("TEAM_WORLDS", "3")))


class World:
    """A database with spaces, of which ada sees `team` and `news`."""

    def __init__(self, uri: str, seed: int) -> None:
        self.uri = uri
        self.random = random.Random(seed)
        self.keys = 0
        self._stack = ExitStack()
        self._open: dict[tuple[str, int], DirectSpaces] = {}

    def spaces(self, name: str, dims: int = 64) -> DirectSpaces:
        """Open the spaces of a member; some members use another embedder."""
        if (name, dims) not in self._open:
            embedders = (FastEmbedder(dims), HashingEmbedder(dims * 2))
            opened = DirectSpaces(Server(self.uri), name, Choice(embedders, "test", None))
            self._open[name, dims] = self._stack.enter_context(closing(opened))
        return self._open[name, dims]

    def private(self, name: str) -> PostgresStore:
        return self._stack.enter_context(closing(PostgresStore(Server(self.uri), name)))

    @contextmanager
    def owner(self) -> Iterator[Connection]:
        with closing(Server(self.uri)) as server, server.direct() as connection:
            yield connection

    def text(self, most: int = 40) -> str:
        lines = self.random.randrange(1, 6)
        return "\n".join(
            " ".join(self.random.choices(WORDS, k=self.random.randrange(3, most)))
            for _ in range(lines)
        )

    def write(self, name: str, space: str) -> None:
        """Append, publish or withdraw something."""
        spaces, path = self.spaces(name), f"memory/{self.random.choice('abc')}.md"
        match self.random.randrange(4):
            case 0 | 1:
                self.keys += 1
                spaces.append(space, self.text(), key=f"k{self.keys}")
            case 2:
                text = f"# {self.random.choice(WORDS)}\n\n{self.text()}\n"
                spaces.publish(space, [Published(path, text, "h")])
            case _:
                spaces.withdraw(space, [path])

    def close(self) -> None:
        self._stack.close()


@pytest.fixture
def make_world(postgres_uri: str) -> Iterator[Callable[[int], World]]:
    made: list[World] = []

    def make(seed: int) -> World:
        world = World(postgres_uri, seed)
        made.append(world)
        make_spaces(
            postgres_uri,
            {
                "team": {"ada": True, "ben": True, "cy": world.random.random() < 0.5},
                "news": {"ada": False, "cy": True},
                **{space: dict.fromkeys(OTHERS, True) for space in HIDDEN},
            },
        )
        for _ in range(24):
            world.write("ada" if world.random.random() < 0.5 else "ben", "team")
            world.write("cy", "news")
            world.write(world.random.choice(OTHERS), world.random.choice(HIDDEN))
        world.spaces("ada").embed_due("team")
        for name in ("ada", "eve"):
            put(world.private(name), "memory/p.md", world.text(), world.text())
        return world

    yield make
    for world in made:
        world.close()


def observe(world: World, questions: list[Query]) -> list[str]:
    """Everything that ada can ask, in words."""
    ada, store = world.spaces("ada"), world.private("ada")
    calls: list[Callable[[], object]] = [ada.spaces]
    for query in questions:
        calls += [
            lambda query=query, names=names: _timeless(ada.search(query, names))  # type: ignore[misc]
            for names in ((), ("team",), ("news", "team"), ("ops",), ("team", ABSENT))
        ]
    documents = [*ada.changes("team").documents, *ada.changes("news").documents]
    calls += [
        lambda path=document.path: ada.read(path)  # type: ignore[misc]
        for document in documents
    ]
    for space in ("team", "news", *HIDDEN, ABSENT, "never"):
        path = f"spaces/{space}/ben/memory/a.md"
        calls += [
            lambda space=space: ada.changes(space),  # type: ignore[misc]
            lambda space=space: ada.changes(space, limit=2),  # type: ignore[misc]
            lambda space=space: ada.published(space),  # type: ignore[misc]
            lambda path=path: ada.read(path),  # type: ignore[misc]
        ]
    for space in ("news", *HIDDEN, ABSENT, "never"):
        calls += [
            lambda space=space: ada.append(space, "x", key="x"),  # type: ignore[misc]
            lambda space=space: ada.publish(space, [Published("a.md", "x", "1")]),  # type: ignore[misc]
            lambda space=space: ada.withdraw(space, ["a.md"]),  # type: ignore[misc]
            lambda space=space: ada.embed_due(space),  # type: ignore[misc]
        ]
    calls.append(lambda: _private_answers(store))
    return [_outcome(call) for call in calls]


def _outcome(call: Callable[[], object]) -> str:
    try:
        return repr(call())
    except ClawmarkError as error:
        return f"{type(error).__name__}: {error.message} / {error.hint} / {vars(error)}"


def _timeless(found: Found) -> Found:
    """An answer without how long it took."""
    story = found.explanation
    if story is not None:
        steps = tuple(step._replace(milliseconds=0.0) for step in story.steps)
        story = story._replace(steps=steps)
    return found._replace(milliseconds=0.0, explanation=story)


def _private_answers(store: PostgresStore) -> object:
    with store.snapshot() as snapshot:
        query = any_of(*WORDS)
        return (
            snapshot.search_keywords(query, 50),
            snapshot.count_keywords([query]),
            snapshot.files(),
            snapshot.state(),
        )


def change_all_that_is_hidden(world: World) -> None:
    """Change, add and delete everything that ada does not see."""
    for _ in range(12):
        world.write(world.random.choice(OTHERS), world.random.choice(HIDDEN))
    world.spaces("cy").embed_due("ops")
    world.spaces("dan", 32).append("board", world.text(), key="other-model")
    world.spaces("dan", 32).embed_due("board")
    with world.owner() as connection:
        admin.create_space(connection, ABSENT)
        admin.grant(connection, ABSENT, "eve", may_write=True)
        admin.delete_space(connection, "attic")
        admin.revoke(connection, "ops", "ben")
        admin.grant(connection, "team", "fay")  # a reader of the same space
        _, token = create_token(connection, "eve", permissions=["read"], spaces=[ABSENT])
        revoke_token(connection, token.id)
        create_token(connection, "ada", permissions=["read"])
        assert len(list_tokens(connection)) == 2
    world.spaces("eve").append(ABSENT, world.text(), key="1")
    world.spaces("eve").publish(ABSENT, [Published("memory/a.md", world.text(), "1")])
    eve = world.private("eve")
    put(eve, "memory/p.md", *[" ".join(WORDS)] * 20)
    eve.begin_rebuild({"chunker": "2"})
    eve.set_aside("test")
    with psycopg.connect(world.uri, autocommit=True) as connection:
        connection.execute("ANALYZE")
        connection.execute("VACUUM")


def questions(world: World) -> list[Query]:
    texts = [" ".join(world.random.sample(WORDS, k)) for k in (1, 2, 3, 5)] + ["absentword", ""]
    plain = [Query(text, explain=True) for text in texts]
    return [
        *plain,
        plain[1]._replace(min_score=0.0, max_results=50),
        plain[2]._replace(filters=Filters(path="spaces/team/ben/**"), min_score=0.0),
        plain[2]._replace(filters=Filters(since="2020-01-01"), min_score=0.0),
        plain[3]._replace(hybrid=False, min_score=0.0),
        plain[3]._replace(fusion="weighted", min_score=0.0),
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_hidden_changes_alter_no_answer_score_count_or_error(
    make_world: Callable[[int], World], seed: int
) -> None:
    world = make_world(seed)
    asked = questions(world)
    before = observe(world, asked)
    change_all_that_is_hidden(world)
    assert observe(world, asked) == before


def test_a_visible_change_is_seen(make_world: Callable[[int], World]) -> None:
    """What is recorded is not the same for every world."""
    world = make_world(0)
    asked = questions(world)
    before = observe(world, asked)
    assert sum("Hit(" in one for one in before) > 10
    world.spaces("ben").append("team", "heron otter pier", key="visible")
    after = observe(world, asked)
    differing = [one for one, other in zip(before, after, strict=False) if one != other]
    assert len(differing) > 10
