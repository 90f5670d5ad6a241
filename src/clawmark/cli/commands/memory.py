"""`clawmark memory`: the commands of `openclaw memory`, so that existing scripts work.

They run the verbs of the same name. Only the JSON of `status` differs: it has OpenClaw's shape, a
list with one entry per agent."""

from __future__ import annotations

from argparse import REMAINDER, ArgumentParser, Namespace

from clawmark.cli.arguments import UsageError, common_flags, make_parser
from clawmark.cli.commands.status import gather
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import emit
from clawmark.cli.verbs import VERBS, module_of

COMMANDS = ("status", "index", "search")

EXAMPLES = """\
examples:
  clawmark memory status --deep
  clawmark memory index --force
  clawmark memory search --query "deployment" --max-results 20"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "command", metavar="COMMAND", help=f"{', '.join(COMMANDS[:-1])} or {COMMANDS[-1]}"
    )
    parser.add_argument(
        "words",
        nargs=REMAINDER,
        metavar="…",
        help="its arguments, see `clawmark COMMAND --help`",
    )


def run(args: Namespace) -> int:
    if args.command not in COMMANDS:
        raise UsageError(
            f"There is no command `clawmark memory {args.command}`; use {', '.join(COMMANDS[:-1])} "
            f"or {COMMANDS[-1]}.",
            hint="`clawmark --help` lists the other commands.",
        )
    module = module_of(args.command)
    parsed = make_parser(args.command, VERBS[args.command][1], module).parse_args(
        [*common_flags(args), *(["--json"] if args.json else []), *args.words]
    )
    if args.command == "status" and parsed.json:
        return _status(parsed)
    code: int = module.run(parsed)
    return code


def _status(args: Namespace) -> int:
    with open_memory(args, warn=False) as memory:
        status, probe = gather(memory, args)
        search, agent = memory.settings.memory_search, memory.places.agent
        best = memory.choice.embedders[-1].identity if memory.choice.embedders else None
    ready = [
        space for space in status.spaces if best is not None and space.identity[:3] == best[:3]
    ]
    body: dict[str, object] = {
        "backend": "builtin",
        "files": status.files,
        "chunks": status.chunks,
        "dirty": bool(status.due_files or status.due_vectors),
        "workspaceDir": status.workspace,
        "dbPath": status.index_path,
        "provider": best.provider if best is not None else "none",
        "model": best.model if best is not None else "fts-only",
        "requestedProvider": search.provider,
        "sources": list(search.sources),
        "extraPaths": list(search.extra_paths),
        "cache": {
            "enabled": True,
            "entries": status.cache_entries,
            "maxEntries": status.cache_limit,
        },
        "fts": {"enabled": True, "available": True},
        "vector": {
            "enabled": search.store.vector.enabled,
            "available": bool(ready),
            **({"dims": ready[0].identity.dims} if ready else {}),
        },
        "custom": {"searchMode": status.mode},
    }
    if status.degraded is not None:
        body["lastSyncError"] = status.degraded.reason
    issues = [f"{path}: {reason}" for path, reason in (*status.scan_failures, *status.skipped)]
    entry: dict[str, object] = {"agentId": agent, "status": body, "scan": {"issues": issues}}
    if probe is not None:
        entry["embeddingProbe"] = probe
    emit([entry])
    return 0
