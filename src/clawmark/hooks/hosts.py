"""List the additions to configuration files that connect each host to the memory.

All hosts start `clawmark mcp` themselves and read a skill; Claude Code and Codex also have hooks.
Paths and formats are those documented by the hosts in autumn 2026. Nothing is written here."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from clawmark.hooks.events import USUAL_EVENTS
from clawmark.hooks.jsontext import get
from clawmark.hooks.tomltext import table
from clawmark.model.errors import ConfigError

NAMES = ("claude-code", "codex", "cursor", "vscode", "gemini", "opencode", "openclaw")
SERVER = "clawmark"

Scope = Literal["user", "project"]


class Addition(NamedTuple):
    """Something to add to a file."""

    file: str
    form: Literal["json", "item", "toml", "text"]
    """A member of an object, an item of a list, a block at the end, or the whole file."""
    path: tuple[str, ...] = ()
    value: object = None
    lines: tuple[str, ...] = ()


class Surroundings(NamedTuple):
    """What the paths of a host's files depend on."""

    home: str
    project: str
    environ: Mapping[str, str]
    platform: str = sys.platform


class Launch(NamedTuple):
    """How a host starts the program."""

    program: tuple[str, ...]
    flags: tuple[str, ...] = ()
    """Selects the memory: `--workspace DIR` and the like."""
    events: tuple[str, ...] = USUAL_EVENTS
    """The events that are registered with hosts that have hooks."""

    def mcp(self) -> list[str]:
        return [*self.program, "mcp", *self.flags]

    def hook(self, host: str, event: str) -> str:
        return quoted([*self.program, "hook", host, event, *self.flags])


def additions(
    host: str, scope: Scope, around: Surroundings, launch: Launch, skill: str
) -> list[Addition]:
    """Return everything that connects a host."""
    if scope == "project" and host == "openclaw":
        raise ConfigError(
            "OpenClaw has one configuration for all projects.", hint="Leave --project out."
        )
    folder = _folder(host, around) if scope == "user" else around.project
    found = _ADDITIONS[host](folder, scope, around, launch)
    return [*found, Addition(_skill_file(host, folder, scope, around), "text", lines=(skill,))]


def quoted(words: Sequence[str]) -> str:
    """Return a command line for the shell that hosts use."""
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


# --- Paths ---


def _folder(host: str, around: Surroundings) -> str:
    """Return the folder of a host's settings for all projects."""
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
    """Return the path of the skill; each host has its own folder, so no file is shared."""
    if scope == "project":
        folder = os.path.join(folder, _PROJECT_SKILLS[host])
    elif host in ("codex", "vscode"):
        folder = os.path.join(around.home, ".agents" if host == "codex" else ".copilot")
    return os.path.join(folder, "skills", SERVER, "SKILL.md")


def _existing(folder: str, *names: str) -> str:
    """Return the first of these files that exists, else the first."""
    paths = [os.path.join(folder, name) for name in names]
    return next((path for path in paths if os.path.lexists(path)), paths[0])


# --- Contents ---


def _stdio(launch: Launch) -> dict[str, object]:
    command, *args = launch.mcp()
    return {"command": command, "args": args}


def _hooks(host: str, file: str, launch: Launch) -> list[Addition]:
    # Each item is inserted first, so they end up in the order of a session.
    return [
        Addition(
            file=file,
            form="item",
            path=("hooks", event),
            value={**_matcher(event), "hooks": [_command(host, event, launch)]},
        )
        for event in reversed(launch.events)
    ]


def _matcher(event: str) -> dict[str, object]:
    """Return the sources of a session start; `resume` is omitted, as the context is still there."""
    return {"matcher": "startup|clear|compact"} if event == "SessionStart" else {}


def _command(host: str, event: str, launch: Launch) -> dict[str, object]:
    # Codex allows at most three seconds at the end of a session.
    timeout = 3 if event == "SessionEnd" else 10
    return {"type": "command", "command": launch.hook(host, event), "timeout": timeout}


def _claude_code(folder: str, scope: Scope, around: Surroundings, launch: Launch) -> list[Addition]:
    if scope == "project":
        servers = os.path.join(folder, ".mcp.json")
        settings = os.path.join(folder, ".claude", "settings.json")
    else:
        base = around.environ.get("CLAUDE_CONFIG_DIR") or around.home
        servers = os.path.join(base, ".claude.json")
        settings = os.path.join(folder, "settings.json")
    value = {"type": "stdio", **_stdio(launch)}
    return [
        Addition(file=servers, form="json", path=("mcpServers", SERVER), value=value),
        *_hooks("claude-code", settings, launch),
    ]


def _codex(folder: str, scope: Scope, around: Surroundings, launch: Launch) -> list[Addition]:
    """Return one block for config.toml; the hooks go to hooks.json if it exists, as Codex warns
    about having both.
    """
    folder = os.path.join(folder, ".codex") if scope == "project" else folder
    config, hooks = os.path.join(folder, "config.toml"), os.path.join(folder, "hooks.json")
    lines = table(f"mcp_servers.{SERVER}", _stdio(launch))[1:]
    if os.path.lexists(hooks):
        return [Addition(config, "toml", lines=tuple(lines)), *_hooks("codex", hooks, launch)]
    for event in launch.events:
        matcher, command = _matcher(event), _command("codex", event, launch)
        lines += table(f"hooks.{event}", matcher, is_item=True) + table(
            f"hooks.{event}.hooks", command, is_item=True
        )
    return [Addition(config, "toml", lines=tuple(lines))]


def _cursor(folder: str, scope: Scope, around: Surroundings, launch: Launch) -> list[Addition]:
    return _server(folder, scope, ".cursor/mcp.json", ("mcpServers", SERVER), _stdio(launch))


def _vscode(folder: str, scope: Scope, around: Surroundings, launch: Launch) -> list[Addition]:
    value = {"type": "stdio", **_stdio(launch)}
    return _server(folder, scope, ".vscode/mcp.json", ("servers", SERVER), value)


def _gemini(folder: str, scope: Scope, around: Surroundings, launch: Launch) -> list[Addition]:
    return _server(folder, scope, ".gemini/settings.json", ("mcpServers", SERVER), _stdio(launch))


def _server(
    folder: str, scope: Scope, file: str, path: tuple[str, str], value: object
) -> list[Addition]:
    """Return the entry of the server; `file` is its path in a project."""
    parts = file.split("/")
    name = os.path.join(folder, *(parts if scope == "project" else parts[1:]))
    return [Addition(file=name, form="json", path=path, value=value)]


def _opencode(folder: str, scope: Scope, around: Surroundings, launch: Launch) -> list[Addition]:
    """Version 2 has its servers under `mcp.servers`, version 1 directly under `mcp`."""
    file = _existing(folder, "opencode.json", "opencode.jsonc")
    path = ("mcp", SERVER) if _is_version_1(file) else ("mcp", "servers", SERVER)
    value = {"type": "local", "command": launch.mcp()}
    return [Addition(file=file, form="json", path=path, value=value)]


def _is_version_1(file: str) -> bool:
    try:
        with open(file, encoding="utf-8") as opened:
            mcp = get(opened.read(), ("mcp",), file)
    except (OSError, UnicodeDecodeError, ConfigError):
        return False  # the error is reported when the file is edited
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
