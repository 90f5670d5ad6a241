"""Which files connect a host to the memory, and what stands in them: a host's name in, a list of
additions out.

Seven hosts: all of them start `clawmark mcp` themselves and read a skill; Claude Code and Codex
also have hooks. Paths and shapes are those of the hosts' own documentation in autumn 2026. Nothing
is read or written here but the question which files there are; `install` does the rest."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from clawmark.hooks.events import EVENTS
from clawmark.hooks.jsontext import get
from clawmark.hooks.tomltext import table
from clawmark.model.errors import ConfigError

NAMES = ("claude-code", "codex", "cursor", "vscode", "gemini", "opencode", "openclaw")
SERVER = "clawmark"

Scope = Literal["user", "project"]


class Addition(NamedTuple):
    """Something that belongs into a file."""

    file: str
    form: Literal["json", "item", "toml", "text"]
    """A member of an object, an item of a list, a block at the end, or the whole file."""
    path: tuple[str, ...] = ()
    value: object = None
    lines: tuple[str, ...] = ()


class Surroundings(NamedTuple):
    """What the places of a host's files depend on."""

    home: str
    project: str
    environ: Mapping[str, str]
    platform: str = sys.platform


class Launch(NamedTuple):
    """How a host starts the program."""

    program: tuple[str, ...]
    flags: tuple[str, ...] = ()
    """Which memory: `--workspace DIR` and the like."""

    def mcp(self) -> list[str]:
        return [*self.program, "mcp", *self.flags]

    def hook(self, host: str, event: str) -> str:
        return quoted([*self.program, "hook", host, event, *self.flags])


def additions(
    host: str, scope: Scope, around: Surroundings, launch: Launch, skill: str
) -> list[Addition]:
    """Everything that connects a host."""
    if scope == "project" and host == "openclaw":
        raise ConfigError(
            "OpenClaw has one configuration for all projects.", hint="Leave --project out."
        )
    folder = _folder(host, around) if scope == "user" else around.project
    found = _ADDITIONS[host](folder, scope, around, launch)
    return [*found, Addition(_skill_file(host, folder, scope, around), "text", lines=(skill,))]


def quoted(words: Sequence[str]) -> str:
    """A command line for the shell that hosts use."""
    if os.name == "nt":
        return subprocess.list2cmdline(words)
    return shlex.join(words)


# --- where --------------------------------------------------------------------------------------------------------------


def _folder(host: str, around: Surroundings) -> str:
    """Where a host keeps what is for all projects."""
    env, home = around.environ, around.home
    if host == "vscode":
        if around.platform == "darwin":
            return os.path.join(home, "Library", "Application Support", "Code", "User")
        base = env.get("APPDATA") if around.platform == "win32" else env.get("XDG_CONFIG_HOME")
        return os.path.join(base or os.path.join(home, ".config"), "Code", "User")
    if host == "opencode":
        return os.path.join(env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "opencode")
    variable, usual = _HOMES[host]
    return (env.get(variable) if variable else "") or os.path.join(home, usual)


_HOMES = {
    "claude-code": ("CLAUDE_CONFIG_DIR", ".claude"),
    "codex": ("CODEX_HOME", ".codex"),
    "cursor": ("", ".cursor"),
    "gemini": ("", ".gemini"),
    "openclaw": ("OPENCLAW_STATE_DIR", ".openclaw"),
}
_PROJECT_SKILLS = {
    "claude-code": ".claude",
    "codex": ".agents",
    "cursor": ".cursor",
    "vscode": ".github",
    "gemini": ".gemini",
    "opencode": ".opencode",
}


def _skill_file(host: str, folder: str, scope: Scope, around: Surroundings) -> str:
    """Each host has a folder of its own for skills, so that no two of ours are one file."""
    if scope == "project":
        folder = os.path.join(folder, _PROJECT_SKILLS[host])
    elif host in ("codex", "vscode"):
        folder = os.path.join(around.home, ".agents" if host == "codex" else ".copilot")
    return os.path.join(folder, "skills", SERVER, "SKILL.md")


def _existing(folder: str, *names: str) -> str:
    """The first of these files that is there, else the first."""
    paths = [os.path.join(folder, name) for name in names]
    return next((path for path in paths if os.path.lexists(path)), paths[0])


# --- what --------------------------------------------------------------------------------------------------------------


def _stdio(launch: Launch) -> dict[str, object]:
    command, *args = launch.mcp()
    return {"command": command, "args": args}


def _hooks(host: str, file: str, launch: Launch) -> list[Addition]:
    # Each is put before the others, so that they end up in the order of a session.
    return [
        Addition(file=file, form="item", path=("hooks", event), value=_group(host, event, launch))
        for event in reversed(EVENTS)
    ]


def _group(host: str, event: str, launch: Launch) -> dict[str, object]:
    return {**_matcher(event), "hooks": [_command(host, event, launch)]}


