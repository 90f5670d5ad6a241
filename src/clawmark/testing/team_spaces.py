"""The contract of every `TeamSpaces`.

`team_spaces_contract` is a sequence of checks, for the tests of any implementation. Before each,
its test makes the spaces and members in `MEMBERS` and nothing else. A check takes a function that
opens the spaces of a member, and closes what it has opened:

    @pytest.mark.parametrize("check", team_spaces_contract)
    def test_contract(check, database):
        make_spaces(database, MEMBERS)
        check(lambda name: DirectSpaces(Server(database), name))
"""

from __future__ import annotations

import hashlib
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from clawmark.backends.team.base import Changes, Published, TeamSpaces
from clawmark.model.errors import ClawmarkError, SpaceDenied, SpaceInputError
from clawmark.model.values import Found, Query

OpenAs: TypeAlias = Callable[[str], TeamSpaces]
MEMBERS = {"team": {"ada": True, "ben": False, "cy": True}, "ops": {"cy": True}}
"""The spaces of the contract: which members each has, and whether they may write."""
PLAN = "memory/team/plan.md"
TEXT = "# Plan\n\nThe heron nests by the old pier.\nPostgreSQL keeps the invoices.\n"
QUESTION = "where does the heron nest?"
THREADS, APPENDS = 4, 6


def lists_the_spaces_of_a_member(open_as: OpenAs) -> None:
    with _opened(open_as, "ada") as ada, _opened(open_as, "cy") as cy:
        assert [(one.name, one.may_write) for one in ada.spaces()] == [("team", True)]
        assert [one.name for one in cy.spaces()] == ["ops", "team"]
        cy.publish("team", [_file(PLAN, TEXT)])
        cy.append("team", "The ferry is late.", key=_key())
        (team,) = ada.spaces()
        assert (team.documents, team.entries) == (1, 1)
    with _opened(open_as, "ben") as ben:
        assert [(one.name, one.may_write) for one in ben.spaces()] == [("team", False)]


def a_space_that_may_not_be_seen_is_like_one_that_does_not_exist(open_as: OpenAs) -> None:
    with _opened(open_as, "ada") as ada, _opened(open_as, "cy") as cy:
        cy.publish("ops", [_file(PLAN, TEXT)])
        cy.append("ops", "The heron is a secret.", key=_key())
        calls: list[Callable[[str], object]] = [
            lambda space: ada.search(Query(QUESTION), [space]),
            lambda space: ada.search(Query(QUESTION), ["team", space]),
            lambda space: ada.read(f"spaces/{space}/cy/{PLAN}"),
            lambda space: ada.published(space),
            lambda space: ada.changes(space),
            lambda space: ada.append(space, "x", key="1"),
            lambda space: ada.publish(space, [_file(PLAN, TEXT)]),
            lambda space: ada.withdraw(space, [PLAN]),
        ]
        for call in calls:
            hidden, absent = (_denied(call, space) for space in ("ops", "oops"))
            assert hidden.space == "ops"
            assert [text.replace("oops", "ops") for text in (absent.message, absent.hint)] == [
                hidden.message,
                hidden.hint,
            ]
        assert not ada.search(_query(QUESTION)).hits


def a_reader_may_not_write(open_as: OpenAs) -> None:
    with _opened(open_as, "ben") as ben:
        absent = _denied(lambda space: ben.append(space, "x", key="1"), "oops")
        for call in (
            lambda space: ben.append(space, "x", key="1"),
            lambda space: ben.publish(space, [_file(PLAN, TEXT)]),
            lambda space: ben.withdraw(space, [PLAN]),
        ):
            refused = _denied(call, "team")
            assert refused.message.replace("team", "oops") != absent.message
        assert ben.changes("team").documents == ()


def finds_what_was_published_with_space_and_author(open_as: OpenAs) -> None:
    with _opened(open_as, "ada") as ada, _opened(open_as, "ben") as ben:
        ada.publish("team", [_file(PLAN, TEXT)])
        for found in (ben.search(_query(QUESTION)), ben.search(_query(QUESTION), ["team"])):
            hit = found.hits[0]
            assert (hit.path, hit.space, hit.author) == (f"spaces/team/ada/{PLAN}", "team", "ada")
            assert "heron" in hit.snippet
            cited = ben.read(hit.citation)
            assert "heron" in cited.text
            assert cited.path == hit.path
        scores = [hit.score for hit in ben.search(_query("heron invoices")).hits]
        assert scores == sorted(scores, reverse=True)


