"""The spaces in PostgreSQL: the log, times, vectors of slow models, and trouble."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from team_scene import FastEmbedder, make_spaces, open_direct, passages_of

from clawmark.backends.team import direct, sessions
from clawmark.backends.team.base import Appended, Published
from clawmark.backends.team.direct import DirectSpaces
from clawmark.embed.base import Choice, Traits
from clawmark.model.errors import SpaceDenied, SpacesUnavailable
from clawmark.model.values import Query, Vector
from clawmark.store.postgres.servers import Server
from clawmark.store.postgres.team import admin
from clawmark.testing import HashingEmbedder, UnreliableEmbedder

NOON = datetime(2026, 11, 18, 12, 5, tzinfo=UTC)
FILE = Published("memory/team/plan.md", "The heron nests by the pier.\n", "1")


@pytest.fixture
def uri(postgres_uri: str) -> str:
    make_spaces(postgres_uri)
    return postgres_uri


def with_embedders(uri: str, *embedders: HashingEmbedder, name: str = "ada") -> DirectSpaces:
    return DirectSpaces(Server(uri), name, Choice(embedders, "test", None))


def test_a_search_of_an_empty_space_says_how_to_fill_a_space(uri: str) -> None:
    with closing(open_direct(uri, "ada")) as ada:
        nothing = ada.search(Query("heron")).nothing
    assert nothing is not None
    assert nothing.code == "empty-index"
    assert "append an entry" in nothing.message


def test_a_passage_of_a_log_names_its_author_if_there_is_only_one(uri: str) -> None:
    long = "\n".join(["Notes of the week.", *["The rain falls on the hills again."] * 200])
    with closing(open_direct(uri, "ada")) as ada, closing(open_direct(uri, "cy")) as cy:
        ada.append("team", f"{long}\nThe zebra payment is approved.\n{long}", key="1")
        [hit] = ada.search(Query("zebra payment", max_results=1)).hits
        assert (hit.author, hit.space) == ("ada", "team")
        assert "ada" not in hit.snippet
        ada.append("team", "The otter swims.", key="2")
        cy.append("team", "The otter sleeps.", key="3")
        [both] = ada.search(Query("otter", max_results=1)).hits
        assert both.author == ""


def test_the_log_of_a_day_has_a_heading_and_one_item_per_entry(uri: str) -> None:
    now = [NOON]
    with (
        closing(open_direct(uri, "ada", lambda: now[0])) as ada,
        closing(open_direct(uri, "cy", lambda: now[0])) as cy,
    ):
        ada.append("team", "We chose PostgreSQL.\n\nIt is fast.", key="1")
        now[0] += timedelta(minutes=3)
        done = cy.append("team", "* Agreed.", key="2")
        assert done == Appended(
            path="spaces/team/2026-11-18.md",
            start_line=6,
            end_line=6,
            author="cy",
            at="2026-11-18T12:08:00Z",
        )
        assert ada.read(done.path).text == (
            "# 2026-11-18\n\n"
            "- 12:05 ada: We chose PostgreSQL.\n\n  It is fast.\n"
            "- 12:08 cy: Agreed."
        )


def test_an_entry_is_never_before_the_one_that_it_follows(uri: str) -> None:
    now = [NOON.replace(hour=23, minute=59)]
    with closing(open_direct(uri, "ada", lambda: now[0])) as ada:
        ada.append("team", "Late.", key="1")
        now[0] += timedelta(minutes=2)
        later = ada.append("team", "After midnight.", key="2")
        now[0] -= timedelta(days=2)  # a clock that was set back
        last = ada.append("team", "Still after midnight.", key="3")
        assert (later.path[-13:], later.start_line) == ("2026-11-19.md", 3)
        assert (last.path, last.start_line, last.at) == (later.path, 4, later.at)
        logs = [document.path[-13:] for document in ada.changes("team").documents]
        assert logs == ["2026-11-18.md", "2026-11-19.md"]


def test_without_a_clock_entries_have_the_time_of_the_database(uri: str) -> None:
    with closing(open_direct(uri, "ada")) as ada:
        with psycopg.connect(uri) as connection:
            row = connection.execute("SELECT clock_timestamp()").fetchone()
        assert row is not None
        done = datetime.fromisoformat(ada.append("team", "Now.", key="1").at)
        assert done >= row[0].replace(microsecond=0)


def test_a_growing_log_is_indexed_as_if_it_were_indexed_at_once(uri: str) -> None:
    chance = random.Random(3)
    words = [f"word{number}" for number in range(300)]
    with closing(open_direct(uri, "ada", lambda: NOON)) as ada:
        for number in range(30):
            lines = [
                " ".join(chance.choices(words, k=chance.choice([3, 20, 90, 700])))
                for _ in range(chance.choice([1, 1, 3]))
            ]
            done = ada.append("team", "\n".join(lines), key=str(number))
            if number % 3:
                continue
            (document,) = ada.changes("team").documents
            with ada._sessions.store("team") as store, store.snapshot() as snapshot:
                indexed = snapshot.chunks_of(done.path)
                (space,) = snapshot.spaces()
                assert (space.ready, snapshot.count_due(space.id)) == (True, 0)
                assert snapshot.integrity_problems() == []
                assert snapshot.files()[done.path].chunks == len(indexed)
            assert [(one.start_line, one.end_line, one.text, one.heading) for one in indexed] == [
                (one.start_line, one.end_line, one.text, one.heading)
                for one in passages_of(document)
            ]
        assert len(indexed) > 10


def test_vectors_of_a_slow_model_follow_and_what_is_done_is_kept(uri: str) -> None:
    slow = HashingEmbedder(32)
    with (
        closing(with_embedders(uri, FastEmbedder(), slow)) as ada,
        closing(with_embedders(uri, FastEmbedder(), slow, name="ben")) as ben,
    ):
        files = [FILE._replace(path=f"memory/{one}.md", text=f"{one} heron") for one in range(40)]
        ada.publish("team", files)
        assert ben.search(Query("heron")).due_vectors == 40
        due = ada.embed_due("team", out_of_time=lambda: True)
        assert 0 < due.vectors < 40
        assert ada.embed_due("team") == (0, None)
        found = ben.search(Query("heron", min_score=0.0))
        assert (found.due_vectors, found.provider, found.mode) == (0, "testing", "hybrid")
        with pytest.raises(SpaceDenied):
            ben.embed_due("team")


def test_a_failing_embedder_fails_no_write(uri: str) -> None:
    class Broken(UnreliableEmbedder):
        @property
        def traits(self) -> Traits:
            return super().traits._replace(instant=True)

    broken = Broken()
    broken.fault = "down"
    with closing(with_embedders(uri, broken)) as ada:
        ada.publish("team", [FILE])
        ada.append("team", "The otter came.", key="1")
        found = ada.search(Query("otter"))
        assert found.hits
        assert found.due_vectors == 2
        due = ada.embed_due("team")
        assert due.vectors == 2
        assert due.degraded is not None
        broken.fault = ""
        assert ada.embed_due("team") == (0, None)
        assert ada.search(Query("otter")).mode == "hybrid"


def test_no_transaction_is_open_while_a_service_embeds_the_query(uri: str) -> None:
    seen: list[int] = []

    class Service(HashingEmbedder):
        @property
        def traits(self) -> Traits:
            return super().traits._replace(remote=True)

        def embed_query(self, text: str) -> Vector:
            with psycopg.connect(uri) as connection:
                row = connection.execute(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                    "AND state LIKE 'idle in transaction%' AND pid <> pg_backend_pid()"
                ).fetchone()
            seen.append(0 if row is None else row[0])
            return super().embed_query(text)

        def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
            return [HashingEmbedder.embed_query(self, text) for text in texts]

    with closing(with_embedders(uri, Service(), name="cy")) as cy:
        for space in ("ops", "team"):
            cy.publish(space, [FILE])
            cy.embed_due(space)
        found = cy.search(Query("heron nest", min_score=0.0))
        assert len({hit.space for hit in found.hits}) == 2
        assert seen == [0], "one call for all spaces"


def test_a_space_that_is_made_again_continues_with_later_versions(uri: str) -> None:
    with closing(open_direct(uri, "ada")) as ada, closing(Server(uri)) as server:
        ada.publish("team", [FILE])
        before = ada.changes("team").version
        with server.direct() as connection:
            admin.delete_space(connection, "team")
            admin.create_space(connection, "team")
            admin.grant(connection, "team", "ada", may_write=True)
        assert ada.changes("team").documents == ()
        ada.publish("team", [FILE])
        assert len(ada.changes("team", before).documents) == 1


def test_an_answer_of_changes_is_limited_in_size(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "CHANGED_CHARS", 60)
    with closing(open_direct(uri, "ada")) as ada:
        ada.publish("team", [FILE._replace(path=f"{name}.md") for name in "abc"])
        first = ada.changes("team")
        assert (len(first.documents), first.is_complete) == (2, False)
        rest = ada.changes("team", first.version)
        assert (len(rest.documents), rest.is_complete) == (1, True)
        large = FILE._replace(path="d.md", text="x" * 100)
        ada.publish("team", [large])
        assert len(ada.changes("team", rest.version).documents) == 1


def test_explanations_of_several_spaces_are_joined(uri: str) -> None:
    with closing(open_direct(uri, "cy")) as cy:
        for space in ("team", "ops"):
            cy.publish(space, [FILE])
        found = cy.search(Query("heron", explain=True, max_results=1, min_score=0.0))
        assert found.explanation is not None
        assert found.explanation.passages == 2
        outcomes = sorted(one.outcome for one in found.explanation.candidates)
        assert outcomes == ["better ones in other spaces", "hit 1"]
        assert {step.summary.partition(":")[0] for step in found.explanation.steps} == {
            "ops",
            "team",
        }


def test_a_caller_without_spaces_gets_an_empty_answer(uri: str) -> None:
    for name in ("nemo", "", "Not A Name", "a\x00b", "\ud800"):
        with closing(open_direct(uri, name)) as spaces:
            assert spaces.spaces() == ()
            found = spaces.search(Query("heron"))
            assert found.nothing is not None
            assert found.nothing.code == "not-allowed"


def test_a_write_that_waits_too_long_for_another_is_refused(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "LOCK_SECONDS", 0.05)
    with closing(open_direct(uri, "ada")) as ada, psycopg.connect(uri) as other:
        other.execute("SELECT * FROM clawmark.indexes FOR UPDATE")
        with pytest.raises(SpacesUnavailable, match="written by another process") as raised:
            ada.append("team", "x", key="1")
        assert raised.value.hint
        assert ada.search(Query("x")).nothing is not None, "readers do not wait"
        other.rollback()
        assert not ada.append("team", "x", key="1").is_repeated


def test_a_database_that_cannot_be_reached_is_unavailable() -> None:
    server = Server("postgresql://ada:hunter2@127.0.0.1:1/memory", setting="team.uri")
    with closing(DirectSpaces(server, "ada")) as ada:
        with pytest.raises(SpacesUnavailable, match="cannot be reached") as raised:
            ada.spaces()
        assert "team.uri" in raised.value.hint
        assert "hunter2" not in raised.value.message + raised.value.hint


def test_lost_connections_are_replaced_and_a_repeated_append_is_recognised(uri: str) -> None:
    with closing(open_direct(uri, "ada")) as ada:
        first = ada.append("team", "The heron.", key="1")
        with psycopg.connect(uri) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        assert ada.append("team", "The heron.", key="1") == first._replace(is_repeated=True)
