"""`clawmark install`: connect a coding agent by editing its configuration; --remove undoes it."""

from __future__ import annotations

import difflib
import os
import re
import sys
from argparse import ArgumentParser, Namespace
from importlib.resources import files
from importlib.util import find_spec

from clawmark.cli.arguments import UsageError, some_text
from clawmark.cli.output import emit, note, paint, plain, say
from clawmark.config.load import load as load_settings
from clawmark.config.paths import Places, name_for, resolve_places
from clawmark.hooks.events import EVENTS, USUAL_EVENTS
from clawmark.hooks.hosts import NAMES, Launch, Scope, Surroundings, additions
from clawmark.hooks.install import Edit, Plan, carry_out, plan_install, plan_removal
from clawmark.hooks.receipt import load
from clawmark.text.secrets.redact import Redactor

EXAMPLES = """\
examples:
  clawmark install claude-code --dry-run         # show what would change
  clawmark install claude-code                   # for all projects
  clawmark install cursor --project              # for the current folder
  clawmark install codex --workspace ~/agent
  clawmark install codex --remove                # undo"""

NEXT = {
    "claude-code": "Start a new session; /mcp and /hooks show what is connected.",
    "codex": "Start Codex again and trust the hooks (/hooks); `codex "
    "exec` skips hooks that are not trusted.",
    "cursor": "Cursor asks whether to start the server: Settings, MCP.",
    "vscode": "Start the server from the command `MCP: List Servers`.",
    "gemini": "Start Gemini CLI again in a folder that it trusts "
    "(/permissions); /mcp shows the server.",
    "opencode": "Start opencode again.",
    "openclaw": "Restart the gateway; `openclaw mcp list` shows the server.",
}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("host", choices=NAMES, metavar="HOST", help=", ".join(NAMES))
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would change without changing it"
    )
    parser.add_argument(
        "--remove",
        action="store_true",
        help="remove what was added; everything else is kept",
    )
    parser.add_argument(
        "--project", action="store_true", help="connect the project in the current folder"
    )
    parser.add_argument(
        "--user", action="store_true", help="connect all projects of this user (the default)"
    )
    parser.add_argument(
        "--program",
        type=some_text,
        metavar="FILE",
        help="the command the host runs (default: the full path of this clawmark)",
    )


def run(args: Namespace) -> int:
    if args.project and args.user:
        raise UsageError("--project and --user cannot be combined.")
    scope: Scope = "project" if args.project else "user"
    places = resolve_places(
        args.workspace, args.agent, args.config, args.state_dir, must_exist=False
    )
    around = Surroundings(os.path.expanduser("~"), os.getcwd(), os.environ)
    wanted = additions(args.host, scope, around, _launch(args, scope, places), _skill())
    kept = args.host if scope == "user" else f"{args.host}-{name_for(around.project)}"
    folder = os.path.join(places.state_dir, "install", kept)
    receipt = load(folder)
    plan = plan_removal(wanted, receipt) if args.remove else plan_install(wanted, receipt)
    if not args.dry_run and (plan.edits or args.remove):
        carry_out(plan, receipt, folder, mode=0o600 if scope == "user" else 0o644)
    _report(plan, args, os.path.join(folder, "backups"))
    if not (args.remove or args.json):
        _warn(places)
    return 0


def _launch(args: Namespace, scope: Scope, places: Places) -> Launch:
    """Return the command for the host: with full paths, unless the file is shared in a project."""
    given = {"--workspace": args.workspace, "--config": args.config, "--state-dir": args.state_dir}
    if scope == "user":
        given["--workspace"] = places.workspace
        given["--config"] = args.config or os.environ.get("CLAWMARK_CONFIG")
        given["--state-dir"] = args.state_dir or os.environ.get("CLAWMARK_STATE_DIR")
    flags = [
        word
        for flag, path in given.items()
        if path
        for word in (flag, os.path.abspath(os.path.expanduser(path)))
    ]
    flags += ["--agent", args.agent] if args.agent else []
    # A removal takes out what any memory plugin may have needed.
    needs_turns = args.remove or load_settings(places).settings.plugins.has_hooks
    events = EVENTS if needs_turns else USUAL_EVENTS
    if args.program:
        return Launch((os.path.expanduser(args.program),), tuple(flags), events)
    return Launch(("clawmark",) if scope == "project" else _this_program(), tuple(flags), events)