def searches_several_spaces_at_once(open_as: OpenAs) -> None:
    with _opened(open_as, "cy") as cy:
        cy.publish("team", [_file(PLAN, TEXT)])
        cy.publish("ops", [_file("memory/ops.md", "The heron nest is on the roof.\n")])
        assert _spaces(cy.search(_query(QUESTION))) == {"ops", "team"}
        assert _spaces(cy.search(_query(QUESTION), ["ops"])) == {"ops"}
        assert _spaces(cy.search(_query(QUESTION), ["team", "ops", "team"])) == {"ops", "team"}
        assert len(cy.search(_query(QUESTION)._replace(max_results=1)).hits) == 1


def an_empty_answer_says_why(open_as: OpenAs) -> None:
    with _opened(open_as, "ada") as ada:
        for text in (QUESTION, "", " \n ", "***", "a\x00b", "\ud800"):
            found = ada.search(_query(text))
            assert not found.hits
            assert found.nothing is not None
        ada.publish("team", [_file(PLAN, TEXT)])
        found = ada.search(Query("xyzzy", min_score=0.9))
        assert not found.hits
        assert found.nothing is not None


def reads_lines_of_a_document(open_as: OpenAs) -> None:
    path = f"spaces/team/ada/{PLAN}"
    with _opened(open_as, "ada") as ada, _opened(open_as, "ben") as ben:
        ada.publish("team", [_file(PLAN, TEXT)])
        whole = ben.read(path)
        assert (whole.text, whole.total_lines, whole.missing) == (TEXT.rstrip("\n"), 4, False)
        line = TEXT.splitlines()[2]
        assert ben.read(path, 3, 1).text == ben.read(f"{path}#L3").text == line
        cut = ben.read(path, 1, 4, max_chars=8)
        assert cut.truncated
        assert len(cut.text) <= 8
        for absent in ("ada/memory/x.md", "ben/memory/x.md", "2026-01-01.md", "2026-99-99.md", "x"):
            assert ben.read(f"spaces/team/{absent}").missing
        for other in ("memory/team/plan.md", "spaces/team", "spaces", ""):
            _refused(lambda other=other: ben.read(other))  # type: ignore[misc]


def publishes_all_files_or_none(open_as: OpenAs) -> None:
    with _opened(open_as, "ada") as ada:
        for bad in ("../x.md", "/x.md", "a//b.md", "x.txt", "a\\b.md", "", "a\x00.md", "a\nb.md"):
            files = [_file(PLAN, TEXT), _file(bad, TEXT), _file("memory/b.md", TEXT)]
            _refused(lambda files=files: ada.publish("team", files))  # type: ignore[misc]
        assert ada.published("team") == {}
        assert ada.changes("team").documents == ()
        assert not ada.search(_query(QUESTION)).hits
        ada.publish("team", [])
        ada.publish("team", [_file(PLAN, TEXT), _file("memory/b.md", "b")])
        assert ada.published("team") == {PLAN: _hash(TEXT), "memory/b.md": _hash("b")}


def replaces_and_withdraws_files(open_as: OpenAs) -> None:
    with _opened(open_as, "ada") as ada, _opened(open_as, "cy") as cy:
        ada.publish("team", [_file(PLAN, TEXT)])
        cy.publish("team", [_file(PLAN, "The osprey is cy's.")])
        ada.publish("team", [_file(PLAN, "The otter came later.")])
        assert not [hit for hit in ada.search(_query("invoices")).hits if "invoices" in hit.snippet]
        assert _has(cy.search(_query("otter")), f"spaces/team/ada/{PLAN}")
        assert cy.published("team") == {PLAN: _hash("The osprey is cy's.")}
        ada.withdraw("team", [PLAN, "memory/absent.md", "../x"])
        assert ada.published("team") == {}
        assert ada.read(f"spaces/team/ada/{PLAN}").missing
        assert not _has(cy.search(_query("otter")), f"spaces/team/ada/{PLAN}")
        assert _has(ada.search(_query("osprey")), f"spaces/team/cy/{PLAN}")
        ada.publish("team", [_file(PLAN, TEXT)])
        assert _has(cy.search(_query(QUESTION)), f"spaces/team/ada/{PLAN}")


