"""No transaction holds the index for longer than 250 ms, whatever comes in.

An index of 100,000 chunks and one file of 60 MB is made, the large file changed, everything
rebuilt, a rebuild for other settings abandoned halfway, the vector engine changed and changed back,
half of the files deleted, the cache shrunk, the large file deleted, and then everything. Of every
transaction the time between its beginning and its end is taken, and its CPU time: what is more is
the disk's. Between two of them anybody else may write.

    TMPDIR=/dev/shm scripts/torture transactions    # in memory, where no disk is in the way
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from frame import Outcome
from scene import Scene, finish, is_clean

LONGEST = 0.25
PATIENCE = 3600.0
CHUNKS, BIG_MEGABYTES = 100_000, 60
FEW_CHUNKS, FEW_MEGABYTES = 1_500, 1

SCRIPT = """
import json, random, sys, time
from contextlib import contextmanager
from pathlib import Path
from clawmark.memory import Memory
from clawmark.engine.sync.scan import SyncRequest
from clawmark.testing import HashingEmbedder
state, chunks, megabytes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
chance = random.Random(1)
words = [
    "".join(chance.choices("abcdefghiklmnoprstu", k=chance.randrange(3, 9)))
    for _ in range(20_000)
]
seconds, work = {}, [0.0]


def paragraph(count):
    return " ".join(chance.choices(words, k=count))


def opened(**overrides):
    return Memory.open(
        state_dir=state,
        config=state + "/clawmark.json",
        embedder=HashingEmbedder(dims=64),
        overrides=overrides,
    )


def note(memory, what, act):
    store = memory._builtin.parts.store
    store.longest_write = 0.0
    plain = type(store)._transaction

    @contextmanager
    def transaction(db):
        began = time.thread_time()
        with plain(store, db) as writer:
            yield writer
        work[0] = max(work[0], time.thread_time() - began)

    store._transaction = transaction
    began = time.monotonic()
    result = act()
    seconds[what] = round(store.longest_write, 4)
    print(what, seconds[what], round(time.monotonic() - began, 1), file=sys.stderr, flush=True)
    return result


def half(memory):
    steps = []

    def enough():
        steps.append(1)
        return len(steps) > 200

    return memory._builtin.run_sync(SyncRequest(cancelled=enough))


with opened() as memory:
    notes = Path(memory.places.workspace) / "memory"
    for number in range(chunks // 10):
        (notes / f"n{number}.md").write_text("\\n\\n".join(paragraph(220) for _ in range(10)))
    big = notes / "big.md"
    with big.open("w") as file:
        while file.tell() < megabytes * 1_000_000:
            file.write(paragraph(200) + "\\n\\n")
    report = note(memory, "first index", memory.sync)
    indexed = report.chunks
    with big.open("a") as file:
        file.write("one more line with zebra77\\n")
    note(memory, "large file changed", memory.sync)
    found = [hit.path for hit in memory.search("zebra77").hits]
    note(memory, "forced rebuild", lambda: memory.sync(force=True))
    with opened(
        **{"memorySearch.chunking.tokens": 300, "memorySearch.chunking.overlap": 0}
    ) as other:
        note(other, "half a rebuild for other settings", lambda: half(other))
    note(memory, "rebuild abandoned", memory.sync)
    note(memory, "forced rebuild after it", lambda: memory.sync(force=True))
    store = memory._builtin.parts.store
    for engine in ("sqlite-vec", "blocks"):
        store._engine = engine
        (notes / "small.md").write_text(f"small {engine}")
        try:
            note(memory, f"engine {engine}", memory.sync)
        except Exception as error:
            if "not installed" not in str(error):
                raise
            seconds[f"engine {engine}"] = 0.0
    for number in range(chunks // 20):
        (notes / f"n{number}.md").unlink()
    note(memory, "half of the files deleted", memory.sync)
    store._cache_entries = 1000
    (notes / "small.md").write_text("small again")
    note(memory, "cache shrunk", memory.sync)
    big.unlink()
    note(memory, "large file deleted", memory.sync)
    for path in notes.iterdir():
        path.unlink()
    note(memory, "everything deleted", memory.sync)
    problems = memory.verify().problems
told = {
    "seconds": seconds,
    "work": round(work[0], 4),
    "chunks": indexed,
    "found": found,
    "problems": problems[:3],
}
print(json.dumps(told))
"""


def run(work: Path, full: bool, seed: int) -> Outcome:
    chunks, megabytes = (CHUNKS, BIG_MEGABYTES) if full else (FEW_CHUNKS, FEW_MEGABYTES)
    scene = Scene(work, "none")
    ended = finish(scene.start_script(SCRIPT, str(chunks), str(megabytes)), patience=PATIENCE)
    if not is_clean(ended):
        return Outcome(0, 1, {}, (f"ended with {ended.code}: {ended.err[-1000:]}",))
    heard = json.loads(ended.out)
    seconds: dict[str, float] = heard["seconds"]
    complaints = (
        []
        if heard["found"][:1] == ["memory/big.md"]
        else [f"the changed line of the large file was not found: {heard['found']}"]
    )
    complaints += heard["problems"]
    if full:  # a small run shares its machine with other tests
        complaints += [
            f"{what}: a transaction took {took} s"
            for what, took in seconds.items()
            if took > LONGEST
        ]
    facts = {
        "chunks": heard["chunks"],
        "large_file_megabytes": megabytes,
        "longest_transaction_seconds": max(seconds.values()),
        "longest_transaction_cpu_seconds": heard["work"],
        "file_system": _file_system(work),
        "longest_by_task": seconds,
    }
    return Outcome(len(seconds) + 1 - len(complaints), len(complaints), facts, tuple(complaints))


def _file_system(folder: Path) -> str:
    """What the folder lies on, as the system calls it."""
    told = subprocess.run(
        ["stat", "-f", "-c", "%T", str(folder)], capture_output=True, text=True, check=False
    )
    return told.stdout.strip()
