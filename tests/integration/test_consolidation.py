"""Consolidation of a whole memory: real files, the journal, proposals, and the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from chat import ChatServer, say
from commands import Place, new_place, says_one_clear_thing

from clawmark import Memory
from clawmark.agent.consolidation.run import MOST_CHANGES, ConsolidationReport
from clawmark.agent.review.box import ProposalBox
from clawmark.composition.history.consolidation import make_consolidation
from clawmark.model.provenance import Origin
from clawmark.testing import ScriptedCompleter
from clawmark.workspace.sample import write_sample

TODAY = date(2026, 3, 2)
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
FACT = "Madame Verhaeghe is best reached by phone between 10 and 11."
KINDS = ["superseded", "promoted", "superseded", "duplicate", "expired", "expired"]


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.time = NOON

    def __call__(self) -> datetime:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(tmp_path: Path, clock: Clock) -> Iterator[Memory]:
    root = tmp_path / "workspace"
    root.mkdir()
    with Memory.open(
        root, state_dir=tmp_path / "state", provider="none", clock=clock, background=False
    ) as opened:
        yield opened


@pytest.fixture
def sample(memory: Memory) -> Memory:
    write_sample(memory.places.workspace, TODAY)
    return memory


def box(memory: Memory) -> ProposalBox:
    return make_consolidation(memory).box


def texts(memory: Memory) -> dict[str, str]:
    root = Path(memory.places.workspace)
    return {str(path): path.read_text() for path in sorted(root.rglob("*.md"))}


def kinds(report: ConsolidationReport) -> list[str]:
    return [change.kind for change in report.changes]


def test_the_sample_gives_each_kind_of_change_and_no_file_is_written(sample: Memory) -> None:
    before = texts(sample)
    report = sample.consolidate()
    assert kinds(report) == KINDS
    assert texts(sample) == before
    assert report.proposal is not None and len(report.proposal.hunks) == len(KINDS)
    assert all(hunk.reason and hunk.citations for hunk in report.proposal.hunks)


def test_a_dry_run_stores_nothing(sample: Memory) -> None:
    report = sample.consolidate(dry_run=True)
    assert (kinds(report), report.proposal) == (KINDS, None)
    assert box(sample).list(decided=True) == ()


@pytest.mark.parametrize("decision", ["none", "accept", "reject", "some", "edit"])
def test_a_second_run_proposes_nothing(sample: Memory, decision: str) -> None:
    first = sample.consolidate().proposal
    assert first is not None
    proposals = box(sample)
    if decision == "accept":
        proposals.accept(first.id)
    elif decision == "reject":
        proposals.reject(first.id)
    elif decision == "some":
        proposals.accept(first.id, [1, 2])
        proposals.reject(first.id, [3, 5])
    elif decision == "edit":
        proposals.edit(first.id, 2, "- Verhaeghe, Ghent: the phone, from 10 to 11.")
        proposals.accept(first.id)
    second = sample.consolidate()
    assert (second.changes, second.proposal) == ((), None)
    assert [one.id for one in proposals.list(decided=True)] == [first.id]


def test_the_accepted_page_is_the_one_that_the_diff_shows(sample: Memory) -> None:
    report = sample.consolidate()
    assert report.proposal is not None
    box(sample).accept(report.proposal.id)
    page = (Path(sample.places.workspace) / "MEMORY.md").read_text()
    shown = [line[1:] for line in report.diff.splitlines() if line[:1] in "+ "][1:]
    assert [line for line in shown if line] == [
        line for line in page.splitlines() if line in shown and line
    ]
    assert f"- {FACT}\n" in page and "until 2026-02-18: 02:00" in page


def test_the_next_day_proposes_only_what_is_new(sample: Memory, clock: Clock) -> None:
    assert sample.consolidate().proposal is not None
    clock.time += timedelta(days=4)
    assert [change.hunk.old for change in sample.consolidate().changes] == [
        "- 2026-03-05: Amélie starts on printing."
    ]


def test_a_rejected_value_is_not_proposed_again_when_another_log_repeats_it(
    sample: Memory, clock: Clock
) -> None:
    first = sample.consolidate().proposal
    assert first is not None
    box(sample).reject(first.id)
    clock.time += timedelta(days=1)
    sample.append("Tomasz moved the backup to 04:30.", day="2026-03-03")
    sample.append(FACT, day="2026-03-03")
    assert sample.consolidate().changes == ()


@pytest.mark.parametrize("corrects_it", [True, False])
def test_a_line_that_the_user_corrected_after_a_log_is_not_replaced_by_that_log(
    sample: Memory, clock: Clock, corrects_it: bool
) -> None:
    sample.sync()
    clock.time += timedelta(hours=1)
    page = Path(sample.places.workspace) / "MEMORY.md"
    if corrects_it:
        page.write_text(page.read_text().replace("backup runs at 02:00", "backup runs at 03:00"))
    sample.sync()
    hunks = [change.hunk for change in sample.consolidate(rules_only=True).changes]
    assert any("backup runs at 04:30" in hunk.new for hunk in hunks) is not corrects_it


def test_a_proposal_has_a_limit_and_the_rest_follows(memory: Memory) -> None:
    facts = [f"- Backup {n} is kept for ten weeks.\n" for n in range(MOST_CHANGES + 30)]
    (Path(memory.places.workspace) / "MEMORY.md").write_text("".join(facts * 2))
    first, second, third = (memory.consolidate() for _ in range(3))
    assert (len(first.changes), len(second.changes), len(third.changes)) == (MOST_CHANGES, 30, 0)
    assert first.notes == ("30 more were found. They are proposed by the next run.",)


def test_text_from_outside_is_never_promoted(memory: Memory) -> None:
    days = ("2026-02-01", "2026-02-10", "2026-02-20")
    web = Origin(actor="agent", kind="tool", trust="external", source="web page")
    for day in days:
        memory.workspace.remember(FACT, day, "", origin=web)
    assert memory.consolidate().changes == ()
    agent = Origin(actor="agent", kind="flush", trust="agent")
    for day in days:
        memory.workspace.remember("Grace wants written questions.", day, "", origin=agent)
    report = memory.consolidate()
    assert [change.hunk.new.rsplit("\n")[-1] for change in report.changes] == [
        "- Grace wants written questions."
    ]
    assert report.proposal is not None and report.proposal.origin.trust == "agent"


def test_what_an_agent_finds_on_three_days_is_promoted(memory: Memory, clock: Clock) -> None:
    nuts = "Cashews and pistachios are dangerous for Ines."
    memory.append(nuts, day="2026-02-16")
    memory.append("The desk gets stuck at 104 cm.", day="2026-02-16")
    for day in range(3):
        clock.time = NOON + timedelta(days=day)
        assert memory.consolidate(dry_run=True).changes == ()
        (search, *_) = memory.tools("agent:main:main")
        answer = search.call({"query": "are cashews dangerous for Ines?"})
        assert answer["results"]
    (change,) = memory.consolidate().changes
    assert change.hunk.new.endswith(f"- {nuts}")
    assert change.hunk.reason == "Used on 3 days, and not in MEMORY.md yet"


def test_a_search_by_a_person_is_not_counted(memory: Memory, tmp_path: Path) -> None:
    memory.append("Cashews and pistachios are dangerous for Ines.", day="2026-02-16")
    assert memory.search("are cashews dangerous for Ines?").hits
    assert not list((tmp_path / "state").rglob("usage.json"))


def test_a_model_adds_a_candidate_and_a_failing_one_leaves_the_rules(sample: Memory) -> None:
    def decide(request: object) -> str:
        shown = request.messages[0].text  # type: ignore[attr-defined]
        number = shown[: shown.index("| - Antihistamines and an adrenaline pen")].rsplit("\nc", 1)
        name = f"c{number[1].split(' ', 1)[0]}"
        return json.dumps({"decisions": [{"id": name, "do": "take"}]})

    report = sample.consolidate(completer=ScriptedCompleter(decide), dry_run=True)
    assert report.used_model and len(report.changes) == len(KINDS) + 1
    failing = sample.consolidate(completer=ScriptedCompleter([]), dry_run=True)
    assert kinds(failing) == KINDS and not failing.used_model
    assert "the rules decided alone" in failing.notes[0]


def test_contradictions_are_gone_once_they_are_marked(sample: Memory) -> None:
    found = [one.newer.entry.citation for one in sample.contradictions()]
    assert found == ["memory/2026-02-20.md#L14", "memory/2026-02-18.md#L3"]
    proposal = sample.consolidate().proposal
    assert proposal is not None
    box(sample).accept(proposal.id)
    assert sample.contradictions() == ()


def test_a_search_does_not_load_consolidation(memory: Memory, tmp_path: Path) -> None:
    memory.append("The heron nests by the mill.")
    memory.sync()  # a search that finds changed files records them in the journal
    command = (
        "import sys; from clawmark.cli import main; main(sys.argv[1:]);"
        "print([name for name in sys.modules if ('consolidation' in name or 'history' in name)"
        " and not name.startswith('clawmark.config.')])"
    )
    place = ["-w", memory.places.workspace, "--state-dir", str(tmp_path / "state")]
    done = subprocess.run(
        [sys.executable, "-c", command, "search", "heron", *place],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"


# --- The heartbeat ---


def test_a_heartbeat_consolidates_when_it_is_due_and_writes_no_page(
    tmp_path: Path, clock: Clock
) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    write_sample(str(root), TODAY)
    page = (root / "MEMORY.md").read_text()
    overrides = {
        "memory.consolidation.every": "24h",
        "agents.defaults.heartbeat.curation": "apply",
        "memory.review": "off",
    }
    with Memory.open(
        root, state_dir=tmp_path / "state", provider="none", clock=clock, overrides=overrides
    ) as memory:
        completer = ScriptedCompleter(lambda request: "HEARTBEAT_OK")
        first = memory.heartbeat(completer=completer)
        assert first.consolidation is not None and kinds(first.consolidation) == KINDS
        assert not first.is_ok
        clock.time += timedelta(hours=1)
        assert memory.heartbeat(completer=completer).consolidation is None
        clock.time += timedelta(hours=23)
        again = memory.heartbeat(completer=completer)
        assert again.consolidation is not None and again.consolidation.changes == ()
        assert again.is_ok
    assert (root / "MEMORY.md").read_text() == page


@pytest.mark.parametrize("decision", ["none", "accept", "reject"])
def test_a_heartbeat_and_a_run_propose_nothing_twice(
    tmp_path: Path, clock: Clock, decision: str
) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    write_sample(str(root), TODAY)
    overrides = {"memory.consolidation.every": "24h"}
    with Memory.open(
        root, state_dir=tmp_path / "state", provider="none", clock=clock, overrides=overrides
    ) as memory:
        completer = ScriptedCompleter(lambda request: "HEARTBEAT_OK")
        report = memory.heartbeat(completer=completer).consolidation
        assert report is not None and report.proposal is not None
        if decision == "accept":
            box(memory).accept(report.proposal.id)
        elif decision == "reject":
            box(memory).reject(report.proposal.id)
        assert memory.consolidate(rules_only=True).changes == ()
        clock.time += timedelta(hours=25)
        again = memory.heartbeat(completer=completer).consolidation
        assert again is not None and again.changes == ()
        assert [one.id for one in box(memory).list(decided=True)] == [report.proposal.id]


def test_a_heartbeat_does_not_consolidate_by_default(sample: Memory) -> None:
    report = sample.heartbeat(completer=ScriptedCompleter(lambda request: "HEARTBEAT_OK"))
    assert report.consolidation is None


# --- The command line ---


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = new_place(tmp_path)
    for path in ("MEMORY.md", "memory/2026-11-15.md"):  # the sample may have a log of that day
        (made.workspace / path).unlink()
    write_sample(str(made.workspace), date.today())
    return made


def test_the_command_shows_reasons_and_evidence_and_stores_a_proposal(place: Place) -> None:
    shown = place.run("consolidate", "--dry-run")
    assert shown.code == 0 and "Nothing is stored." in shown.out
    done = place.run("consolidate")
    assert done.code == 0
    assert f"\n+- {FACT}\nevidence: memory/" in done.out
    assert done.out.endswith("Proposed as p1. To decide: clawmark review\n")
    again = place.run("consolidate")
    assert again.out.startswith("Nothing new: 6 changes found before.")
    assert max(map(len, f"{shown.out}{done.out}{again.out}".splitlines())) <= 80
    values = place.run("consolidate", "--json").json()
    assert (values["proposal"], values["changes"], values["known"]) == (None, [], 6)


def test_contradictions_have_exit_code_1_and_none_have_0(place: Place) -> None:
    found = place.run("doctor", "--contradictions")
    assert found.code == 1 and "MEMORY.md#L14 (last changed " in found.out
    assert max(map(len, found.out.splitlines())) <= 80
    values = place.run("doctor", "--contradictions", "--json").json()
    assert [sorted(one) for one in values["contradictions"]] == [["newer", "older"]] * 2
    assert values["contradictions"][0]["newer"]["value"] == "two days"
    place.write("MEMORY.md", "# Memory\n")
    nothing = place.run("doctor", "--contradictions")
    assert (nothing.code, nothing.out) == (0, "No contradictions were found.\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("consolidate", "--days", "0"),
        ("consolidate", "--model", "openai:x", "--no-model"),
        ("consolidate", "--model", "nothing-known:x"),
        ("doctor", "--contradictions", "--fix"),
    ],
)
def test_wrong_arguments_get_one_clear_sentence(place: Place, arguments: tuple[str, ...]) -> None:
    ran = place.run(*arguments)
    assert ran.code == 2 and says_one_clear_thing(ran)


def test_the_configured_model_reviews_the_changes(place: Place) -> None:
    with ChatServer() as server:
        env = {"CLAWMARK_MODEL": f"scripted@{server.openai_url}"}
        server.script([say('{"decisions": [{"id": "c1", "do": "leave"}]}')])
        values = place.run("consolidate", "--dry-run", "--json", env=env).json()
        assert values["usedModel"] is True and len(values["changes"]) == len(KINDS) - 1
        alone = place.run("consolidate", "--dry-run", "--no-model", "--json", env=env).json()
        assert alone["usedModel"] is False and len(alone["changes"]) == len(KINDS)
        assert len(server.seen) == 1


def test_a_memory_without_files_needs_no_change(tmp_path: Path) -> None:
    ran = new_place(tmp_path).run("consolidate")
    assert (ran.code, ran.out) == (0, "MEMORY.md needs no change.\n")
