"""Find the state folder, the configuration file, the workspace, the agent and the index.

The first one found wins. State: flag, CLAWMARK_STATE_DIR, ~/.clawmark. Configuration: flag,
CLAWMARK_CONFIG, `clawmark.json` in the state folder. Workspace: flag, CLAWMARK_WORKSPACE,
configuration, the current folder if it holds memory, `workspace` in the state folder. A state
folder of OpenClaw (it has `openclaw.json`) is only read: what we write goes to `clawmark/` in it.
A workspace that is not an agent's own has a separate index, named after its path."""

# os.path and not pathlib, whose import costs 4 ms of every cold search.

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from clawmark.model.errors import ConfigError

if TYPE_CHECKING:
    from clawmark.config.files import ConfigFile
    from clawmark.config.sections import AgentEntry, FilePlaces
else:
    # An annotation in quotes would be compiled at import: the first one costs a cold search 1 ms.
    ConfigFile = object

MEMORY_MARKS = ("MEMORY.md", "memory", os.path.join(".clawmark", "workspace-state.json"))
NO_WORKSPACE = "agents.defaults.workspace"
"""The key of the error that no workspace exists or is named."""
_SETUP_HINT = "Make one with `clawmark init`, or name one with --workspace."


class Places(NamedTuple):
    """Where everything is; every path is absolute."""

    state_dir: str
    """Writable: for an OpenClaw installation the `clawmark` folder in it."""
    config_file: str
    """The user's file, whether or not it exists; `config` is its content."""
    workspace: str
    agent_id: str
    """The name of the index: the agent's id, or a name made of the path for a workspace that is
    not an agent's own.
    """
    index_path: str
    agent: str = "main"
    """The agent whose settings apply."""
    workspace_origin: str = "default"
    config: ConfigFile | None = None
    sessions_dir: str = ""
    """The agent's transcripts; for an OpenClaw installation in OpenClaw's own folder."""
    beneath: ConfigFile | None = None
    """OpenClaw's file, which applies where a `clawmark.json` next to it sets nothing."""

    @property
    def conversations_dir(self) -> str:
        """The transcripts that Clawmark writes, separate from OpenClaw's."""
        return os.path.join(self.state_dir, "agents", self.agent_id, "sessions")

    @property
    def workspace_config(self) -> str:
        """The settings inside the workspace, whether or not the file exists."""
        return os.path.join(self.workspace, ".clawmark", "settings.json")

    @property
    def has_settings(self) -> bool:
        """Whether there is any file with settings; without one, the defaults apply."""
        return self.config is not None or os.path.lexists(self.workspace_config)


def resolve_places(
    workspace: str | None = None,
    agent: str | None = None,
    config: str | None = None,
    state_dir: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    *,
    must_exist: bool = True,
) -> Places:
    """Find every place; ConfigError for a path that does not exist. Nothing is created."""
    resolver = _Resolver(os.environ if env is None else env, cwd)
    given_state = (
        state_dir
        if state_dir is not None
        else resolver.env.get("CLAWMARK_STATE_DIR") or "~/.clawmark"
    )
    base = resolver.absolute(given_state, "the state folder")
    if os.path.lexists(base) and not os.path.isdir(base):
        raise ConfigError(
            f"The state folder {base} is not a folder.", hint="Name another with --state-dir."
        )
    is_openclaw = os.path.isfile(os.path.join(base, "openclaw.json"))
    state = os.path.join(base, "clawmark") if is_openclaw else base
    path, file = resolver.config_file(config, base, state, is_openclaw)
    beneath = (
        _read(os.path.join(base, "openclaw.json"))
        if is_openclaw and path == os.path.join(state, "clawmark.json")
        else None
    )
    known = _agents(file) or _agents(beneath)
    chosen = _chosen_agent(agent, known)
    own, own_origin = resolver.own_workspace(file, chosen)
    if not own:
        own, own_origin = resolver.own_workspace(beneath, chosen)
    default = own or _default_workspace(base, chosen, known)
    root, origin = resolver.workspace(workspace, (own, own_origin), default)
    if must_exist:
        _check_workspace(root, origin)
    is_own = os.path.realpath(root) == os.path.realpath(default)
    agent_id = chosen if is_own else name_for(root)
    index = resolver.index_path(file, chosen, agent_id, state)
    sessions = os.path.join(base, "agents", chosen, "sessions")
    return Places(
        state_dir=state,
        config_file=path,
        workspace=root,
        agent_id=agent_id,
        index_path=index,
        agent=chosen,
        workspace_origin=origin,
        config=file.file if file else None,
        sessions_dir=sessions,
        beneath=beneath.file if beneath else None,
    )