def _matcher(event: str) -> dict[str, object]:
    """A session that is taken up again has its context already: `resume` is left out."""
    return {"matcher": "startup|clear|compact"} if event == "SessionStart" else {}


def _command(host: str, event: str, launch: Launch) -> dict[str, object]:
    # Codex gives the end of a session three seconds at most, and complains about more.
    return {
        "type": "command",
        "command": launch.hook(host, event),
        "timeout": 3 if event == "SessionEnd" else 10,
    }


def _claude_code(folder: str, scope: Scope, around: Surroundings, launch: Launch) -> list[Addition]:
    if scope == "project":
        servers, settings = (
            os.path.join(folder, ".mcp.json"),
            os.path.join(folder, ".claude", "settings.json"),
        )
    else:
        moved = around.environ.get("CLAUDE_CONFIG_DIR")
        servers, settings = (
            os.path.join(moved or around.home, ".claude.json"),
            os.path.join(folder, "settings.json"),
        )
    value = {"type": "stdio", **_stdio(launch)}
    return [
        Addition(file=servers, form="json", path=("mcpServers", SERVER), value=value),
        *_hooks("claude-code", settings, launch),
    ]


def _codex(folder: str, scope: Scope, around: Surroundings, launch: Launch) -> list[Addition]:
    """One block in config.toml.

    The hooks are in it too, unless there is a hooks.json: Codex warns about both at once.
    """
    folder = os.path.join(folder, ".codex") if scope == "project" else folder
    config, hooks = os.path.join(folder, "config.toml"), os.path.join(folder, "hooks.json")
    lines = table(f"mcp_servers.{SERVER}", _stdio(launch))[1:]
    if os.path.lexists(hooks):
        return [Addition(config, "toml", lines=tuple(lines)), *_hooks("codex", hooks, launch)]
    for event in EVENTS:
        matcher, command = _matcher(event), _command("codex", event, launch)
        lines += table(f"hooks.{event}", matcher, is_item=True) + table(
            f"hooks.{event}.hooks", command, is_item=True
        )
    return [Addition(config, "toml", lines=tuple(lines))]


def _cursor(folder: str, scope: Scope, around: Surroundings, launch: Launch) -> list[Addition]:
    folder = os.path.join(folder, ".cursor") if scope == "project" else folder
    return [
        Addition(
            file=os.path.join(folder, "mcp.json"),
            form="json",
            path=("mcpServers", SERVER),
            value=_stdio(launch),
        )
    ]


def _vscode(folder: str, scope: Scope, around: Surroundings, launch: Launch) -> list[Addition]:
    folder = os.path.join(folder, ".vscode") if scope == "project" else folder
    value = {"type": "stdio", **_stdio(launch)}
    return [
        Addition(
            file=os.path.join(folder, "mcp.json"),
            form="json",
            path=("servers", SERVER),
            value=value,
        )
    ]


def _gemini(folder: str, scope: Scope, around: Surroundings, launch: Launch) -> list[Addition]:
    folder = os.path.join(folder, ".gemini") if scope == "project" else folder
    return [
        Addition(
            file=os.path.join(folder, "settings.json"),
            form="json",
            path=("mcpServers", SERVER),
            value=_stdio(launch),
        )
    ]


def _opencode(folder: str, scope: Scope, around: Surroundings, launch: Launch) -> list[Addition]:
    """Version 2 has its servers under `mcp.servers`, version 1 directly under `mcp`; a file says
    which one it is for.
    """
    file = _existing(folder, "opencode.json", "opencode.jsonc")
    path = ("mcp", SERVER) if _is_version_1(file) else ("mcp", "servers", SERVER)
    return [
        Addition(
            file=file, form="json", path=path, value={"type": "local", "command": launch.mcp()}
        )
    ]


def _is_version_1(file: str) -> bool:
    try:
        with open(file, encoding="utf-8") as opened:
            mcp = get(opened.read(), ("mcp",), file)
    except (OSError, UnicodeDecodeError, ConfigError):
        return False  # whoever edits it says what is wrong
    servers = mcp if isinstance(mcp, dict) else {}
    return "servers" not in servers and any(
        isinstance(one, dict) and "type" in one for one in servers.values()
    )


def _openclaw(folder: str, scope: Scope, around: Surroundings, launch: Launch) -> list[Addition]:
    file = around.environ.get("OPENCLAW_CONFIG_PATH") or os.path.join(folder, "openclaw.json")
    return [Addition(file=file, form="json", path=("mcp", "servers", SERVER), value=_stdio(launch))]


_ADDITIONS = {
    "claude-code": _claude_code,
    "codex": _codex,
    "cursor": _cursor,
    "vscode": _vscode,
    "gemini": _gemini,
    "opencode": _opencode,
    "openclaw": _openclaw,
}
