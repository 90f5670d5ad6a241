"""`clawmark space`: manage the shared spaces of a team and their members."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from clawmark.cli.arguments import UsageError, stored_text
from clawmark.cli.as_json import as_json
from clawmark.cli.layout import plural, table
from clawmark.cli.output import confirm, emit, is_interactive, note, paint, say
from clawmark.composition.stores import open_team_admin
from clawmark.config.load import load
from clawmark.config.paths import resolve_places

if TYPE_CHECKING:
    from clawmark.composition.stores.team_admin import TeamAdmin
    from clawmark.store.postgres.team.admin import SpaceSummary

EXAMPLES = """\
examples:
  clawmark space create team
  clawmark space grant team ada --write
  clawmark space grant team ben --login reports
  clawmark space list
  clawmark space revoke team ben --login reports
  clawmark space delete team

A member is a name of a login of the database: the name that `team.name` has on
the member's machine, or the name of a token. Without --login it is the login
of the address that this command uses. The login must own the tables."""
INTERMIXED = True
_WORDS = {"create": 1, "list": 0, "grant": 2, "revoke": 2, "delete": 1}
_FLAGS = {
    "grant": ("write", "author", "login"),
    "revoke": ("withdraw", "login"),
    "delete": ("yes",),
}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        choices=tuple(_WORDS),
        default="list",
        help="what to do (default: list all spaces with their members)",
    )
    parser.add_argument("space", nargs="?", type=stored_text, metavar="SPACE", help="its name")
    parser.add_argument(
        "name", nargs="?", type=stored_text, metavar="NAME", help="the member, for grant and revoke"
    )
    parser.add_argument("--write", action="store_true", help="grant: the member may also write")
    parser.add_argument(
        "--author",
        type=stored_text,
        metavar="NAME",
        help="grant: the name the member writes under (default: NAME)",
    )
    parser.add_argument(
        "--login",
        type=stored_text,
        metavar="LOGIN",
        help="grant, revoke: the login of the member (default: the one of this command)",
    )
    parser.add_argument(
        "--withdraw",
        action="store_true",
        help="revoke: also withdraw what the member has published",
    )
    parser.add_argument("--yes", action="store_true", help="delete: do not ask for confirmation")


def run(args: Namespace) -> int:
    _check(args)
    places = resolve_places(
        args.workspace, args.agent, args.config, args.state_dir, must_exist=False
    )
    with open_team_admin(load(places).settings) as admin:
        match args.action:
            case "create":
                admin.create_space(args.space)
                _answer(args, {"created": args.space}, f"The space {args.space} is made.")
                note(f"clawmark: `clawmark space grant {args.space} NAME --write` adds a member.")
            case "grant":
                _grant(admin, args)
            case "revoke":
                gone = admin.revoke(
                    args.space, args.name, login=args.login or "", withdraw=args.withdraw
                )
                withdrawn = f", and {plural(gone, 'file')} withdrawn" if args.withdraw else ""
                text = f"{args.name} is no longer a member of {args.space}{withdrawn}."
                _answer(args, {"revoked": args.name, "space": args.space, "withdrawn": gone}, text)
            case "delete":
                return _delete(admin, args)
            case _:
                _list(admin.list_spaces(), args)
    return 0


def _check(args: Namespace) -> None:
    """Raise UsageError for missing or superfluous words and flags."""
    words = [word for word in (args.space, args.name) if word is not None]
    if len(words) != _WORDS[args.action]:
        form = {0: "", 1: " SPACE", 2: " SPACE NAME"}[_WORDS[args.action]]
        raise UsageError(f"Use `clawmark space {args.action}{form}`.")
    for flag in ("write", "author", "login", "withdraw", "yes"):
        if getattr(args, flag) and flag not in _FLAGS.get(args.action, ()):
            raise UsageError(f"--{flag} has no meaning with `clawmark space {args.action}`.")


def _grant(admin: TeamAdmin, args: Namespace) -> None:
    done = admin.grant(
        args.space,
        args.name,
        login=args.login or "",
        author=args.author or "",
        may_write=args.write,
    )
    member = done.member
    what = "read and write" if member.may_write else "read"
    author = f" as {member.author}" if member.author != member.name else ""
    _answer(
        args,
        as_json(done),
        f"{member.name} of the login {member.login} may {what} {done.space}{author}.",
    )


def _delete(admin: TeamAdmin, args: Namespace) -> int:
    found = admin.find_space(args.space)
    if not args.yes:
        if args.json or not is_interactive():
            raise UsageError(
                "Deleting a space has to be confirmed, and the input is not a terminal.",
                hint="Add --yes.",
            )
        holds = f"{plural(found.documents, 'file')} and {found.entries:,} log entries"
        if not confirm(f"Delete the space {found.name} with {holds} for good?"):
            note("clawmark: nothing was deleted.")
            return 0
    admin.delete_space(found.name)
    _answer(args, {"deleted": found.name}, f"The space {found.name} is deleted.")
    return 0


def _list(found: list[SpaceSummary], args: Namespace) -> None:
    if args.json:
        emit({"spaces": as_json(found)})
        return
    if not found:
        note("clawmark: there are no spaces; `clawmark space create NAME` makes one.")
        return
    rows = [("SPACE", "FILES", "ENTRIES", "MEMBER", "LOGIN", "MAY")]
    for space in found:
        first = (space.name, f"{space.documents:,}", f"{space.entries:,}")
        members = [
            (
                one.author if one.author == one.name else f"{one.author} ({one.name})",
                one.login,
                "read, write" if one.may_write else "read",
            )
            for one in space.members
        ]
        for number, member in enumerate(members or [("-", "-", "-")]):
            rows.append((*(first if number == 0 else ("", "", "")), *member))
    head, *others = table(rows, right=(1, 2))
    say("\n".join([paint(head, "dim"), *others]))


def _answer(args: Namespace, document: object, text: str) -> None:
    if args.json:
        emit(document)
    else:
        say(text)
