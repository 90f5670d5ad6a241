"""I-04: a rebuild that is killed leaves the old answers, goes on where it stopped, and leaves
nothing behind that grows.

`clawmark index --force` is killed at random moments: while it starts, reads, writes, flips and
cleans up. After every kill a search must at once give the answers it gave before, to the last
digit, and the files of the index may never take more than 2.2 times what they take after a fresh
build. Now and then a rebuild may finish. At the end one is left alone, and every row of the index
must be what its file says."""

from __future__ import annotations

import random
import signal
import subprocess
from pathlib import Path

from frame import Outcome
from scene import Scene, essence, is_clean, moments, timed

KILLS, FILES, QUERIES = 500, 300, 12
FEW_KILLS, FEW_FILES = 8, 60
MOST = 2.2
"""Times the size of one index."""
LOG_ROOM = 3 * 1024 * 1024
"""What the log of a transaction may take besides, where the index is as small as in a small run."""
PROVIDERS = ("none", "static")
ASK_IN_NEW_PROCESS_EVERY = 25


def run(work: Path, full: bool, seed: int) -> Outcome:
    complaints: list[str] = []
    facts: dict[str, object] = {}
    kills = KILLS if full else FEW_KILLS
    for number, provider in enumerate(PROVIDERS if full else PROVIDERS[:1]):
        scene = Scene(work / provider, provider)
        share = kills // 2 if full else kills
        facts[provider] = _play(scene, full, share, random.Random(seed + number), complaints)
    return Outcome(
        kills - len(complaints), len(complaints), {"kills": kills, **facts}, tuple(complaints)
    )


def _play(
    scene: Scene, full: bool, kills: int, chance: random.Random, complaints: list[str]
) -> dict[str, object]:
    from clawmark.memory import Memory

    # Large enough that the log of one transaction, which has a least size, does not count for much:
    # some 8 MB.
    files, paragraphs = (FILES, 40) if full else (FEW_FILES, 150)
    queries = scene.write_notes(files, seed=chance.randrange(1000), paragraphs=paragraphs)
    queries = chance.sample(queries, QUERIES)
    scene.run("index")
    one = scene.index_bytes()
    _, longest = timed(scene, "index", "--force")
    largest = scene.index_bytes() / one
    expected = [essence(answer) for answer in scene.answers(queries)]
    waits = moments(chance, longest)
    killed = 0
    config = str(scene.state / "clawmark.json")
    with Memory.open(state_dir=str(scene.state), config=config) as memory:
        for turn in range(kills):
            process = scene.start("index", "--force")
            killed += _kill(process, next(waits))
            largest = max(largest, scene.index_bytes() / one)
            query = chance.randrange(QUERIES)
            hits = memory.search(queries[query]).hits
            found = [
                (hit.path, hit.start_line, hit.end_line, round(hit.score, 6), hit.snippet)
                for hit in hits
            ]
            if found != expected[query]:
                complaints.append(f"kill {turn}: {found} instead of {expected[query]}")
            if (
                turn % ASK_IN_NEW_PROCESS_EVERY == 0
                and [essence(a) for a in scene.answers(queries)] != expected
            ):
                complaints.append(f"kill {turn}: a new process answers something else")
    if largest > MOST + (0 if full else LOG_ROOM / one):
        complaints.append(f"the index took {largest:.2f} times the room of one")
    for words in (("index", "--force"), ("verify",)):
        ended = scene.run(*words)
        if not is_clean(ended):
            complaints.append(
                f"{words} in the end: {ended.code} {ended.out[-300:]} {ended.err[-300:]}"
            )
    if [essence(answer) for answer in scene.answers(queries)] != expected:
        complaints.append("other answers in the end")
    if scene.set_aside():
        complaints.append(f"set aside: {scene.set_aside()}")
    return {
        "killed_in_time": killed,
        "largest_times_one_index": round(largest, 3),
        "one_index_bytes": one,
    }


def _kill(process: subprocess.Popen[str], wait: float) -> bool:
    """Kill a process after a while; whether it was still at work."""
    try:
        process.wait(wait)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
    process.communicate()
    return process.returncode == -signal.SIGKILL
