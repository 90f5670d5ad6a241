"""The settings of the tool policy and of the sandbox: which sessions have which tools."""

from collections.abc import Mapping
from typing import Annotated, NamedTuple

from clawmark.config.schema.key import Key


class ToolRule(NamedTuple):
    """Two lists that a tool must pass; `tools.bySession` has one for each kind of session."""

    allow: Annotated[
        tuple[str, ...],
        Key("Tools that sessions of this kind may have; empty for all of them.", kind="texts"),
    ] = ()
    deny: Annotated[
        tuple[str, ...], Key("Tools that sessions of this kind may not have.", kind="texts")
    ] = ()


class BySession(NamedTuple):
    """`tools.bySession`: a policy for each kind of session, in addition to the general one."""

    main: ToolRule = ToolRule()
    direct: ToolRule = ToolRule()
    group: ToolRule = ToolRule()
    channel: ToolRule = ToolRule()
    subagent: ToolRule = ToolRule()
    cron: ToolRule = ToolRule()
    heartbeat: ToolRule = ToolRule()
    unknown: ToolRule = ToolRule()


class ToolLists(NamedTuple):
    """The tools of sub-agents, or of sandboxed sessions."""

    allow: Annotated[
        tuple[str, ...],
        Key(
            "Tools that these sessions may have; empty for all of them. Sub-agents may search and "
            "read the memory if a memory tool is named here or in `alsoAllow`.",
            kind="texts",
        ),
    ] = ()
    also_allow: Annotated[
        tuple[str, ...], Key("Tools in addition to those of `allow`.", kind="texts")
    ] = ()
    deny: Annotated[
        tuple[str, ...], Key("Tools that these sessions may not have.", kind="texts")
    ] = ()


class ToolScope(NamedTuple):
    tools: ToolLists = ToolLists()


class ToolPolicy(NamedTuple):
    """Which tools an agent may have; `agent.tools.policy` decides by it."""

    profile: Annotated[
        str,
        Key(
            "OpenClaw's base list of tools: `minimal` and `messaging` have no memory tools.",
            choices=("minimal", "coding", "messaging", "full"),
        ),
    ] = "full"
    allow: Annotated[
        tuple[str, ...],
        Key(
            "Tools an agent may have, by name, `*` or `group:memory`; empty for all of them.",
            kind="texts",
        ),
    ] = ()
    also_allow: Annotated[
        tuple[str, ...], Key("Tools in addition to those of `tools.profile`.", kind="texts")
    ] = ()
    deny: Annotated[
        tuple[str, ...],
        Key(
            "Tools an agent may not have, written the same way; wins over `tools.allow`.",
            kind="texts",
        ),
    ] = ()
    subagents: ToolScope = ToolScope()
    sandbox: ToolScope = ToolScope()
    by_session: BySession = BySession()
    layers: tuple[ToolRule, ...] = ()
    """`allow` and `deny` for all agents, and those of the agent's own entry: both apply."""

    def with_layers(self, lists: Mapping[tuple[str, str | int], tuple[str, ...]]) -> "ToolPolicy":
        """Return the policy with a layer for each level of these lists that has one."""
        layers = (
            ToolRule(
                allow=lists.get(("tools.allow", level), ()),
                deny=lists.get(("tools.deny", level), ()),
            )
            for level in dict.fromkeys(level for _, level in lists)
        )
        return self._replace(layers=tuple(one for one in layers if one.allow or one.deny))


class Sandbox(NamedTuple):
    """`agents.defaults.sandbox`, as far as it concerns the memory."""

    mode: Annotated[
        str,
        Key(
            "Which sessions of the host run in a sandbox: none, all except the main one, or all.",
            choices=("off", "non-main", "all"),
        ),
    ] = "off"
    workspace_access: Annotated[
        str,
        Key(
            "What sandboxed sessions may do with the workspace: `ro` neither adds to the memory "
            "nor flushes nor writes session notes, `none` has no memory tools and no workspace "
            "files in the prompt either.",
            choices=("none", "ro", "rw"),
        ),
    ] = "none"
