"""The hostile workspace of the shared folder, indexed and searched by the real command line.

Three hundred files that break readers: bad bytes, odd names, links out, pipes, megabyte lines. What
must be found is found, what must not be read leaves no trace, and every citation leads back to its
lines."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

from clawmark import Memory

SHARED = Path(os.environ.get("CLAWMARK_SHARED") or Path(__file__).resolve().parents[3] / "shared")
MAKER = SHARED / "hostile" / "make_hostile_workspace.py"
KEYWORDS_ONLY = {"memorySearch": {"provider": "none"}}
HANG_SECONDS = 300
NEVER_CANARIES = ("outside", "other", "thinking")

pytestmark = pytest.mark.skipif(
    not MAKER.is_file(), reason="the shared folder with the hostile workspace is not here"
)


class Hostile(NamedTuple):
    """One hostile workspace after `clawmark index`."""

    folder: Path
    state: Path
    manifest: dict[str, Any]
    indexed: subprocess.CompletedProcess[str]

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    def items(self, *expect: str) -> list[dict[str, Any]]:
        """What lies in the workspace, of one of these expectations."""
        inside = (
            item for item in self.manifest["items"] if path_bytes(item).startswith(b"workspace/")
        )
        return [item for item in inside if item["expect"] in expect]

    def forbidden(self) -> list[str]:
        """Every marker that must leave no trace: those of skipped and private files, and the
        canaries.
        """
        allowed = {
            item.get("marker")
            for item in self.manifest["items"]
            if item["expect"] in ("index", "either")
        }
        markers = {
            item.get("marker")
            for item in self.manifest["items"]
            if item["expect"] in ("skip", "never")
        }
        canaries = {self.manifest["canaries"][name] for name in NEVER_CANARIES}
        return sorted(marker for marker in (markers - allowed) | canaries if marker)

    @property
    def config(self) -> Path:
        return self.folder / "keywords.json"

    def words(self, *command: str) -> list[str]:
        places = [
            "--workspace",
            str(self.workspace),
            "--state-dir",
            str(self.state),
            "--config",
            str(self.config),
        ]
        return [sys.executable, "-m", "clawmark", *command, *places]

    def run(self, *command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.words(*command),
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            timeout=HANG_SECONDS,
            check=False,
            env=environment(self.folder),
        )

    def database(self) -> Path:
        (path,) = self.state.rglob("*.sqlite")
        return path


def environment(home: Path) -> dict[str, str]:
    ours = ("CLAWMARK_", "OPENCLAW_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**kept, "HOME": str(home), "NO_COLOR": "1"}


def path_bytes(item: dict[str, Any]) -> bytes:
    return base64.b64decode(item["path_b64"])


def cited(item: dict[str, Any]) -> str:
    return os.fsdecode(path_bytes(item).removeprefix(b"workspace/"))


@pytest.fixture(scope="module", params=[1, 2], ids=["seed-1", "seed-2"])
def hostile(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Hostile]:
    folder = tmp_path_factory.mktemp("hostile") / "made"
    subprocess.run(
        [sys.executable, MAKER, folder, "--seed", str(request.param)],
        check=True,
        capture_output=True,
    )
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    empty = subprocess.CompletedProcess[str]([], 0, "", "")
    made = Hostile(folder=folder, state=folder / "state", manifest=manifest, indexed=empty)
    made.config.write_text(json.dumps(KEYWORDS_ONLY), encoding="utf-8")
    yield made._replace(indexed=made.run("index", "--json"))
    subprocess.run([sys.executable, MAKER, folder, "--remove"], check=True, capture_output=True)


def batch(hostile: Hostile, queries: dict[str, str], *options: str) -> dict[str, dict[str, Any]]:
    """All the queries in one process, answers by id."""
    lines = "".join(
        json.dumps({"id": name, "query": query}) + "\n" for name, query in queries.items()
    )
    ran = hostile.run("search", "--batch", "-", "--json", *options, stdin=lines)
    assert ran.returncode == 0, ran.stderr
    assert "Traceback" not in ran.stderr
    answers = [json.loads(line) for line in ran.stdout.split("\n") if line]
    assert len(answers) == len(queries)
    # A line too long to be read is answered by its number, because its id was not read either.
    assert all(
        answer["id"] == name or "error" in answer
        for answer, name in zip(answers, queries, strict=True)
    )
    return dict(zip(queries, answers, strict=True))


def test_one_bad_file_never_stops_the_others(hostile: Hostile) -> None:
    assert hostile.indexed.returncode == 0, hostile.indexed.stderr
    assert "Traceback" not in hostile.indexed.stderr
    assert isinstance(json.loads(hostile.indexed.stdout), dict)


def test_every_marker_to_be_indexed_is_found_under_its_own_path(hostile: Hostile) -> None:
    items = hostile.items("index")
    answers = batch(
        hostile,
        {item["id"]: item["marker"] for item in items},
        "--max-results",
        "10",
        "--min-score",
        "0",
    )
    # A hard link is a second name of the same file, and the file is indexed once, under either.
    names: dict[str, set[str]] = {}
    for item in hostile.items("index", "either"):
        if item["kind"] in ("file", "hardlink"):
            names.setdefault(item["marker"], set()).add(cited(item))
    lost = {}
    for item in items:
        hits = answers[item["id"]]["results"]
        good = [
            hit
            for hit in hits
            if hit["path"] in names[item["marker"]] and item["marker"] in hit["snippet"]
        ]
        if len(good) != 1 or hits[0] is not good[0]:
            lost[item["id"]] = [hit["path"] for hit in hits]
    assert lost == {}


def test_what_must_not_be_read_is_in_no_output(hostile: Hostile) -> None:
    said = [
        hostile.indexed,
        hostile.run("status", "--json"),
        hostile.run("status"),
        hostile.run("index"),
    ]
    said += [
        hostile.run("verify"),
        hostile.run("doctor"),
        hostile.run("search", "outside secret password", "--explain"),
    ]
    text = "\n".join(one.stdout + one.stderr for one in said)
    assert [marker for marker in hostile.forbidden() if marker in text] == []
    assert "Traceback" not in text


def test_canaries_asked_for_by_name_are_not_found(hostile: Hostile) -> None:
    wanted = {marker: marker for marker in hostile.forbidden()}
    answers = batch(hostile, wanted, "--max-results", "10", "--min-score", "0")
    shown = {marker: json.dumps(answers[marker]["results"]) for marker in wanted}
    assert [marker for marker, results in shown.items() if marker in results] == []


def test_what_must_not_be_read_is_in_no_table(hostile: Hostile) -> None:
    values = "\n".join(stored_values(hostile.database()))
    assert [marker for marker in hostile.forbidden() if marker in values] == []
    terms = stored_terms(hostile.database())
    # The number in a marker is its own, and a stemmer may change only the end of a word.
    starts = tuple(
        marker[:7] if marker.startswith("mk") else marker[:-2] for marker in hostile.forbidden()
    )
    assert [term for term in terms if term.startswith(starts)] == []


def test_what_must_not_be_read_is_in_no_byte_of_the_state_folder(hostile: Hostile) -> None:
    raw = b"\n".join(
        path.read_bytes() for path in sorted(hostile.state.rglob("*")) if path.is_file()
    )
    assert [marker for marker in hostile.forbidden() if marker.encode() in raw] == []


def test_every_skipped_file_has_a_reason(hostile: Hostile) -> None:
    report = json.loads(hostile.indexed.stdout)
    listed = {
        row["path"]: row["reason"]
        for row in report.get("skipped", report.get("report", {}).get("skipped"))
    }
    assert all(reason.strip() for reason in listed.values())
    due = {
        cited(item)
        for item in hostile.items("skip", "never")
        if item["kind"] in ("symlink", "fifo", "socket")
    }
    assert {path for path in due if path.endswith(".md")} - set(listed) == set()


def test_a_second_index_has_nothing_to_do(hostile: Hostile) -> None:
    ran = hostile.run("index", "--dry-run", "--json")
    assert ran.returncode == 0, ran.stderr
    plan = json.loads(ran.stdout)
    plan = plan.get("plan", plan)
    assert [plan[key] for key in ("add", "check", "delete")] == [[], [], []]


def test_every_row_can_be_derived_from_its_file_again(hostile: Hostile) -> None:
    ran = hostile.run("verify")
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout


def test_every_chunk_is_the_lines_it_claims(hostile: Hostile) -> None:
    wrong = []
    for path, chunks in stored_chunks(hostile.database()).items():
        lines = file_lines(hostile.workspace / path)
        if lines is None:
            continue
        for start, end, text in chunks:
            whole = "\n".join(lines[start - 1 : end])
            # Only a single line too long for one chunk may be cut into several.
            exact = text == whole or (start == end and text in whole)
            if not exact or not 1 <= start <= end <= len(lines):
                wrong.append((path, start, end))
    assert wrong == []


def test_reading_a_citation_returns_the_lines_of_the_chunk(hostile: Hostile) -> None:
    wrong = []
    with Memory.open(hostile.workspace, state_dir=hostile.state, config=hostile.config) as memory:
        for path, chunks in stored_chunks(hostile.database()).items():
            lines = file_lines(hostile.workspace / path)
            # A file of a thousand chunks is opened thirty times, not a thousand: first, last and
            # evenly between.
            step = max(1, len(chunks) // 30)
            for start, end, text in [*chunks[::step], chunks[-1]]:
                excerpt = memory.read(path, start=start, lines=end - start + 1)
                whole = text if lines is None else "\n".join(lines[start - 1 : end])
                same = (
                    whole.startswith(excerpt.text) if excerpt.truncated else excerpt.text == whole
                )
                if not same or excerpt.start != start:
                    wrong.append((path, start, end))
    assert wrong == []


def test_every_hostile_query_gets_one_answer(hostile: Hostile) -> None:
    rows = [
        json.loads(line)
        for line in (hostile.folder / "cases" / "queries.jsonl").read_text().splitlines()
    ]
    wide = ("input_wtf8_b64", "input_b64")
    queries = {row["id"]: row["input"] for row in rows if "input" in row}
    for row in rows:
        for key in (key for key in wide if key in row):
            queries[row["id"]] = base64.b64decode(row[key]).decode("utf-8", "surrogatepass")
    answers = batch(hostile, queries)
    refused = [name for name, answer in answers.items() if "error" in answer]
    assert refused == [
        row["id"] for row in rows if row["expect"] == "rejected-or-cut" and row["id"] in refused
    ]
    for row in rows:
        if row["expect"] in ("empty-result", "no-result"):
            assert answers[row["id"]]["results"] == [], row["id"]
            assert answers[row["id"]]["nothing"]["message"], row["id"]


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo terminal")
@pytest.mark.parametrize(
    "case", ["controls", "osc-escape", "text-bidi-override", "name-escape", "name-rtl-override"]
)
def test_no_control_character_reaches_a_terminal(hostile: Hostile, case: str) -> None:
    (marker,) = [item["marker"] for item in hostile.items("index") if item["id"] == case]
    shown = on_a_terminal(hostile.words("search", marker), environment(hostile.folder))
    assert marker in shown
    assert (
        re.findall(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown) == []
    )


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo terminal")
def test_status_shows_no_control_character(hostile: Hostile) -> None:
    shown = on_a_terminal(hostile.words("status"), environment(hostile.folder))
    assert (
        re.findall(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown) == []
    )


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_no_file_outside_the_workspace_is_opened(hostile: Hostile, tmp_path: Path) -> None:
    """Every descriptor the kernel handed out while indexing, by the real path it stands for."""
    trace = tmp_path / "trace"
    tracer = ["strace", "-f", "-y", "-qq", "-e", "trace=open,openat,openat2", "-o", str(trace)]
    argv = hostile.words("index", "--force")
    ran = subprocess.run(
        [*tracer, *argv],
        capture_output=True,
        timeout=HANG_SECONDS,
        env=environment(hostile.folder),
        check=False,
    )
    if b"ptrace" in ran.stderr.lower():
        pytest.skip("tracing is not permitted here")
    assert ran.returncode == 0, ran.stderr
    opened = re.findall(rb" = \d+<([^>]*)>", trace.read_bytes())
    inside = [path for path in opened if path.startswith(os.fsencode(hostile.folder) + b"/")]
    own = (b"workspace/", b"workspace", b"state/", b"state", b"keywords.json", b".clawmark")
    prefixes = tuple(os.fsencode(hostile.folder) + b"/" + name for name in own)
    assert inside != []
    outside = os.fsencode(hostile.folder) + b"/workspace-evil"
    assert [
        path for path in inside if not path.startswith(prefixes) or path.startswith(outside)
    ] == []


# --- reading what was stored ----------------------------------------------------------------------


def stored_chunks(database: Path) -> dict[str, list[tuple[int, int, str]]]:
    chunks: dict[str, list[tuple[int, int, str]]] = {}
    with apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY) as connection:
        rows = connection.execute(
            "SELECT f.path, c.start_line, c.end_line, c.text FROM chunks AS c JOIN files AS f ON "
            "f.key = c.file "
            "WHERE f.died IS NULL ORDER BY f.path, c.key"
        )
        for path, start, end, text in rows:
            chunks.setdefault(str(path), []).append((start, end, text))
    connection.close()
    return chunks


def stored_values(database: Path) -> Iterator[str]:
    """Every value of every real table; the parts of the full-text index are such tables too."""
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    tables = (
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    )
    for (name,) in connection.execute(tables).fetchall():
        for row in connection.execute(f'SELECT * FROM "{name}"'):
            yield from (
                value.decode("latin-1") if isinstance(value, bytes) else str(value) for value in row
            )
    connection.close()


def stored_terms(database: Path) -> list[str]:
    """Every word of the full-text index, whole: inside its pages words share their beginnings."""
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    connection.execute("CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, chunks_fts, 'row')")
    terms = [str(term) for (term,) in connection.execute("SELECT term FROM temp.terms")]
    connection.close()
    return terms


def file_lines(path: Path) -> list[str] | None:
    """The file's bytes split on line feeds, as they are shown; None for a file in UTF-16 or UTF-32.

    Byte order marks at the start and the carriage return of a line end are gone; what is no text,
    NUL too, is U+FFFD."""
    data = path.read_bytes()
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return None
    text = data.decode("utf-8", "replace").lstrip("\ufeff").replace("\0", "\ufffd")
    return [line.removesuffix("\r") for line in text.split("\n")]


def on_a_terminal(argv: list[str], env: dict[str, str]) -> str:
    """What a person would be sent, read from the other end of a pseudo terminal."""
    import pty

    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        argv, stdin=theirs, stdout=theirs, stderr=theirs, env={**env, "TERM": "xterm"}
    )
    os.close(theirs)
    pieces = []
    try:
        while piece := os.read(ours, 65536):
            pieces.append(piece)
    except OSError:
        pass  # Linux says EIO, not end of file, when the last writer is gone
    finally:
        os.close(ours)
    assert child.wait(HANG_SECONDS) == 0
    return b"".join(pieces).decode("utf-8", "replace")