def appends_entries_that_can_be_found_and_read(open_as: OpenAs) -> None:
    with _opened(open_as, "ada") as ada, _opened(open_as, "cy") as cy:
        first = ada.append("team", "The heron nests by the pier.", key=_key())
        second = cy.append("team", "- Two lines:\nthe second one", key=_key())
        assert (first.author, second.author) == ("ada", "cy")
        assert first.path == f"spaces/team/{first.at[:10]}.md"
        assert "ada: The heron nests by the pier." in cy.read(first.path, first.start_line, 1).text
        count = second.end_line - second.start_line + 1
        lines = ada.read(second.path, second.start_line, count).text.split("\n")
        assert lines[0].endswith(" cy: Two lines:")
        assert lines[1:] == ["  the second one"]
        hit = cy.search(_query(QUESTION)).hits[0]
        assert (hit.path, hit.space, hit.author) == (first.path, "team", "")
        assert "heron" in hit.snippet


def an_append_with_the_same_key_stores_nothing_twice(open_as: OpenAs) -> None:
    with _opened(open_as, "ada") as ada, _opened(open_as, "cy") as cy:
        first = ada.append("team", "The heron nests.", key="k1")
        other = cy.append("team", "The heron nests.", key="k1")
        again = ada.append("team", "The heron nests.", key="k1")
        assert again == first._replace(is_repeated=True)
        assert not first.is_repeated
        assert not other.is_repeated
        assert cy.spaces()[1].entries == 2
        _refused(lambda: ada.append("team", "Another text.", key="k1"))
        assert cy.spaces()[1].entries == 2


def an_entry_cannot_pass_for_another(open_as: OpenAs) -> None:
    with _opened(open_as, "ada") as ada:
        texts = [
            "one\n- 10:00 cy: forged",
            "one\r- 10:00 cy: forged",
            "a\u2028# b\x0b- c",
            "x\x00y",
        ]
        for text in texts:
            stored = ada.append("team", text, key=_key())
        log = ada.read(stored.path, 1, 100)
        starts = [line for line in log.text.split("\n")[2:] if not line.startswith("  ")]
        assert len([line for line in starts if line]) == len(texts)
        assert all(" ada: " in line for line in starts if line)


def refuses_an_append_that_cannot_be_stored(open_as: OpenAs) -> None:
    with _opened(open_as, "ada") as ada:
        for text in ("", " \n ", "-", "\x00", "x" * 1_000_000):
            _refused(lambda text=text: ada.append("team", text, key=_key()))  # type: ignore[misc]
        for key in ("", " ", "a b", "é", "x" * 1_000, "a\x00"):
            _refused(lambda key=key: ada.append("team", "x", key=key))  # type: ignore[misc]
        assert ada.spaces()[0].entries == 0


def changes_are_exact_and_can_be_continued(open_as: OpenAs) -> None:
    with _opened(open_as, "ada") as ada, _opened(open_as, "ben") as ben:
        start = ben.changes("team")
        assert (start.documents, start.is_complete) == ((), True)
        ada.publish("team", [_file(f"memory/{name}.md", name) for name in "abcde"])
        entry = ada.append("team", "An entry.", key=_key())
        whole = ben.changes("team", start.version)
        assert whole.is_complete
        assert {document.path for document in whole.documents} == {
            entry.path,
            *(f"spaces/team/ada/memory/{name}.md" for name in "abcde"),
        }
        pages, version = list[Changes](), start.version
        while not pages or not pages[-1].is_complete:
            pages.append(ben.changes("team", version, limit=2))
            version = pages[-1].version
        assert [one for page in pages for one in page.documents] == list(whole.documents)
        assert version == whole.version
        assert ben.changes("team", version).documents == ()
        ada.publish("team", [_file("memory/a.md", "a"), _file("memory/b.md", "new")])
        ada.withdraw("team", ["memory/c.md"])
        later = ben.changes("team", version)
        assert [(one.path[-4:], one.text, one.hash) for one in later.documents] == [
            ("b.md", "new", _hash("new")),
            ("c.md", None, ""),
        ]
        versions = [one.version for one in later.documents]
        assert version < versions[0] < versions[1] <= later.version


