"""Two machines share a space in a real PostgreSQL: publish, search, read, append and pull."""

from __future__ import annotations

from pathlib import Path

import pytest
from team_machines import Machine, make_machine
from team_scene import make_spaces

from clawmark import Memory
from clawmark.model.errors import (
    ConfigError,
    FilterError,
    PathDenied,
    SpaceDenied,
    SpacesUnavailable,
)
from clawmark.model.values import Found

MEMBERS = {
    "team": {"ada": True, "eve": True, "bo": False},
    "ops": {"eve": True},
}
PLAN = "# Plan\n\nThe heron project moves to the new pier in March.\n"
GONE = "postgresql://nobody@127.0.0.1:1/memory"


@pytest.fixture
def uri(postgres_uri: str) -> str:
    make_spaces(postgres_uri, MEMBERS)
    return postgres_uri


@pytest.fixture
def ada(tmp_path: Path, uri: str) -> Machine:
    return make_machine(tmp_path, "ada", uri)


@pytest.fixture
def eve(tmp_path: Path, uri: str) -> Machine:
    return make_machine(tmp_path, "eve", uri)


def paths(found: Found) -> list[str]:
    return [hit.path for hit in found.hits]


def test_a_published_file_is_found_and_read_on_another_machine(ada: Machine, eve: Machine) -> None:
    ada.put("memory/team/plan.md", PLAN)
    with ada.open() as memory:
        (space,) = memory.sync().spaces
        assert (space.space, space.published, space.problem) == ("team", 1, "")
    with eve.open() as memory:
        (hit,) = memory.search("where does the heron project move?").hits
        assert (hit.space, hit.author) == ("team", "ada")
        assert hit.path == "spaces/team/ada/memory/team/plan.md"
        assert memory.read(hit.citation).text == PLAN.rstrip("\n")
        assert memory.read(hit.path, start=3, lines=1).text == PLAN.split("\n")[2]


def test_private_files_do_not_leave_their_machine(ada: Machine, eve: Machine) -> None:
    for path in ("MEMORY.md", "USER.md", "memory/2026-11-18.md", "memory/private/x.md"):
        ada.put(path, "The heron has a secret nest.\n")
    ada.put("memory/team/plan.md", PLAN)
    with ada.open() as memory:
        memory.sync()
        assert memory.team.spaces()[0].documents == 1
    with eve.open() as memory:
        assert paths(memory.search("secret nest", min_score=0.0)) == []


def test_a_deleted_or_moved_file_is_withdrawn(ada: Machine, eve: Machine) -> None:
    ada.put("memory/team/plan.md", PLAN)
    ada.put("memory/team/other.md", "An otter swims.\n")
    with ada.open() as memory:
        memory.sync()
        (ada.workspace / "memory/team/plan.md").unlink()
        (ada.workspace / "memory/team/other.md").rename(ada.workspace / "memory/other.md")
        (space,) = memory.sync().spaces
        assert (space.published, space.withdrawn) == (0, 2)
    with eve.open() as memory:
        assert paths(memory.search("heron otter", min_score=0.0)) == []


def test_rules_decide_what_is_published(tmp_path: Path, uri: str, eve: Machine) -> None:
    ada = make_machine(tmp_path, "ada", uri, publish={"team": ["memory/plans/*.md", "MEMORY.md"]})
    for path in ("MEMORY.md", "memory/plans/a.md", "memory/plans/deep/b.md", "memory/team/c.md"):
        ada.put(path, f"The heron is in {path}.\n")
    with ada.open() as memory:
        assert memory.sync().spaces[0].published == 2
    with eve.open() as memory:
        found = memory.search("heron", space="team", min_score=0.0)
        assert sorted(paths(found)) == [
            "spaces/team/ada/MEMORY.md",
            "spaces/team/ada/memory/plans/a.md",
        ]


def test_a_file_with_a_secret_is_withheld(ada: Machine) -> None:
    ada.put("memory/team/plan.md", PLAN)
    ada.put("memory/team/key.md", "The key is ghp_" + "a1B2" * 9 + ".\n")
    with ada.open() as memory:
        (space,) = memory.sync().spaces
        assert space.published == 1
        assert [one.path for one in space.withheld] == ["memory/team/key.md"]
        assert "secret" in space.withheld[0].reason


