"""What can be observed of a memory under the settings of a team; used by `test_every_setting`."""

from __future__ import annotations

from setting_effects import QUESTION, Acts, Scene

from clawmark.backends.team.files.publishing import published_files, rules_of
from clawmark.composition import periodic_pull
from clawmark.composition.agent import session_access

T = "team."
SERVER: dict[str, object] = {
    T + "uri": "http://127.0.0.1:1",
    T + "token": "cmk_x",
    T + "spaces": ["team"],
}
DATABASE: dict[str, object] = {T + "uri": "postgresql://127.0.0.1:1/memory", T + "spaces": ["team"]}


def why_not_shared(scene: Scene) -> object:
    """Why an answer is without the shared spaces."""
    with scene.open() as memory:
        return memory.search(QUESTION, min_score=0).degraded


def published(scene: Scene) -> object:
    """The files that would be published."""
    for name in ("team", "plans"):
        folder = scene.place.workspace / "memory" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "x.md").write_text("A heron.\n")
    with scene.open() as memory:
        team, files = memory.settings.team, memory.workspace.scan().files
        rules = rules_of(team.spaces, team.publish)
        return [state.path for state in published_files(files, rules["team"])]


def is_pulled(scene: Scene) -> object:
    with scene.open() as memory:
        return periodic_pull(memory.settings, memory._lease.manager.team) is not None


def spaces_of_a_group(scene: Scene) -> object:
    with scene.open() as memory:
        return session_access(memory.settings, "agent:main:slack:group:g1").spaces


TEAM_ACTS = {
    T + "uri": Acts(one="", other="http://127.0.0.1:1", look=why_not_shared, beside=SERVER),
    T + "token": Acts(one="", other="cmk_x", look=why_not_shared, beside=SERVER),
    T + "name": Acts(one="", other="ada", look=why_not_shared, beside=DATABASE),
    T + "spaces": Acts(one=[], other=["team"], look=why_not_shared, beside=SERVER),
    T + "publish": Acts(one={}, other={"team": ["memory/plans/**"]}, look=published, beside=SERVER),
    T + "pull": Acts(one=True, other=False, look=is_pulled, beside=SERVER),
    T + "sharedSessions": Acts(
        one=[],
        other=["group"],
        look=spaces_of_a_group,
        beside={**SERVER, "memory.sharedSessions": ["group"]},
    ),
}