def several_threads_append_and_search_at_once(open_as: OpenAs) -> None:
    with _opened(open_as, "ada") as ada, _opened(open_as, "cy") as cy:
        stored, failures = list[tuple[str, int]](), list[ClawmarkError]()

        def work(spaces: TeamSpaces, worker: int) -> None:
            try:
                for number in range(APPENDS):
                    text = f"Note {worker}-{number} about the heron."
                    done = spaces.append("team", text, key=f"{worker}-{number}")
                    stored.append((text, done.start_line))
                    assert spaces.search(_query("heron")).hits
            except ClawmarkError as error:
                failures.append(error)

        threads = [
            threading.Thread(target=work, args=((ada, cy)[worker % 2], worker))
            for worker in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        days = [one for one in ada.changes("team").documents if not one.author]
        lines = [line for day in days for line in (day.text or "").split("\n")]
        for text, _ in stored:
            assert len([line for line in lines if line.endswith(f": {text}")]) == 1, text
        if len(days) == 1:  # not over midnight
            assert all(lines[number - 1].endswith(text) for text, number in stored)
        assert len(stored) == THREADS * APPENDS


def stores_odd_text_readably(open_as: OpenAs) -> None:
    odd = "a\x00b \ud800 \U0001f600 \r\nlast\n"
    with _opened(open_as, "ada") as ada:
        ada.publish("team", [_file(PLAN, odd), _file("memory/empty.md", "")])
        assert "last" in ada.read(f"spaces/team/ada/{PLAN}").text
        empty = ada.read("spaces/team/ada/memory/empty.md")
        assert (empty.text, empty.missing) == ("", False)
        ada.append("team", odd, key=_key())
        assert len(ada.changes("team").documents) == 3


def closes_twice(open_as: OpenAs) -> None:
    spaces = open_as("ada")
    spaces.spaces()
    spaces.close()
    spaces.close()


team_spaces_contract: tuple[Callable[[OpenAs], None], ...] = (
    lists_the_spaces_of_a_member,
    a_space_that_may_not_be_seen_is_like_one_that_does_not_exist,
    a_reader_may_not_write,
    finds_what_was_published_with_space_and_author,
    searches_several_spaces_at_once,
    an_empty_answer_says_why,
    reads_lines_of_a_document,
    publishes_all_files_or_none,
    replaces_and_withdraws_files,
    appends_entries_that_can_be_found_and_read,
    an_append_with_the_same_key_stores_nothing_twice,
    an_entry_cannot_pass_for_another,
    refuses_an_append_that_cannot_be_stored,
    changes_are_exact_and_can_be_continued,
    several_threads_append_and_search_at_once,
    stores_odd_text_readably,
    closes_twice,
)


@contextmanager
def _opened(open_as: OpenAs, name: str) -> Iterator[TeamSpaces]:
    spaces = open_as(name)
    try:
        yield spaces
    finally:
        spaces.close()


def _denied(call: Callable[[str], object], space: str) -> SpaceDenied:
    try:
        call(space)
    except SpaceDenied as error:
        assert error.hint, "a refusal says what to do next"
        return error
    raise AssertionError(f"the space {space} was not denied")


def _refused(call: Callable[[], object]) -> None:
    try:
        call()
    except SpaceInputError as error:
        assert error.hint, "a refusal says what to do next"
        return
    raise AssertionError("invalid input was accepted")


def _file(path: str, text: str) -> Published:
    return Published(path, text, _hash(text))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _key() -> str:
    return str(uuid.uuid4())


def _query(text: str) -> Query:
    return Query(text=text, min_score=0.0)


def _has(found: Found, path: str) -> bool:
    return path in [hit.path for hit in found.hits]


def _spaces(found: Found) -> set[str]:
    return {hit.space for hit in found.hits}
