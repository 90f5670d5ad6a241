"""Which files are transcripts, how they are cited, and that nothing else can be opened as one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clawmark.model.errors import PathDenied
from clawmark.model.values import Scan
from clawmark.workspace.transcripts.files import TranscriptFiles


@pytest.fixture
def own(tmp_path: Path) -> Path:
    folder = tmp_path / "state" / "agents" / "main" / "sessions"
    folder.mkdir(parents=True)
    (tmp_path / "workspace").mkdir()
    return folder


def sessions(tmp_path: Path, *paths: str) -> TranscriptFiles:
    folder = tmp_path / "state" / "agents" / "main" / "sessions"
    return TranscriptFiles(
        folder=str(folder), paths=paths, workspace=str(tmp_path / "workspace"), clean=str
    )


def names(scan: Scan) -> list[str]:
    return [state.path for state in scan.files]


def test_transcripts_and_their_archives_are_listed_and_nothing_else(
    tmp_path: Path, own: Path
) -> None:
    archive = "2026-02-24T10-03-00.123Z"
    spoken = [
        "a.jsonl",
        "b-topic-x%2Fy.jsonl",
        f"a.jsonl.reset.{archive}",
        f"a.jsonl.deleted.{archive}",
        "ü.jsonl",
    ]
    others = [
        "a.jsonl.bak",
        "a.jsonl.lock",
        "a.jsonl.tmp",
        "a.jsonl.reset",
        "a.jsonl.deleted.2026-02-01",
        "a.trajectory.jsonl",
    ]
    others += [
        "a.checkpoint.0a1b2c3d-0000-4000-8000-000000000000.jsonl",
        ".hidden.jsonl",
        f"a.jsonl.bak.{archive}",
    ]
    for name in (*spoken, *others, "sessions.json", "sessions.json.bak.1", "notes.md"):
        (own / name).write_text("{}\n", encoding="utf-8")
    scan = sessions(tmp_path).scan()
    assert sorted(names(scan)) == sorted(f"sessions/{name}" for name in spoken)
    assert {skipped.path for skipped in scan.skipped} == {f"sessions/{name}" for name in others}
    assert all(skipped.reason for skipped in scan.skipped)
    assert {state.source for state in scan.files} == {"sessions"}


def test_links_pipes_and_folders_are_never_transcripts(tmp_path: Path, own: Path) -> None:
    secret = tmp_path / "secret.jsonl"
    secret.write_text("{}\n", encoding="utf-8")
    (own / "link.jsonl").symlink_to(secret)
    os.mkfifo(own / "pipe.jsonl")
    (own / "folder.jsonl").mkdir()
    (own / "folder.jsonl" / "inner.jsonl").write_text("{}\n", encoding="utf-8")
    scan = sessions(tmp_path).scan()
    assert names(scan) == []
    assert {skipped.path for skipped in scan.skipped} == {
        "sessions/link.jsonl",
        "sessions/pipe.jsonl",
    }
    for name in ("link.jsonl", "pipe.jsonl", "folder.jsonl", "folder.jsonl/inner.jsonl"):
        with pytest.raises(PathDenied), sessions(tmp_path).open(f"sessions/{name}"):
            pass


@pytest.mark.parametrize(
    "path",
    ["sessions/../../other/sessions/x.jsonl", "sessions//x.jsonl", "sessions/./x.jsonl",
     "sessions/a\0.jsonl", "../x.jsonl", "/etc/passwd", "sessions/x.md", "sessions/x.jsonl.bak",
     "sessions/", "x.jsonl", "sessions/.x.jsonl"],
)  # fmt: skip
def test_no_path_leads_out_of_the_folder(path: str, tmp_path: Path, own: Path) -> None:
    with pytest.raises(PathDenied), sessions(tmp_path).open(path):
        pass


def test_a_folder_of_another_agent_behind_a_link_is_a_failure_and_not_read(tmp_path: Path) -> None:
    other = tmp_path / "state" / "agents" / "other" / "sessions"
    other.mkdir(parents=True)
    (other / "x.jsonl").write_text("{}\n", encoding="utf-8")
    (tmp_path / "state" / "agents" / "main").symlink_to(other.parent)
    (tmp_path / "workspace").mkdir()
    scan = sessions(tmp_path).scan()
    assert names(scan) == []
    assert [failure.path for failure in scan.failures] == ["sessions"]


def test_an_absent_folder_is_empty_and_one_that_cannot_be_listed_is_a_failure(
    tmp_path: Path,
) -> None:
    (tmp_path / "workspace").mkdir()
    assert sessions(tmp_path).scan()[:3] == ((), (), ())
    agents = tmp_path / "state" / "agents"
    agents.mkdir(parents=True)
    (agents / "main").write_text("a file", encoding="utf-8")
    assert [failure.path for failure in sessions(tmp_path).scan().failures] == ["sessions"]


def test_folders_of_other_tools_are_walked_and_cited_from_the_workspace(
    tmp_path: Path, own: Path
) -> None:
    project = tmp_path / "claude" / "projects" / "-home-me-app"
    project.mkdir(parents=True)
    day = tmp_path / "workspace" / "codex" / "2026" / "02" / "24"
    day.mkdir(parents=True)
    for file in (project / "7f3a.jsonl", day / "rollout-1.jsonl", project / "notes.txt"):
        file.write_text("{}\n", encoding="utf-8")
    (project / ".git").mkdir()
    (project / ".git" / "x.jsonl").write_text("{}\n", encoding="utf-8")
    made = sessions(tmp_path, str(tmp_path / "claude"), "codex", str(tmp_path / "absent"))
    scan = made.scan()
    assert names(scan) == [
        "codex/2026/02/24/rollout-1.jsonl",
        "../claude/projects/-home-me-app/7f3a.jsonl",
    ]
    assert [(skipped.path, skipped.reason) for skipped in scan.skipped] == [
        ("../absent", "folder of transcripts not found")
    ]
    for path in names(scan):
        assert made.owns(path)
        with made.open(path) as opened:
            assert opened.state in scan.files
    with pytest.raises(PathDenied), made.open("../claude/projects/-home-me-app/.git/x.jsonl"):
        pass


def test_a_folder_around_the_workspace_or_a_link_is_refused(tmp_path: Path, own: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "workspace" / "linked").symlink_to(real)
    (tmp_path / "file").write_text("x", encoding="utf-8")
    given = [str(tmp_path), "linked", str(tmp_path / "file"), "~", "", "a\0b"]
    scan = sessions(tmp_path, *given).scan()
    assert len(scan.skipped) == len(given)


def test_one_file_under_two_names_is_listed_once(tmp_path: Path, own: Path) -> None:
    (own / "a.jsonl").write_text("{}\n", encoding="utf-8")
    os.link(own / "a.jsonl", own / "b.jsonl")
    scan = sessions(tmp_path).scan()
    assert names(scan) == ["sessions/a.jsonl"]
    assert scan.skipped[0].reason == "same file as sessions/a.jsonl"
