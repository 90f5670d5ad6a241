"""I-07: what was acknowledged is found: when a sync returns, every note written before it is found
by its words and by its vector.

Several processes write notes and sync at the same time. After each of its syncs a process asks for
the notes it has written since the last one. When all are done, every note of every process is asked
for again, by a word that only it has, and by the vector of its text alone."""

from __future__ import annotations

import json
from pathlib import Path

from frame import Outcome
from scene import Scene, finish, is_clean

PROCESSES, NOTES = 4, 300
FEW_PROCESSES, FEW_NOTES = 2, 20
EVERY = 10
"""Notes between two syncs."""

WRITER = """
import json, random, sys
from clawmark.memory import Memory
state, who, notes, every = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
words = (
    "river stone market winter engine garden letter silver bridge candle forest harbour meadow "
    "castle thunder"
).split()
lost = []
with Memory.open(state_dir=state, config=state + "/clawmark.json") as memory:
    fresh = []
    for number in range(notes):
        chance = random.Random(who * 10_000 + number)
        marker = f"marker{who}x{number}"
        text = f"{marker} " + " ".join(chance.choices(words, k=12))
        written = memory.append(text, to=f"memory/{who}-{number}.md")
        fresh.append((marker, written.path))
        if len(fresh) == every or number == notes - 1:
            memory.sync()
            for marker, path in fresh:
                hits = memory.search(marker, freshen=False).hits
                if path not in [hit.path for hit in hits]:
                    lost.append(f"{marker} right after its sync")
            fresh = []
print(json.dumps(lost))
"""

ASK = """
import json, random, sys
from clawmark.memory import Memory
from clawmark.testing.store_samples import any_of
state, processes, notes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
missing = {"words": [], "vector": []}
with Memory.open(state_dir=state, config=state + "/clawmark.json") as memory:
    parts = memory._builtin.parts
    embedder = parts.embedders[0]
    with parts.store.snapshot() as reader:
        space = next(space.id for space in reader.spaces() if space.identity == embedder.identity)
        for who in range(processes):
            for number in range(notes):
                path, marker = f"memory/{who}-{number}.md", f"marker{who}x{number}"
                (text,) = [chunk.text for chunk in reader.chunks_of(path)] or [""]
                found = {key for key, _ in reader.search_keywords(any_of(marker), 5)}
                if path not in {chunk.path for chunk in reader.chunks(list(found)).values()}:
                    missing["words"].append(path)
                near = reader.nearest(space, embedder.embed_texts([text or marker])[0], 3)
                if path not in {
                    chunk.path for chunk in reader.chunks([key for key, _ in near]).values()
                }:
                    missing["vector"].append(path)
print(json.dumps(missing))
"""


def run(work: Path, full: bool, seed: int) -> Outcome:
    processes, notes = (PROCESSES, NOTES) if full else (FEW_PROCESSES, FEW_NOTES)
    scene = Scene(work, "static")
    complaints: list[str] = []
    writers = [
        scene.start_script(WRITER, str(who), str(notes), str(EVERY)) for who in range(processes)
    ]
    for writer in writers:
        ended = finish(writer)
        if not is_clean(ended):
            complaints.append(f"a writer ended with {ended.code}: {ended.err[-300:]}")
        else:
            complaints += json.loads(ended.out)
    ended = finish(scene.start_script(ASK, str(processes), str(notes)))
    missing = (
        json.loads(ended.out) if is_clean(ended) else {"words": [ended.err[-300:]], "vector": []}
    )
    complaints += [
        f"{path} is not found by its {how}" for how, paths in missing.items() for path in paths
    ]
    total = processes * notes
    facts: dict[str, object] = {
        "processes": processes,
        "acknowledged": total,
        "found_by_words": total - len(missing["words"]),
        "found_by_vector": total - len(missing["vector"]),
    }
    return Outcome(2 * total - len(complaints), len(complaints), facts, tuple(complaints))
