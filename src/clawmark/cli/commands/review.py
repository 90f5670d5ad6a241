"""`clawmark review`: decide about the changes that agents want to make to the memory."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from clawmark.agent.review.box import ProposalBox
from clawmark.agent.review.hunks import NoLongerApplies
from clawmark.agent.review.proposals import Proposal, as_json
from clawmark.cli.arguments import UsageError, count, some_text
from clawmark.cli.layout import plural, short_path
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import emit, is_terminal, note, paint, place, say
from clawmark.cli.review.keys import Keyboard
from clawmark.cli.review.screen import HELP, edit_hunk, review_all, summary
from clawmark.cli.review.text import listing, no_longer_applies, proposal_lines
from clawmark.memory import Memory

EXAMPLES = f"""\
examples:
  clawmark review                       # on a terminal: one key for each change
  clawmark review list --all            # also what was decided before
  clawmark review show p3
  clawmark review accept p3             # all of its changes, or none
  clawmark review accept p3 --hunk 2
  clawmark review reject p3 --reason "only true for the old office"
  clawmark review edit p3 --hunk 1      # in $VISUAL or $EDITOR

keys on a terminal:
{HELP}

What is accepted counts as confirmed by you. The setting `memory.review` says
what waits for review."""

INTERMIXED = True
ACTIONS = ("list", "show", "accept", "reject", "edit")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        choices=ACTIONS,
        help="what to do (default: ask about each change on a terminal, otherwise list)",
    )
    parser.add_argument("id", nargs="?", type=some_text, metavar="ID", help="a proposal, as p3")
    parser.add_argument(
        "--hunk",
        type=count(1, 10_000),
        action="append",
        metavar="N",
        help="one of its changes (default: all that are pending); may be repeated",
    )
    parser.add_argument(
        "--reason", type=some_text, metavar="TEXT", help="with reject: why, as a note for yourself"
    )
    parser.add_argument(
        "--all", action="store_true", help="with list: also what was accepted or rejected"
    )


def run(args: Namespace) -> int:
    _check(args)
    with open_memory(args) as memory:
        box = memory.review
        for damaged in box.damaged():
            note(f"clawmark: {short_path(damaged.path)} is not a proposal: {damaged.reason}.")
        if args.action in (None, "list"):
            is_dialogue = args.action is None and not args.json and _has_terminal()
            return _ask(memory, box) if is_dialogue else _list(box, args)
        if args.action == "show":
            return _show(box.get(args.id), args)
        return _change(memory, box, args)


def _check(args: Namespace) -> None:
    needs_id = args.action in ("show", "accept", "reject", "edit")
    if needs_id != (args.id is not None):
        what = "needs the id of a proposal, such as p3" if needs_id else "takes no id"
        raise UsageError(f"`review {args.action}` {what}.")
    if args.hunk and args.action not in ("accept", "reject", "edit"):
        raise UsageError("--hunk goes with accept, reject or edit.")
    if args.reason and args.action != "reject":
        raise UsageError("--reason goes with reject.")
    if args.all and args.action not in (None, "list"):
        raise UsageError("--all goes with list.")


def _has_terminal() -> bool:
    return is_terminal(sys.stdin) and is_terminal(sys.stdout)


def _ask(memory: Memory, box: ProposalBox) -> int:
    if not box.list():
        say("Nothing waits for review.")
        return 0
    keyboard = Keyboard()
    with keyboard.opened():
        counts = review_all(box, memory.places.state_dir, keyboard)
    say(summary(counts, box.count()))
    return 0


def _list(box: ProposalBox, args: Namespace) -> int:
    proposals = box.list(decided=args.all)
    if args.json:
        emit({"proposals": [as_json(one) for one in proposals]})
    elif proposals:
        say("\n".join(listing(proposals)))
    else:
        say("Nothing waits for review.")
    return 0


def _show(proposal: Proposal, args: Namespace) -> int:
    if args.json:
        emit(as_json(proposal))
    else:
        say("\n".join(proposal_lines(proposal)))
    return 0


def _change(memory: Memory, box: ProposalBox, args: Namespace) -> int:
    if args.action == "edit":
        return _edit(memory, box, args)
    before = box.get(args.id).pending
    if args.action == "accept":
        outcome = box.accept(args.id, args.hunk)
        if isinstance(outcome, NoLongerApplies):
            raise no_longer_applies(args.id, outcome)
    else:
        outcome = box.reject(args.id, args.hunk, reason=args.reason or "")
    if args.json:
        emit(as_json(outcome))
        return 0
    decided = [number for number in before if number not in outcome.pending]
    if args.action == "accept":
        paths = dict.fromkeys(outcome.hunks[number - 1].path for number in decided)
        where = ", ".join(paint(place(path), "bold") for path in paths)
        say(f"Wrote {plural(len(decided), 'change')} to {where}.")
    else:
        say(f"Rejected {plural(len(decided), 'change')} of {args.id}; not proposed again.")
    _say_rest(outcome)
    return 0


def _edit(memory: Memory, box: ProposalBox, args: Namespace) -> int:
    numbers: Sequence[int] = args.hunk or box.get(args.id).pending
    if len(numbers) > 1:
        raise UsageError(f"{args.id} has several changes: name one with --hunk.")
    (number,) = numbers or (1,)
    is_changed = edit_hunk(box, args.id, number, memory.places.state_dir)
    proposal = box.get(args.id)
    if args.json:
        emit({"changed": is_changed, **as_json(proposal)})
    elif is_changed:
        say(f"Hunk {number} of {args.id} is changed. To write it: clawmark review accept {args.id}")
    else:
        say(f"Hunk {number} of {args.id} is unchanged.")
    return 0


def _say_rest(proposal: Proposal) -> None:
    if proposal.pending:
        left = ", ".join(map(str, proposal.pending))
        say(paint(f"Still pending in {proposal.id}: hunk {left}", "dim"))
