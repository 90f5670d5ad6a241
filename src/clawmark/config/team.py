"""The rules between the keys of `team`, and the warnings about those that have no effect."""

from __future__ import annotations

import os
from collections.abc import Mapping

from clawmark.config.check import Written, fill_in, is_space_name, refuse, show
from clawmark.config.schema import Settings
from clawmark.config.schema.team import TeamOptions
from clawmark.model.errors import ConfigError

NEVER_PUBLISHED = ("USER.md",)


def team_warnings(
    settings: Settings,
    given: Mapping[str, Written],
    environ: Mapping[str, str] = os.environ,
) -> list[str]:
    """Return what has no effect in `team`; raises ConfigError for a wrong name.

    `given` has the keys of `team` that are set."""
    team, store_uri = settings.team, settings.memory_search.store.uri
    name = given.get("team.name")
    if name is not None and team.name and not is_space_name(team.name):
        rule = "must be 1 to 63 of a-z, 0-9, dot, _ and -, beginning with a letter or digit"
        raise refuse(name, f"{rule}, not {show(team.name)}")
    if not (team.uri or store_uri):
        return [f"{key} has no effect, because team.uri is not set." for key in sorted(given)]
    warnings = list[str]()
    if not team.spaces:
        warnings.append("team.spaces names no shared space, so none is searched.")
    warnings += _about_caller(team, store_uri, given, environ)
    warnings += [
        f"team.publish names the space {space}, which team.spaces does not; nothing is "
        f"published there."
        for space in team.publish
        if space not in team.spaces
    ]
    warnings += [
        f"team.publish names {pattern}, which is never published."
        for pattern in sorted({one for some in team.publish.values() for one in some})
        if pattern in NEVER_PUBLISHED
    ]
    closed = [kind for kind in team.shared_sessions if kind not in settings.memory.shared_sessions]
    warnings += [
        f'team.sharedSessions lists "{kind}", which memory.sharedSessions does not: such sessions '
        f"have no memory tools."
        for kind in closed
    ]
    return warnings


def _about_caller(
    team: TeamOptions, store_uri: object, given: Mapping[str, Written], environ: Mapping[str, str]
) -> list[str]:
    """Return warnings about `team.name` and `team.token`, of which only one is used."""
    try:
        uri = _filled(team.uri or store_uri, environ)
    except ConfigError as error:
        return [error.message]
    is_named, has_token = "team.name" in given and team.name, "team.token" in given and team.token
    warnings = list[str]()
    if is_server(uri):
        if not team.token:
            warnings.append("team.token is not set, so the server will refuse us.")
        if is_named:
            warnings.append("team.name has no effect: the token names the caller.")
        return warnings
    if not team.name:
        warnings.append("team.name is not set, so no shared space can be used.")
    if has_token:
        warnings.append("team.token has no effect: team.uri names a database, not a server.")
    return warnings


def _filled(value: object, environ: Mapping[str, str]) -> str:
    if isinstance(value, Mapping):
        return environ.get(str(value.get("id", "")), "")
    return fill_in(str(value), "team.uri", environ)


def is_server(uri: str) -> bool:
    """Whether the address of the shared spaces is that of a Clawmark server."""
    return uri.strip().lower().startswith(("https://", "http://"))
