"""`clawmark space` and `clawmark token` against a real database, in processes of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest
from commands import Place, Ran, new_place
from postgres import in_database
from team_scene import FastEmbedder

from clawmark.backends.team.access import Access
from clawmark.backends.team.base import Published
from clawmark.backends.team.direct import DirectSpaces
from clawmark.embed.base import Choice
from clawmark.model.errors import SpaceDenied
from clawmark.model.values import Query
from clawmark.store.postgres.servers import Server
from clawmark.store.postgres.team.access_tokens import use_token


@pytest.fixture
def place(tmp_path: Path, postgres_uri: str) -> Place:
    made = new_place(tmp_path)
    configure(made, postgres_uri)
    return made


def configure(place: Place, uri: str) -> None:
    place.state.mkdir(exist_ok=True)
    (place.state / "clawmark.json").write_text(
        f'{{ memorySearch: {{ store: {{ uri: "{uri}" }} }} }}'
    )


def done(ran: Ran) -> Any:
    assert ran.code == 0, ran.err
    return ran.json()


def failed(ran: Ran, code: int, text: str) -> None:
    assert (ran.code, "Traceback" in ran.err) == (code, False), ran.err
    assert text in ran.err
    assert ran.out == ""


def test_a_space_is_made_granted_listed_revoked_and_deleted(
    place: Place, postgres_uri: str
) -> None:
    assert "space create" in place.run("space").err
    assert done(place.run("space", "create", "team", "--json")) == {"created": "team"}
    granted = done(place.run("space", "grant", "team", "ada", "--write", "--json"))
    member = {"login": "postgres", "name": "ada", "author": "ada", "mayWrite": True}
    assert granted == {"space": "team", "member": member, "isNew": True}
    assert "may read team" in place.run("space", "grant", "team", "ben").out
    ada = DirectSpaces(Server(postgres_uri), "ada")
    ada.append("team", "The heron nests.", key="1")
    (space,) = done(place.run("space", "list", "--json"))["spaces"]
    assert (space["name"], space["entries"], len(space["members"])) == ("team", 1, 2)
    assert space["members"][0] == member
    shown = place.run("space").out
    assert "ada" in shown
    assert "read, write" in shown
    assert place.run("space", "revoke", "team", "ada").code == 0
    with pytest.raises(SpaceDenied):
        ada.append("team", "More.", key="2")
    failed(place.run("space", "delete", "team"), 2, "has to be confirmed")
    assert place.run("space", "delete", "team", "--json").json()["error"]["hint"] == "Add --yes."
    assert done(place.run("space", "delete", "team", "--yes", "--json")) == {"deleted": "team"}
    assert done(place.run("space", "--json")) == {"spaces": []}
    with psycopg.connect(postgres_uri) as connection:
        assert connection.execute("SELECT count(*) FROM clawmark.entries").fetchone() == (0,)
    ada.close()


def test_a_member_may_be_granted_more_and_less(place: Place) -> None:
    place.run("space", "create", "team")
    place.run("space", "grant", "team", "ada", "--author", "ada.l")
    again = done(place.run("space", "grant", "team", "ada", "--write", "--json"))
    assert (again["isNew"], again["member"]["author"]) == (False, "ada.l")
    less = done(place.run("space", "grant", "team", "ada", "--json"))
    assert less["member"]["mayWrite"] is False


def test_what_a_revoked_member_has_published_can_be_withdrawn(
    place: Place, postgres_uri: str
) -> None:
    place.run("space", "create", "team")
    for name in ("ada", "ben"):
        place.run("space", "grant", "team", name, "--write")
    ada, ben = (DirectSpaces(Server(postgres_uri), name) for name in ("ada", "ben"))
    ada.publish("team", [Published("memory/a.md", "The heron nests.", "1")])
    before = ben.changes("team").version
    gone = done(place.run("space", "revoke", "team", "ada", "--withdraw", "--json"))
    assert gone == {"revoked": "ada", "space": "team", "withdrawn": 1}
    (change,) = ben.changes("team", before).documents
    assert (change.path, change.text) == ("spaces/team/ada/memory/a.md", None)
    assert not ben.search(Query("heron", min_score=0.0)).hits
    with ben._sessions.store("team") as store, store.snapshot() as snapshot:
        assert snapshot.integrity_problems() == []
    # The name stays with the one who has used it.
    failed(place.run("space", "grant", "team", "cy", "--author", "ada"), 2, "has written, as ada")
    ada.close()
    ben.close()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["create"], "Use `clawmark space create SPACE`"),
        (["create", "Team"], "'Team' cannot be the name of a space"),
        (["create", "x" * 64], "cannot be the name of a space"),
        (["create", "a\nb"], "cannot be the name of a space"),
        (["grant", "team"], "Use `clawmark space grant SPACE NAME`"),
        (["grant", "absent", "ada"], "There is no space absent"),
        (["grant", "team", "Ada"], "'Ada' cannot be the name of an author"),
        (["grant", "team", "ada", "--author", "2026-01-01.md"], "cannot be the name of an author"),
        (["grant", "team", "ada", "--login", "absent"], "has no login 'absent'"),
        (["grant", "team", "ada", "--login", ""], "must not be empty"),
        (["grant", "team", "ada", "--yes"], "--yes has no meaning"),
        (["revoke", "team", "ada"], "'ada' is not a member of the space team"),
        (["delete", "absent", "--yes"], "There is no space absent"),
        (["list", "--write"], "--write has no meaning"),
        (["frobnicate"], "invalid choice"),
        (["create", "team"], "The space team exists already"),
    ],
)
def test_bad_words_get_one_sentence(place: Place, words: list[str], message: str) -> None:
    place.run("space", "create", "team")
    ran = place.run("space", *words)
    failed(ran, 2, message)


def test_a_token_is_printed_once_and_stands_for_its_member(place: Place, postgres_uri: str) -> None:
    for space in ("team", "ops"):
        place.run("space", "create", space)
        place.run("space", "grant", space, "ada", "--write")
    ran = place.run("token", "create", "ada", "--label", "laptop")
    text = ran.out.strip()
    assert (len(text), text[:4]) == (47, "cmk_")
    assert text not in ran.err
    made = done(
        place.run(
            "token", "create", "ada", "--permission", "read", "--space", "team", "--days", "7",
            "--json",
        )
    )  # fmt: skip
    assert made["info"]["permissions"] == ["read"]
    listed = place.run("token", "list", "--json")
    assert [one["id"] for one in done(listed)["tokens"]] == [1, 2]
    assert text not in listed.out + place.run("token").out
    logs = "".join(file.read_text(errors="replace") for file in place.state.rglob("*.log"))
    assert "cmk_" not in logs
    server = Server(postgres_uri)
    with server.direct() as connection:
        assert text not in str(connection.execute("SELECT * FROM clawmark.tokens").fetchall())
        used = use_token(connection, made["token"])
        assert used is not None
        assert (used.name, used.spaces) == ("ada", frozenset({"team"}))
        assert use_token(connection, text) is not None
        assert use_token(connection, text[:-1]) is None
        assert use_token(connection, "cmk_\udcff") is None
        assert place.run("token", "revoke", "1").code == 0
        assert use_token(connection, text) is None
        connection.execute("UPDATE clawmark.tokens SET expires = now() WHERE id = 2")
        assert use_token(connection, made["token"]) is None
    ada = DirectSpaces(server, used.name, access=Access(used.permissions, used.spaces))
    assert [(one.name, one.may_write) for one in ada.spaces()] == [("team", False)]
    with pytest.raises(SpaceDenied, match="permission to append"):
        ada.append("team", "x", key="1")
    with pytest.raises(SpaceDenied, match="There is no space 'ops'"):
        ada.changes("ops")
    ada.close()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["create"], "Use `clawmark token create NAME`"),
        (["create", "nemo"], "There is no member called 'nemo'"),
        (["create", "ada", "--space", "absent"], "There is no space absent"),
        (["create", "ada", "--permission", "all"], "invalid choice"),
        (["create", "ada", "--days", "0"], "must be a whole number"),
        (["revoke", "99"], "There is no token 99"),
        (["revoke", "x"], "Use `clawmark token revoke ID`"),
        (["list", "--label", "x"], "--label has no meaning"),
    ],
)
def test_bad_words_about_tokens_get_one_sentence(
    place: Place, words: list[str], message: str
) -> None:
    place.run("space", "create", "team")
    place.run("space", "grant", "team", "ada")
    failed(place.run("token", *words), 2, message)


def test_a_login_that_does_not_own_the_tables_is_refused(place: Place, postgres_uri: str) -> None:
    login = "guest_" + postgres_uri.partition("test_")[2][:12]
    with psycopg.connect(postgres_uri) as connection:
        connection.execute(f"CREATE ROLE {login} LOGIN")
        connection.execute(f"GRANT clawmark_service TO {login}")
    try:
        place.run("space", "create", "team")
        assert place.run("space", "grant", "team", "gus", "--login", login).code == 0
        assert place.run("space", "grant", "team", "pat", "--write").code == 0
        pat = DirectSpaces(Server(postgres_uri), "pat", Choice((FastEmbedder(),), "test", None))
        pat.append("team", "The heron nests by the pier.", key="1")
        pat.close()
        configure(place, in_database(postgres_uri, user=login))
        for words in (["space", "create", "x"], ["space"], ["token", "create", "gus"], ["token"]):
            failed(place.run(*words), 4, "does not own the tables")
        for action in ("init", "upgrade", "status"):
            assert place.run("db", action).code == 0, "nothing is missing, so nothing is to be done"
        gus = DirectSpaces(Server(in_database(postgres_uri, user=login)), "gus")
        assert [one.name for one in gus.spaces()] == ["team"]
        gus.close()
        other = DirectSpaces(Server(postgres_uri), "gus")  # the same name of another login
        assert other.spaces() == ()
        other.close()
    finally:
        with psycopg.connect(postgres_uri) as connection:
            connection.execute("DELETE FROM clawmark.callers WHERE login = %s", (login,))
            connection.execute(f"DROP ROLE {login}")


def test_without_a_database_the_setting_is_named(tmp_path: Path) -> None:
    place = new_place(tmp_path)
    failed(place.run("space", "list"), 2, "memorySearch.store.uri is not set")
    failed(place.run("token", "list"), 2, "memorySearch.store.uri is not set")
