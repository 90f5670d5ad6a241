"""I-03 and I-11: a reader sees one whole generation or the next, never a mixture, and the files of
the index stay in place.

Every file holds one word that all of them share and the number of the round in which it was
written. While the index is rebuilt again and again, readers that were opened before the first
rebuild ask for the shared word: every answer must name every file, all of the same round; a later
answer never an earlier round; and two answers of one round must be the same to the last digit of
each score. A watch on the folder hears of every file that is made, renamed or deleted. At the end
each reader must have seen the last round. The readers ask the index itself: `Memory.search` would
leave out hits of files that were written again and are not indexed yet."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path

from frame import Outcome
from scene import Scene, finish, is_clean
from watchfiles import Change
from watchfiles._rust_notify import RustNotify

READERS, REBUILDS, FILES = 8, 20, 200
FEW_READERS, FEW_REBUILDS, FEW_FILES = 3, 4, 40

READER = """
import json, select, sys
from clawmark.backends.snapshot import HeldSnapshot
from clawmark.composition import make_query
from clawmark.memory import Memory
from clawmark.model.values import Freshness
state, files = sys.argv[1], int(sys.argv[2])
with Memory.open(state_dir=state, config=state + "/clawmark.json") as memory:
    backend = memory._builtin
    query = make_query(memory.settings.memory_search.query, "everywhere", files, 0.0, memory.today)
    print("ready", flush=True)
    answers, complaints, latest, rounds, first = 0, [], -1, [], []
    while True:
        # Until the other side closes its end; asked without waiting.
        closing = bool(select.select([sys.stdin], [], [], 0)[0])
        with HeldSnapshot(backend.parts.store) as snapshot:
            asked = backend._ask(query.text, snapshot)
            found, _ = backend._find(query, asked, Freshness(None, "not asked for", 0.0), snapshot)
        answers += 1
        seen = {hit.snippet.split("round ")[1].split(".")[0] for hit in found.hits}
        paths = {hit.path for hit in found.hits}
        if len(found.hits) != files or len(paths) != files or len(seen) != 1:
            complaints.append(
                f"{len(found.hits)} hits in {len(paths)} files of the rounds {sorted(seen)}"
            )
        else:
            number = int(seen.pop())
            whole = [hit[:9] for hit in found.hits]
            if number < latest:
                complaints.append(f"round {number} after round {latest}")
            if number != latest:
                rounds.append(number)
                first = whole
            elif whole != first:
                complaints.append(f"two answers of round {number} differ")
            latest = number
        if closing:
            break
told = {
    "answers": answers,
    "complaints": complaints[:5],
    "bad": len(complaints),
    "rounds": rounds,
}
print(json.dumps(told))
"""


def run(work: Path, full: bool, seed: int) -> Outcome:
    complaints: list[str] = []
    facts: dict[str, object] = {}
    answers = 0
    for provider in ("none", "static") if full else ("none",):
        sizes = (READERS, REBUILDS, FILES) if full else (FEW_READERS, FEW_REBUILDS, FEW_FILES)
        facts[provider] = _play(Scene(work / provider, provider), *sizes, complaints)
        answers += facts[provider]["answers"]  # type: ignore[index]
    return Outcome(answers - len(complaints), len(complaints), facts, tuple(complaints))


def _play(
    scene: Scene, readers: int, rebuilds: int, files: int, complaints: list[str]
) -> dict[str, object]:
    """Rebuild under the eyes of readers; what they saw."""
    _write(scene, files, 0)
    scene.run("index")
    watch = RustNotify([str(scene.index.parent)], False, False, 0, False, False)
    moved: set[str] = set()
    asking = [scene.start_script(READER, str(files)) for _ in range(readers)]
    for process in asking:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for number in range(1, rebuilds + 1):
        _write(scene, files, number)
        ended = scene.run("index", "--force")
        if not is_clean(ended):
            complaints.append(f"rebuild {number} ended with {ended.code}: {ended.err[-300:]}")
        moved |= _moved(watch)
    answers, seen = _hear(asking, rebuilds, complaints)
    moved |= _moved(watch)
    watch.close()
    complaints += [
        f"{name} was made, renamed or deleted" for name in moved if name.endswith(".sqlite")
    ]
    return {
        "readers": readers,
        "rebuilds": rebuilds,
        "files": files,
        "answers": answers,
        "rounds_seen_by_some_reader": seen,
        "names_that_came_or_went": sorted(moved),
    }


def _write(scene: Scene, files: int, number: int) -> None:
    for file in range(files):
        scene.note(
            f"file-{file:04}", f"everywhere in round {number}. The file {file} says nothing else.\n"
        )


def _hear(asking: list[subprocess.Popen[str]], last: int, complaints: list[str]) -> tuple[int, int]:
    """End the readers; how many answers they had, and how many rounds they saw together."""
    answers = 0
    seen: Counter[int] = Counter()
    for process in asking:
        ended = finish(process)
        if not is_clean(ended):
            complaints.append(f"a reader ended with {ended.code}: {ended.err[-300:]}")
            continue
        heard = json.loads(ended.out.splitlines()[-1])
        answers += heard["answers"]
        complaints += heard["complaints"]
        seen.update(heard["rounds"])
        if heard["rounds"][-1:] != [last]:
            complaints.append(f"a reader ended with round {heard['rounds'][-1:]} instead of {last}")
    return answers, len(seen)


def _moved(watch: RustNotify) -> set[str]:
    """The names that appeared or vanished in the folder of the index since the last call."""
    moved: set[str] = set()
    while isinstance(found := watch.watch(1000, 50, 100, None), set):
        moved |= {Path(path).name for change, path in found if change != Change.modified}
    return moved