def _this_program() -> tuple[str, ...]:
    name = "clawmark.exe" if os.name == "nt" else "clawmark"
    sibling = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), name)
    called = os.path.abspath(sys.argv[0])
    found = next(
        (
            path
            for path in (called, sibling)
            if os.path.basename(path) == name and os.path.isfile(path)
        ),
        "",
    )
    return (found,) if found else (os.path.abspath(sys.executable), "-m", "clawmark")


def _skill() -> str:
    return files("clawmark.hooks").joinpath("SKILL.md").read_text(encoding="utf-8")


def _report(plan: Plan, args: Namespace, backups: str) -> None:
    if args.json:
        changes = [
            {"file": edit.file, "action": _action(edit), "diff": _diff(edit)} for edit in plan.edits
        ]
        emit(
            {
                "host": args.host,
                "dryRun": args.dry_run,
                "changes": changes,
                "notices": list(plan.notices),
                "backups": backups,
            }
        )
        return
    styles = {"+": "green", "-": "red", "@": "dim"}
    for edit in plan.edits:
        if os.path.basename(edit.file) == "SKILL.md":
            continue  # a whole page of text
        for line in _diff(edit).splitlines():
            style = styles.get(line[:1])
            say(paint(plain(line), style) if style else plain(line))
    for notice in plan.notices:
        say(plain(notice))
    would = "would be " if args.dry_run else ""
    for edit in plan.edits:
        say(f"{plain(edit.file)} {would}{_action(edit)}")
    if not plan.edits:
        say(
            f"{args.host} is not connected."
            if args.remove
            else "Already connected; nothing to change."
        )
    elif not args.dry_run:
        if any(edit.before is not None for edit in plan.edits):
            say(paint(f"Backups of the changed files: {plain(backups)}", "dim"))
        say("Disconnected." if args.remove else f"Connected. {NEXT[args.host]}")


def _action(edit: Edit) -> str:
    return "created" if edit.before is None else "removed" if edit.after is None else "changed"


def _diff(edit: Edit) -> str:
    """Return the diff with secrets masked, because such files often hold API keys."""
    before, after = (
        (data or b"").decode("utf-8", "replace").splitlines() for data in (edit.before, edit.after)
    )
    # Compare only the part that differs: a host's file may have 100,000 lines.
    skipped = max(0, _same(before, after) - 1)
    same = _same(before[skipped:][::-1], after[skipped:][::-1])
    before, after = (lines[skipped : len(lines) - max(0, same - 1)] for lines in (before, after))
    lines = difflib.unified_diff(before, after, edit.file, edit.file, lineterm="", n=1)
    return Redactor(()).clean("\n".join(_moved(line, skipped) for line in lines))


def _same(one: list[str], other: list[str]) -> int:
    """Count the lines that two texts have in common at the start."""
    pairs = enumerate(zip(one, other, strict=False))
    return next(
        (number for number, (left, right) in pairs if left != right), min(len(one), len(other))
    )


def _moved(line: str, by: int) -> str:
    """Shift the line numbers in the header of a diff hunk."""
    if not line.startswith("@@ "):
        return line
    return re.sub(r"([-+])([0-9]+)", lambda found: f"{found[1]}{int(found[2]) + by}", line)


def _warn(places: Places) -> None:
    if not os.path.isdir(places.workspace):
        note(
            f"clawmark: {plain(places.workspace)} does not exist yet; create it with: clawmark "
            f"init {plain(places.workspace)}"
        )
    if find_spec("mcp") is None:
        note("clawmark: the MCP server needs the extra `mcp`: pip install 'clawmark[mcp]'")