def name_for(workspace: str) -> str:
    """The index name of a workspace that is not an agent's own: the folder's name and 8 hexadecimal
    digits of a checksum (FNV-1a, without the 2 ms that hashlib takes to load) of its real path.
    """
    real = os.path.realpath(workspace)
    letters = [c if c.isascii() and c.isalnum() else " " for c in os.path.basename(real).lower()]
    slug = "-".join("".join(letters).split())[:40].strip("-") or "workspace"
    checksum = 0x811C9DC5
    for byte in os.fsencode(real):
        checksum = (checksum ^ byte) * 0x01000193 & 0xFFFFFFFF
    return f"{slug}-{checksum:08x}"


class _Resolver:
    """Looks paths up in an environment; the current folder is read only when it is needed."""

    def __init__(self, env: Mapping[str, str], cwd: str | None) -> None:
        self.env = env
        self._cwd = cwd

    def cwd(self) -> str | None:
        if self._cwd is None:
            try:
                self._cwd = os.getcwd()
            except OSError:  # it was removed
                return None
        return self._cwd

    def absolute(self, path: str, what: str, relative_to: str = "") -> str:
        """The absolute path, with `~` expanded; raises ConfigError."""
        if not path or "\0" in path:
            raise ConfigError(f"The path of {what} is {'empty' if not path else 'not a path'}.")
        full = self._expanded(path, what)
        if not os.path.isabs(full):
            base = relative_to or self.cwd()
            if base is None:
                raise ConfigError(
                    f"{path} cannot be found from the current folder, which no longer exists.",
                    hint="Change to a folder that exists, or give a full path.",
                )
            full = os.path.join(base, full)
        return os.path.normpath(full)

    def _expanded(self, path: str, what: str) -> str:
        if not path.startswith("~"):
            return path
        home = (
            self.env.get("HOME") if path == "~" or path.startswith(("~/", "~" + os.sep)) else None
        )
        full = home + path[1:] if home else os.path.expanduser(path)
        if full.startswith("~") or not os.path.isabs(full):
            raise ConfigError(
                f"{what[:1].upper()}{what[1:]} is {path}, and there is no home folder: HOME is "
                f"not set.",
                hint="Set HOME, or give full paths with --state-dir and --workspace.",
            )
        return full

    def config_file(
        self, given: str | None, base: str, state: str, is_openclaw: bool
    ) -> "tuple[str, FilePlaces | None]":
        from_env = self.env.get("CLAWMARK_CONFIG")
        named = given if given is not None else from_env
        if named:
            path = self.absolute(named, "the configuration file")
        elif given is not None:
            raise ConfigError(
                "The path of the configuration file is empty.",
                hint="Leave --config out, or name a file.",
            )
        else:
            path = os.path.join(state, "clawmark.json")
            if is_openclaw and _is_absent(path):
                path = os.path.join(base, "openclaw.json")
        if not named and _is_absent(path):
            return path, None
        try:
            return path, _read(path)
        except FileNotFoundError:
            by = (
                "--config"
                if given is not None
                else "CLAWMARK_CONFIG"
                if from_env
                else "a broken link"
            )
            raise ConfigError(
                f"The configuration file {path} does not exist.",
                file=path,
                hint=f"It was named by {by}.",
            ) from None

    def own_workspace(self, file: "FilePlaces | None", agent: str) -> tuple[str, str]:
        """The workspace that the file sets for an agent, and the origin; both empty without one."""
        written = file.workspace(agent) if file else ""
        if file is None or not written:
            return "", ""
        path = file.file.path
        return self.absolute(written, "the workspace", os.path.dirname(path)), f"file {path}"

    def workspace(self, given: str | None, own: tuple[str, str], default: str) -> tuple[str, str]:
        if given is not None:
            return self.absolute(given, "the workspace"), "flag"
        if self.env.get("CLAWMARK_WORKSPACE"):
            return self.absolute(
                self.env["CLAWMARK_WORKSPACE"], "the workspace"
            ), "CLAWMARK_WORKSPACE"
        if own[0]:
            return own
        here = self.cwd()
        if here is not None and any(
            os.path.lexists(os.path.join(here, mark)) for mark in MEMORY_MARKS
        ):
            return here, "current folder"
        return default, "default"

    def index_path(self, file: "FilePlaces | None", agent: str, agent_id: str, state: str) -> str:
        """`store.path` of the user's own file; in OpenClaw's file it names OpenClaw's index."""
        usual = os.path.join(state, "memory", f"{agent_id}.sqlite")
        if file is None or os.path.basename(file.file.path) == "openclaw.json":
            return usual
        written = file.index_path(agent)
        if not written:
            return usual
        filled = written.replace("{agentId}", agent_id)
        return self.absolute(filled, "the index", os.path.dirname(file.file.path))


