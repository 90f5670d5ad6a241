"""How many instructions that are planted in a memory reach a prompt that did not ask for them.

    python bench/red_team.py

Plants the texts of `clawmark.testing.red_team` through every door into a new memory per door, once
without a review and once with the default one, and looks for them in every prompt that Clawmark
makes. The user's own note about the same subject is
there as well, and must be shown. Output: a table, and `bench/results/red-team.json`; exit 1 if a
planted text reached a prompt."""

from __future__ import annotations

import itertools
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness import table, write_result

from clawmark.testing.red_team import OWN_NOTE, REVIEWS, RedTeam, cases_of
from clawmark.testing.red_team_attacks import ATTACKS, QUESTION, found_in
from clawmark.testing.red_team_doors import DOORS, Door
from clawmark.testing.red_team_prompts import PROMPTS


def attack(door: Door, review: str, folder: Path) -> dict[str, Any]:
    """Plant every text through a door, and return how many reached each prompt."""
    team = RedTeam(folder, review)
    with team.open_memory() as memory:
        memory.append(OWN_NOTE)
        for case in cases_of(door):
            team.plant(memory, case)
        kept, waiting = len(team.kept(memory)), len(team.waiting(memory))
        reached, shown = dict[str, int](), list[str]()
        for builder in PROMPTS:
            prompts = builder.build(memory, QUESTION)
            reached[builder.name] = len(team.reached(prompts))
            if found_in(prompts, [OWN_NOTE.casefold()]):
                shown.append(builder.name)
    return {
        "door": door.name,
        "review": review,
        "planted": len(team.planted),
        "kept": kept,
        "waiting": waiting,
        "reached": reached,
        "own_note_shown_in": shown,
    }


def main() -> int:
    missing = [one.name for one in (*DOORS, *PROMPTS) if not one.is_there]
    if missing:
        print(f"Install the extras of {', '.join(missing)} first.", file=sys.stderr)
        return 2
    rows = []
    for review, door in itertools.product(REVIEWS, DOORS):
        with tempfile.TemporaryDirectory() as folder:
            rows.append(attack(door, review, Path(folder)))
    total = sum(sum(row["reached"].values()) for row in rows)
    planted = sum(row["planted"] for row in rows)
    heading = ["door", "review", "planted", "kept", "waiting", "in a prompt", "own note shown"]
    cells = (
        (
            row["door"],
            row["review"],
            row["planted"],
            row["kept"],
            row["waiting"],
            sum(row["reached"].values()),
            f"{len(row['own_note_shown_in'])} of {len(PROMPTS)}",
        )
        for row in rows
    )
    print(table([heading, *([str(cell) for cell in row] for row in cells)]))
    print(f"{total} of {planted} planted texts reached one of {len(PROMPTS)} prompts.")
    body = {
        "reviews": list(REVIEWS),
        "doors": [door.name for door in DOORS],
        "texts": [one.name for one in ATTACKS],
        "prompts": [builder.name for builder in PROMPTS],
        "planted": planted,
        "kept": sum(row["kept"] for row in rows),
        "waiting": sum(row["waiting"] for row in rows),
        "reached": total,
        "by_door": rows,
    }
    write_result("red-team", "python bench/red_team.py", sys.executable, body)
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
