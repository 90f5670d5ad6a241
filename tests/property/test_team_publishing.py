"""What is published: never a file outside the rules, whatever the workspace holds."""

from __future__ import annotations

from fnmatch import fnmatchcase

from hypothesis import given
from hypothesis import strategies as st

from clawmark.backends.team.files.publishing import plan_publish, published_files, rules_of
from clawmark.model.values import FileState

NAMES = st.sampled_from(["team", "private", "a", "b.c", "2026-11-18", "MEMORY", "spaces", "memory"])
PATHS = st.one_of(
    st.lists(NAMES, min_size=1, max_size=4).map(lambda parts: "/".join(parts) + ".md"),
    st.sampled_from(
        [
            *("MEMORY.md", "memory.md", "USER.md", "notes:x.md", "../docs/x.md", "memory/x.png"),
            *("spaces/team/eve/memory/team/x.md", "memory/team/.x.md", "memory/team/x\n.md"),
        ]
    ),
)
PATTERNS = st.lists(
    st.sampled_from(
        [
            "memory/team/**",
            "**",
            "*.md",
            "memory/*.md",
            "MEMORY.md",
            "memory/",
            "team/**",
            "**/a.md",
        ]
    ),
    max_size=3,
)


@st.composite
def states(draw: st.DrawFn) -> list[FileState]:
    paths = draw(st.lists(PATHS, unique=True, max_size=12))
    return [
        FileState(
            path=path,
            source=draw(st.sampled_from(["memory", "memory", "sessions"])),
            size=1,
            mtime_ns=1,
            inode=number,
            device=1,
        )
        for number, path in enumerate(paths)
    ]


@given(states(), PATTERNS)
def test_only_files_of_the_workspace_that_a_rule_names_are_published(
    files: list[FileState], patterns: list[str]
) -> None:
    for state in published_files(files, patterns):
        assert state.source == "memory"
        assert not state.path.startswith(("spaces/", "../")) and ":" not in state.path
        assert state.path.endswith(".md")
        assert state.path not in ("MEMORY.md", "memory.md") or state.path in patterns
        assert any(_covers(pattern, state.path) for pattern in patterns)


def _covers(pattern: str, path: str) -> bool:
    """A wider rule than the real one: `*` may cross folders here, but the beginning must match."""
    if "/" not in pattern:
        return "/" not in path
    wide = pattern.replace("**/", "*").replace("**", "*")
    return fnmatchcase(path, wide + "*" if pattern.endswith("/") else wide)


@given(states())
def test_without_rules_nothing_is_published(files: list[FileState]) -> None:
    assert published_files(files, ()) == ()


@given(states())
def test_the_default_rule_is_the_folder_of_the_space(files: list[FileState]) -> None:
    rules = rules_of(["team", "other"], {"other": ()})
    assert rules == {"team": ("memory/team/**",), "other": ()}
    assert all(one.path.startswith("memory/team/") for one in published_files(files, rules["team"]))


HASHES = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("123"), max_size=6)


@given(HASHES, HASHES, st.sets(st.sampled_from("abcdef")))
def test_carrying_out_a_plan_leaves_what_is_wanted(
    wanted: dict[str, str], published: dict[str, str], kept: set[str]
) -> None:
    plan = plan_publish("team", wanted, published, kept.__contains__)
    after = published | {path: wanted[path] for path in plan.publish}
    for path in plan.withdraw:
        del after[path]
    left = {path: digest for path, digest in published.items() if path in kept}
    assert after == left | wanted
    again = plan_publish("team", wanted, after, kept.__contains__)
    assert (again.publish, again.withdraw) == ((), ())
