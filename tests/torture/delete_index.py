"""I-02: the index can be deleted at any moment; what is built again gives the same answers, to the
last digit of the score.

Processes that search, index and rebuild are at work when the files of the index are deleted under
them, together or one by one, with their log or without. None of them may end with an error, and no
answer may be wrong without saying that it is not complete. Afterwards `clawmark index` brings back
every answer: paths, lines, scores, snippets and order."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from frame import Outcome
from scene import SIDECARS, Scene, essence, finish, is_clean, is_honest, moments, timed

FILES, QUERIES, ROUNDS = 1000, 200, 60
FEW_FILES, FEW_QUERIES, FEW_ROUNDS = 60, 25, 6
PROVIDERS = ("none", "static")
WORK = (("search", "--batch", "-"), ("index",), ("index", "--force"))


def run(work: Path, full: bool, seed: int) -> Outcome:
    complaints: list[str] = []
    facts: dict[str, object] = {
        "files": FILES if full else FEW_FILES,
        "queries": QUERIES if full else FEW_QUERIES,
    }
    rounds = ROUNDS if full else FEW_ROUNDS
    for number, provider in enumerate(PROVIDERS if full else PROVIDERS[:1]):
        scene = Scene(work / provider, provider)
        facts[f"rebuild_seconds_{provider}"] = _play(
            scene, full, rounds, random.Random(seed + number), complaints
        )
    facts["deletions"] = rounds * (len(PROVIDERS) if full else 1)
    passed = int(str(facts["deletions"])) - len(complaints)
    return Outcome(max(passed, 0), len(complaints), facts, tuple(complaints))


def _play(
    scene: Scene, full: bool, rounds: int, chance: random.Random, complaints: list[str]
) -> float:
    """Delete the index so many times; how long the longest rebuild took."""
    queries = scene.write_notes(FILES if full else FEW_FILES, seed=chance.randrange(1000))
    queries = chance.sample(queries, QUERIES if full else FEW_QUERIES)
    _, longest = timed(scene, "index", "--force")
    expected = scene.answers(queries)
    waits = moments(chance, longest)
    for turn in range(rounds):
        words = WORK[turn % len(WORK)]
        _delete_under(scene, words, queries, expected, next(waits), chance, complaints)
        ended, seconds = timed(scene, "index")
        longest = max(longest, seconds)
        answers = scene.answers(queries)
        if not is_clean(ended):
            complaints.append(f"round {turn}: index after {words}: {ended.code} {ended.err[-300:]}")
        elif [essence(answer) for answer in answers] != [essence(answer) for answer in expected]:
            complaints.append(
                f"round {turn}: other answers after {words}: {_first_difference(answers, expected)}"
            )
    return round(longest, 2)


def _delete_under(
    scene: Scene,
    words: tuple[str, ...],
    queries: list[str],
    expected: list[dict[str, Any]],
    wait: float,
    chance: random.Random,
    complaints: list[str],
) -> None:
    """Let a process work, and delete the index while it does."""
    import json

    process = scene.start(*words)
    if words[0] == "search":
        assert process.stdin is not None
        # Half of the questions now, the rest after the deletion.
        process.stdin.write("".join(f"{query}\n" for query in queries[::2]))
        process.stdin.flush()
    _pause(process, wait)
    _delete(scene, chance)
    ended = finish(
        process, "".join(f"{query}\n" for query in queries[1::2]) if words[0] == "search" else None
    )
    if not is_clean(ended):
        complaints.append(f"{words} ended with {ended.code}: {ended.err[-300:]}")
        return
    if words[0] == "search":
        order = expected[::2] + expected[1::2]
        for line, wanted in zip(ended.out.splitlines(), order, strict=True):
            if not is_honest(json.loads(line), wanted):
                complaints.append(f"a wrong answer that claims to be complete: {line[:300]}")
                return


def _delete(scene: Scene, chance: random.Random) -> None:
    """The main file for certain; the others perhaps, in any order."""
    names = [f"{scene.index}{suffix}" for suffix in ("", *SIDECARS, ".seal", ".lock")]
    doomed = [names[0], *(name for name in names[1:] if chance.random() < 0.7)]
    chance.shuffle(doomed)
    for name in doomed:
        Path(name).unlink(missing_ok=True)


def _pause(process: Any, seconds: float) -> None:
    """Wait a while, or until the process ends by itself."""
    import subprocess

    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return


def _first_difference(answers: list[dict[str, Any]], expected: list[dict[str, Any]]) -> str:
    for answer, wanted in zip(answers, expected, strict=True):
        if essence(answer) != essence(wanted):
            got = [hit[:4] for hit in essence(answer)]
            return (
                f"{got} instead of "
                f"{[hit[:4] for hit in essence(wanted)]}, due {answer.get('dueFiles')}"
            )
    return "another number of answers"