def test_own_and_shared_passages_are_answered_together(ada: Machine, eve: Machine) -> None:
    ada.put("memory/team/plan.md", PLAN)
    eve.put("memory/own.md", "My heron drawing is on the desk.\n")
    with ada.open() as memory:
        memory.sync()
        # The caller's own published file is shown once.
        assert paths(memory.search("heron project pier")) == ["memory/team/plan.md"]
    with eve.open() as memory:
        memory.sync()
        both = memory.search("heron", min_score=0.0)
        assert {hit.space for hit in both.hits} == {"", "team"}
        assert paths(memory.search("heron", space="-", min_score=0.0)) == ["memory/own.md"]
        assert {hit.space for hit in memory.search("heron", space="team").hits} == {"team"}
        assert paths(memory.search("heron", source="memory", min_score=0.0)) == ["memory/own.md"]


def test_a_space_that_may_not_be_seen_is_denied_like_one_that_does_not_exist(ada: Machine) -> None:
    with ada.open() as memory:
        errors = []
        for name in ("ops", "nope"):
            with pytest.raises(SpaceDenied) as raised:
                memory.search("heron", space=name)
            errors.append(raised.value.message.replace(name, "…"))
        assert errors[0] == errors[1]
        with pytest.raises(SpaceDenied):
            memory.search("heron", space="../etc")
        with pytest.raises(SpaceDenied):
            memory.read("spaces/ops/2026-11-18.md")


def test_a_denied_space_does_not_hide_the_others(tmp_path: Path, uri: str, eve: Machine) -> None:
    eve.put("memory/team/plan.md", PLAN)
    with eve.open() as memory:
        memory.sync()
    ada = make_machine(tmp_path, "ada", uri, spaces=["ops", "team"])
    with ada.open() as memory:
        found = memory.search("heron project")
        assert paths(found) == ["spaces/team/eve/memory/team/plan.md"]
        assert found.degraded is not None and "ops" in found.degraded.reason


def test_filters_that_do_not_go_together_are_refused(ada: Machine) -> None:
    with ada.open() as memory:
        with pytest.raises(FilterError):
            memory.search("heron", space="team", source="memory")
        with pytest.raises(FilterError):
            memory.search("heron", space="team", as_of="7d")


def test_without_a_team_a_space_is_denied(tmp_path: Path, uri: str) -> None:
    lone = make_machine(tmp_path, "lone", "", spaces=[])
    with lone.open() as memory:
        with pytest.raises(SpaceDenied):
            memory.search("heron", space="team")
        with pytest.raises(ConfigError):
            _ = memory.team
        with pytest.raises(PathDenied):
            memory.read("spaces/team/2026-11-18.md")


def test_entries_of_two_authors_are_in_one_log(ada: Machine, eve: Machine) -> None:
    with ada.open() as first, eve.open() as second:
        done = first.team.append("team", "The heron nests by the pier.")
        again = second.team.append("team", "The otter eats fish.\nEvery day.")
        assert done.author == "ada"
        assert again.path == done.path
        log = second.read(done.path).text.split("\n")
        assert log[2].endswith(" ada: The heron nests by the pier.")
        assert log[3].endswith(" eve: The otter eats fish.")
        (hit,) = first.search("what does the otter eat?", space="team").hits
        assert (hit.space, hit.author, hit.path) == ("team", "", done.path)


def test_a_repeated_append_is_stored_once(ada: Machine) -> None:
    with ada.open() as memory:
        first = memory.team.append("team", "The heron nests.", key="k1")
        second = memory.team.append("team", "The heron nests.", key="k1")
        assert (first.is_repeated, second.is_repeated) == (False, True)
        assert memory.team.spaces()[0].entries == 1


def test_the_write_gate_checks_what_is_shared(ada: Machine, eve: Machine) -> None:
    with ada.open() as memory:
        memory.team.append("team", "The heron nests by the pier.")
        refused = memory.team.check_note("team", "The heron nests by the pier.")
        assert refused is not None and refused.reason == "duplicate"
        secret = memory.team.check_note("team", "The key is ghp_" + "a1B2" * 9)
        assert secret is not None and secret.reason == "secret"
        assert memory.team.check_note("team", "The otter eats fish.") is None


def test_a_reader_cannot_write(tmp_path: Path, uri: str) -> None:
    bo = make_machine(tmp_path, "bo", uri)
    with bo.open() as memory:
        with pytest.raises(SpaceDenied):
            memory.team.append("team", "Hello.")
        assert memory.sync().spaces[0].problem == ""
        bo.put("memory/team/x.md", "The heron.\n")
        report = memory.sync()
        assert "not write" in report.spaces[0].problem
        assert report.added == 1


