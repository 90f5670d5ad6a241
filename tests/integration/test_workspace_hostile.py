"""A workspace made to break readers: every note is found, nothing else is ever read, and nothing
hangs.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import clawmark
from clawmark.model.documents import Document
from clawmark.model.errors import PathDenied, WorkspaceError
from clawmark.model.values import Scan
from clawmark.workspace import Workspace

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("CLAWMARK_SHARED") or REPOSITORY.parent / "shared")
GENERATOR = SHARED / "hostile" / "make_hostile_workspace.py"


class Hostile(NamedTuple):
    """A hostile workspace, looked at and read once."""

    out: Path
    items: list[dict[str, Any]]
    canaries: dict[str, str]
    workspace: Workspace
    scan: Scan
    documents: dict[str, Document]
    failures: dict[str, str]


@pytest.fixture(scope="module", params=[1, 2], ids=["seed 1", "seed 2"])
def hostile(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Hostile:
    if not GENERATOR.is_file():
        pytest.skip(
            "the hostile workspace generator is not here; name its folder in CLAWMARK_SHARED"
        )
    out = tmp_path_factory.mktemp("hostile") / "out"
    subprocess.run(
        [sys.executable, GENERATOR, out, "--seed", str(request.param)],
        check=True,
        capture_output=True,
    )
    request.addfinalizer(
        lambda: subprocess.run(
            [sys.executable, GENERATOR, out, "--remove"], check=True, capture_output=True
        )
    )
    manifest = json.loads((out / "manifest.json").read_text())
    workspace = Workspace(str(out / "workspace"), ["notes"])
    scan = workspace.scan()
    documents, failures = {}, {}
    for state in scan.files:
        try:
            documents[state.path] = workspace.read_document(state)
        except WorkspaceError as error:
            failures[state.path] = error.message
    return Hostile(
        out=out,
        items=manifest["items"],
        canaries=manifest["canaries"],
        workspace=workspace,
        scan=scan,
        documents=documents,
        failures=failures,
    )


def own(hostile: Hostile, *expected: str) -> list[tuple[str, str]]:
    """Path in the workspace and marker of the files with these expectations."""
    found = []
    for item in hostile.items:
        path = os.fsdecode(base64.b64decode(item["path_b64"]))
        if item["expect"] in expected and item["kind"] == "file" and path.startswith("workspace/"):
            found.append((path.removeprefix("workspace/"), item.get("marker", "")))
    return found


def test_every_note_is_listed_and_readable(hostile: Hostile) -> None:
    same = {skip.path: skip.reason.removeprefix("same file as ") for skip in hostile.scan.skipped}
    notes = own(hostile, "index")
    assert len(notes) > 180
    for path, marker in notes:
        listed = path if path in hostile.documents else same.get(path, "")
        assert marker in hostile.documents[listed].text, path


def test_every_listed_path_reads_back_the_same_lines(hostile: Hostile) -> None:
    for path, document in hostile.documents.items():
        assert (
            hostile.workspace.read_lines(path, 1, 10**9, max_chars=10**9).text == document.text
        ), path


def test_excluded_files_are_never_read(hostile: Hostile) -> None:
    texts = "\n".join(document.text for document in hostile.documents.values())
    for name in ("outside", "other", "thinking"):
        assert hostile.canaries[name] not in texts
    for path, marker in own(hostile, "skip"):
        assert not marker or marker not in texts, path


def test_every_skipped_file_has_a_reason(hostile: Hostile) -> None:
    reasons = {skip.path: skip.reason for skip in hostile.scan.skipped}
    links = [
        path for path in reasons if path.startswith("memory/links/") and "link" in reasons[path]
    ]
    assert len(links) > 70
    assert reasons["memory/special/fifo.md"] == "a pipe, not a file"
    assert reasons["memory/.git"] == "a hidden folder"
    for path, reason in reasons.items():
        assert reason
        assert path.encode()


def test_a_file_that_cannot_be_text_is_one_clear_failure(hostile: Hostile) -> None:
    unreadable = {path for path in hostile.failures if "special/" not in path}
    assert unreadable == {
        f"memory/enc/{name}.md" for name in ("db", "nul-only", "picture", "random")
    }
    assert set(hostile.failures.values()) >= {f"{path} looks binary." for path in unreadable}


def test_the_last_line_of_a_long_file_has_its_number(hostile: Hostile) -> None:
    (marker,) = (item["marker"] for item in hostile.items if item["id"] == "marker-last-line")
    assert hostile.workspace.read_lines("memory/lines/lastline.md#L3001").text == marker


def test_each_path_case_comes_out_as_expected(hostile: Hostile) -> None:
    wrong = []
    cases = [
        json.loads(line)
        for line in (hostile.out / "cases" / "get_paths.jsonl").read_text().splitlines()
    ]
    assert len(cases) == 102
    for case in cases:
        try:
            excerpt = hostile.workspace.read_lines(given(case))
            outcome = "ok" if excerpt.total_lines else "empty"
            assert hostile.canaries["outside"] not in excerpt.text
            assert hostile.canaries["other"] not in excerpt.text
        except PathDenied as refusal:
            outcome = "refused"
            assert "\n" not in refusal.message
        if outcome not in case["expect"].split("-or-"):
            wrong.append((case["id"], case["expect"], outcome))
    assert wrong == []


def given(case: dict[str, str]) -> str:
    if "input_wtf8_b64" in case:
        return base64.b64decode(case["input_wtf8_b64"]).decode("utf-8", "surrogatepass")
    return (
        os.fsdecode(base64.b64decode(case["input_b64"])) if "input_b64" in case else case["input"]
    )


@pytest.mark.parametrize(
    "path", ["../outside/new.md", "memory/links/out.md", "memory/links/outdir/x.md", "memory/x.sh"]
)
def test_no_write_leaves_the_memory(hostile: Hostile, path: str) -> None:
    outside = {
        file: file.read_bytes() for file in (hostile.out / "outside").rglob("*") if file.is_file()
    }
    with pytest.raises(PathDenied):
        hostile.workspace.append(path, "x")
    assert outside == {
        file: file.read_bytes() for file in (hostile.out / "outside").rglob("*") if file.is_file()
    }


# --- mounts ---------------------------------------------------------------------------------------

MOUNTED = """
import hashlib, sys
from clawmark.model.errors import PathDenied, WorkspaceReadOnly
from clawmark.workspace import Workspace