def _read(path: str) -> "FilePlaces":
    # Imported late: without a file, a cold search needs neither the parser nor the table of keys.
    from clawmark.config.sections import FilePlaces

    return FilePlaces(path)


def _agents(file: "FilePlaces | None") -> "list[AgentEntry]":
    return file.agents() if file else []


def _is_absent(path: str) -> bool:
    """Whether there is no such file; on any other error, reading the file reports it."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return True
    except OSError:
        pass
    return False


def is_agent_id(text: str) -> bool:
    """Whether a text is a valid agent id: it becomes part of file names."""
    return re.fullmatch("[a-z0-9][a-z0-9_-]{0,63}", text) is not None


def default_agent(known: "list[AgentEntry]") -> str:
    """As OpenClaw chooses: the entry marked default, else the first, else `main`."""
    marked = [entry.id for entry in known if entry.is_default]
    return (marked or [entry.id for entry in known] or ["main"])[0]


def _chosen_agent(given: str | None, known: "list[AgentEntry]") -> str:
    if given is None:
        return default_agent(known)
    if not is_agent_id(given):
        raise ConfigError(
            f"{given[:40]!a} is not an agent id: 1 to 64 of a-z, 0-9, _ and -, beginning with a "
            f"letter or digit.",
            key="agent",
        )
    names = [entry.id for entry in known] or ["main"]
    if given not in (*names, "main"):
        raise ConfigError(
            f"There is no agent {given}; there is {', '.join(names[:8])}.",
            key="agent",
            hint=f'Add {{ id: "{given}" }} to agents.list in the configuration file to have it.',
        )
    return given


def _default_workspace(base: str, agent: str, known: "list[AgentEntry]") -> str:
    return os.path.join(
        base, "workspace" if agent == default_agent(known) else f"workspace-{agent}"
    )


def _check_workspace(root: str, origin: str) -> None:
    if os.path.isdir(root):
        return
    if os.path.lexists(root):
        raise ConfigError(f"The workspace {root} is not a folder.", hint=_SETUP_HINT)
    if origin == "default":
        raise ConfigError(
            f"There is no workspace yet: {root} does not exist.", key=NO_WORKSPACE, hint=_SETUP_HINT
        )
    named_by = "" if origin == "flag" else f" (named by {origin})"
    raise ConfigError(f"The workspace {root} does not exist{named_by}.", hint=_SETUP_HINT)