@pytest.mark.parametrize("extra", [".", "spaces", "spaces/team"])
def test_spaces_are_pulled_into_the_workspace_but_not_indexed_or_published(
    ada: Machine, eve: Machine, extra: str
) -> None:
    ada.put("memory/team/plan.md", PLAN)
    with ada.open() as memory:
        memory.sync()
        done = memory.team.append("team", "The otter eats fish.")
    eve.put("spaces/README.md", "The heron is not mine.\n")
    with eve.open(memorySearch={"extraPaths": [extra]}) as memory:
        (pulled,) = memory.team.pull()
        assert sorted(pulled.written) == sorted([done.path, "spaces/team/ada/memory/team/plan.md"])
        copy = eve.workspace / "spaces/team/ada/memory/team/plan.md"
        assert copy.read_text() == PLAN
        report = memory.sync()
        assert (report.added, report.spaces[0].published) == (0, 0)
        assert paths(memory.search("heron", space="-", min_score=0.0)) == []


def test_a_search_goes_on_without_the_database(
    tmp_path: Path, ada: Machine, eve: Machine, postgres_uri: str
) -> None:
    ada.put("memory/team/plan.md", PLAN)
    with ada.open() as memory:
        memory.sync()
    eve.put("memory/own.md", "My heron drawing is on the desk.\n")
    with eve.open() as memory:
        memory.team.pull()
    eve.team["uri"] = GONE
    with eve.open() as memory:
        report = memory.sync()
        assert report.added == 1 and report.spaces[0].problem
        found = memory.search("heron", min_score=0.0)
        assert paths(found) == ["memory/own.md"]
        assert found.degraded is not None and "shared spaces" in found.degraded.reason
        assert "nobody" not in str(found.degraded)
        with pytest.raises(SpacesUnavailable):
            memory.search("heron", space="team")
        copy = memory.read("spaces/team/ada/memory/team/plan.md")
        assert copy.text == PLAN.rstrip("\n")
        assert copy.note.startswith("This is the copy that was pulled last.")
        with pytest.raises(SpacesUnavailable):
            memory.read("spaces/team/ada/memory/team/absent.md")


def test_the_plan_shows_what_would_be_published(ada: Machine) -> None:
    ada.put("memory/team/plan.md", PLAN)
    with ada.open() as memory:
        ((plan, _),) = memory.team.plan()
        assert plan.publish == ("memory/team/plan.md",)
        memory.sync()
        (ada.workspace / "memory/team/plan.md").unlink()
        ((plan, _),) = memory.team.plan()
        assert (plan.publish, plan.withdraw) == ((), ("memory/team/plan.md",))


def test_the_background_worker_publishes(ada: Machine, eve: Machine) -> None:
    with ada.open(background=True) as memory, memory.watch() as watching:
        ada.put("memory/team/plan.md", PLAN)
        assert watching.wait_quiet(60)
        with eve.open() as other:
            assert paths(other.search("heron project")) == ["spaces/team/ada/memory/team/plan.md"]


def test_the_watcher_pulls(ada: Machine, eve: Machine) -> None:
    ada.put("memory/team/plan.md", PLAN)
    with ada.open() as memory:
        memory.sync()
    with eve.open(background=True) as memory, memory.watch() as watching:
        assert watching.wait_quiet(60)
        assert watching._pulling is not None
        assert watching._pulling.first.wait(60)
        assert (eve.workspace / "spaces/team/ada/memory/team/plan.md").read_text() == PLAN
    eve.team["pull"] = False
    with eve.open(background=True) as memory, memory.watch() as watching:
        assert watching._pulling is None


def test_doctor_says_whether_the_spaces_answer(ada: Machine) -> None:
    def about(memory: Memory) -> list[tuple[str, str]]:
        return [(one.level, one.what) for one in memory.doctor() if one.what.startswith("Spaces")]

    with ada.open() as memory:
        ((level, what),) = about(memory)
        assert level == "ok" and what.startswith("Spaces: team in ")
    ada.team["uri"] = GONE
    with ada.open() as memory:
        ((level, what),) = about(memory)
        assert level == "problem" and "cannot be reached" in what


def test_the_web_page_shows_whose_a_shared_passage_is(ada: Machine, eve: Machine) -> None:
    pytest.importorskip("starlette")
    from clawmark.web.pages.file import file_page
    from clawmark.web.pages.search import Asked, search_page

    ada.put("memory/team/plan.md", PLAN)
    with ada.open() as memory:
        memory.sync()
    with eve.open() as memory:
        (hit,) = search_page(memory, Asked(q="heron project", explain=True)).hits
        assert (hit.origin, hit.trust, hit.forget) == ("shared in team by ada", "external", "")
        page = file_page(memory, "spaces/team/ada/memory/team/plan.md", line=3)
        assert page.total_lines == 3
        assert not page.can_edit
