"""`clawmark token`: make, list and revoke tokens for the server of a team."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from clawmark.cli.arguments import UsageError, count, stored_text
from clawmark.cli.as_json import as_json
from clawmark.cli.layout import table
from clawmark.cli.output import emit, note, paint, plain, say
from clawmark.composition.stores import open_team_admin
from clawmark.config.load import load
from clawmark.config.paths import resolve_places

if TYPE_CHECKING:
    from clawmark.composition.stores.team_admin import TeamAdmin
    from clawmark.store.postgres.team.access_tokens import TokenInfo

EXAMPLES = """\
examples:
  clawmark token create ada --label laptop
  clawmark token create ci --permission read --space team --days 90
  clawmark token list
  clawmark token revoke 3

A token is printed once and stored as a hash only. It stands for a member of a
space, so run `clawmark space grant` first, with the login that the server
connects with. The login of this command must own the tables."""
INTERMIXED = True
PERMISSIONS = ("read", "append", "publish")
MOST_DAYS = 3650
LONGEST_LABEL = 200
_CREATE_FLAGS = ("label", "permission", "space", "login", "days")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        choices=("create", "list", "revoke"),
        default="list",
        help="what to do (default: list all tokens)",
    )
    parser.add_argument(
        "word",
        nargs="?",
        type=stored_text,
        metavar="NAME|ID",
        help="create: the member it stands for; revoke: the number of the token",
    )
    parser.add_argument(
        "--label", type=stored_text, metavar="TEXT", help="what it is for; shown in the list"
    )
    parser.add_argument(
        "--permission",
        action="append",
        choices=PERMISSIONS,
        help="what it allows; may be repeated (default: all that the member may do)",
    )
    parser.add_argument(
        "--space",
        action="append",
        type=stored_text,
        metavar="SPACE",
        help="a space it is valid for; may be repeated (default: all of the member)",
    )
    parser.add_argument(
        "--login",
        type=stored_text,
        metavar="LOGIN",
        help="the login of the member (default: the one of this command)",
    )
    parser.add_argument(
        "--days",
        type=count(1, MOST_DAYS),
        metavar="N",
        help="how long it is valid (default: until it is revoked)",
    )


def run(args: Namespace) -> int:
    _check(args)
    places = resolve_places(
        args.workspace, args.agent, args.config, args.state_dir, must_exist=False
    )
    with open_team_admin(load(places).settings) as admin:
        match args.action:
            case "create":
                _create(admin, args)
            case "revoke":
                gone = admin.revoke_token(int(args.word))
                if args.json:
                    emit(as_json(gone))
                else:
                    say(f"Token {gone.id} of {gone.name} is not valid any more.")
            case _:
                _list(admin.list_tokens(), args)
    return 0


def _check(args: Namespace) -> None:
    """Raise UsageError for missing or superfluous words and flags."""
    if args.action != "create":
        for flag in _CREATE_FLAGS:
            if getattr(args, flag) is not None:
                raise UsageError(f"--{flag} has no meaning with `clawmark token {args.action}`.")
    if args.action == "list" and args.word is not None:
        raise UsageError("Use `clawmark token list`.")
    if args.action == "create" and args.word is None:
        raise UsageError("Use `clawmark token create NAME`.")
    if args.action == "revoke" and not _is_number(args.word):
        raise UsageError(
            "Use `clawmark token revoke ID`.", hint="`clawmark token list` shows the numbers."
        )
    if args.label is not None and len(args.label) > LONGEST_LABEL:
        raise UsageError(f"--label has more than {LONGEST_LABEL} characters.")


def _is_number(word: str | None) -> bool:
    return word is not None and word.isascii() and word.isdigit() and len(word) < 18


def _create(admin: TeamAdmin, args: Namespace) -> None:
    text, made = admin.create_token(
        args.word,
        login=args.login or "",
        label=args.label or "",
        permissions=args.permission or PERMISSIONS,
        spaces=args.space,
        days=args.days,
    )
    if args.json:
        emit({"token": text, "info": as_json(made)})
        return
    say(text)
    until = f" until {made.expires}" if made.expires else ""
    note(
        f"clawmark: token {made.id} stands for {made.name}{until}. It is not shown again: "
        "keep it in the environment variable CLAWMARK_TOKEN or in a password store."
    )


def _list(found: list[TokenInfo], args: Namespace) -> None:
    if args.json:
        emit({"tokens": as_json(found)})
        return
    if not found:
        note("clawmark: there are no tokens; `clawmark token create NAME` makes one.")
        return
    rows = [("ID", "NAME", "LOGIN", "LABEL", "MAY", "SPACES", "USED", "STATE")]
    rows += [
        (
            str(one.id),
            plain(one.name),
            plain(one.login),
            plain(one.label) or "-",
            ", ".join(one.permissions),
            "all" if one.spaces is None else ", ".join(one.spaces),
            (one.last_used or "never")[:10],
            _state(one),
        )
        for one in found
    ]
    head, *others = table(rows, right=(0,))
    say("\n".join([paint(head, "dim"), *others]))


def _state(token: TokenInfo) -> str:
    if token.revoked:
        return f"revoked {token.revoked[:10]}"
    return f"until {token.expires[:10]}" if token.expires else "valid"