def refused(kind, call):
    try:
        call()
    except kind as error:
        return error.message
    raise AssertionError("not refused")

top = sys.argv[1]
volume = Workspace(top + "/volume")
assert [state.path for state in volume.scan().files] == ["memory/sub/x.md"], volume.scan()
assert volume.read_lines("memory/sub/x.md").text == "x"
assert volume.append("memory/sub/x.md", "more").start_line == 2

path = "memory/disk/sub/x.md"
below = Workspace(top + "/below")
assert [skip.path for skip in below.scan().skipped] == ["memory/disk"], below.scan()
refused(PathDenied, lambda: below.read_lines(path))
named = Workspace(top + "/below", ["memory/disk"])
assert [state.path for state in named.scan().files] == [path], named.scan()
assert (named.scan().skipped, named.scan().failures) == ((), ())
assert named.read_document(named.scan().files[0]).text == "x\\n"

frozen = Workspace(top + "/frozen")
assert frozen.read_lines("memory/sub/x.md").text == "x"
for call in (
    lambda: frozen.append("memory/sub/x.md", "y"),
    lambda: frozen.append("memory/new.md", "y"),
    lambda: frozen.replace("memory/sub/x.md", "y", hashlib.sha256(b"x\\n").hexdigest()),
):
    assert refused(WorkspaceReadOnly, call).endswith("cannot be written: read-only file system.")
print("done")
"""


def test_a_mounted_memory_is_used_and_a_mount_below_it_only_when_named(tmp_path: Path) -> None:
    points = {"volume": "volume/memory", "below": "below/memory/disk", "frozen": "frozen/memory"}
    steps = []
    for name, point in points.items():
        (tmp_path / point).mkdir(parents=True)
        steps.append(
            f"mount -t tmpfs {name} '{tmp_path}/{point}' && mkdir '{tmp_path}/{point}/sub'"
        )
        steps.append(f"echo x > '{tmp_path}/{point}/sub/x.md'")
    steps.append(f"mount -o remount,ro '{tmp_path}/frozen/memory'")
    mounted = ["unshare", "--mount", "sh", "-c", " && ".join(steps) + ' && exec "$@"', "sh"]
    try:
        possible = (
            subprocess.run([*mounted, "true"], capture_output=True, check=False).returncode == 0
        )
    except FileNotFoundError:
        possible = False
    if not possible:
        pytest.skip("mounting needs privileges that are not given here")
    source = str(Path(next(iter(clawmark.__path__))).parent)
    ran = subprocess.run(
        [*mounted, sys.executable, "-c", MOUNTED, str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": source},
        check=False,
    )
    assert (ran.stdout, ran.stderr) == ("done\n", "")


# --- an attacker who swaps files while they are read ----------------------------------------------


def test_a_file_swapped_for_a_link_shows_nothing_of_the_outside(tmp_path: Path) -> None:
    memory = tmp_path / "ws" / "memory"
    (memory / "sub").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.md").write_text("canary\n")
    (memory / "sub" / "x.md").write_text("inside\n")
    workspace = Workspace(str(tmp_path / "ws"))
    done = threading.Event()
    seen: set[str] = set()

    def swap_file() -> None:
        """File and link take turns under one name."""
        while not done.is_set():
            (memory / "link").symlink_to(tmp_path / "outside" / "x.md")
            (memory / "link").replace(memory / "x.md")
            (memory / "file").write_text("inside\n")
            (memory / "file").replace(memory / "x.md")

    def swap_folder() -> None:
        """Folder and link take turns under one name."""
        while not done.is_set():
            (memory / "sub").rename(memory / "kept")
            (memory / "sub").symlink_to(tmp_path / "outside")
            (memory / "sub").unlink()
            (memory / "kept").rename(memory / "sub")

    def read(path: str) -> None:
        for _ in range(1500):
            try:
                seen.add(workspace.read_lines(path).text)
            except WorkspaceError:
                continue
        for state in workspace.scan().files:
            assert state.inode != (tmp_path / "outside" / "x.md").stat().st_ino

    attackers = [threading.Thread(target=swap) for swap in (swap_file, swap_folder)]
    readers: list[threading.Thread] = [
        threading.Thread(target=read, args=(path,))
        for path in ("memory/x.md", "memory/sub/x.md") * 2
    ]
    run_all(attackers, readers, done.set)
    assert seen <= {"", "inside"}


def run_all(
    attackers: list[threading.Thread], readers: list[threading.Thread], stop: Callable[[], None]
) -> None:
    for thread in (*attackers, *readers):
        thread.start()
    for thread in readers:
        thread.join()
    stop()
    for thread in attackers:
        thread.join()
