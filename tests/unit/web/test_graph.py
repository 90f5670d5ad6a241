"""The graph of notes: what refers to what, what is near, and where it is drawn."""

from __future__ import annotations

from itertools import combinations

import pytest

from clawmark.web.graph.layout import HEIGHT, WIDTH, height_of, place
from clawmark.web.graph.links import find_references
from clawmark.web.graph.network import FAR, NEAR, RARE, Network, connect, neighbourhood


def network(**notes: str) -> Network:
    texts = {f"memory/{name}.md": text for name, text in notes.items()}
    return connect({path: find_references(path, text) for path, text in texts.items()})


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("[b](b.md)", "memory/b.md"),
        ("[b](./b.md#L3 'a title')", "memory/b.md"),
        ("[b](<b.md>)", "memory/b.md"),
        ("[m](../MEMORY.md)", "MEMORY.md"),
        ("[m](/MEMORY.md)", "MEMORY.md"),
        ("[b](my%20note.md)", "memory/my note.md"),
        ("[b]: b.md", "memory/b.md"),
    ],
)
def test_a_markdown_link_means_a_file_of_the_workspace(link: str, target: str) -> None:
    assert find_references("memory/a.md", f"See {link}" if "(" in link else link).links == (target,)


@pytest.mark.parametrize(
    "link",
    ["[x](https://example.org/a.md)", "[x](javascript:alert(1))", "[x](#top)", "[x](mailto:a@b.c)"],
)
def test_an_address_is_not_a_link_to_a_note(link: str) -> None:
    assert find_references("memory/a.md", link).links == ()


def test_links_of_an_added_folder_stay_in_that_folder() -> None:
    found = find_references("notes:plans/ferry.md", "[x](../crew.md)")
    assert found.links == ("notes:crew.md",)


def test_links_in_code_are_left_out() -> None:
    assert find_references("a.md", "```\n[b](b.md) [[c]]\n```\n").links == ()


def test_links_and_wikilinks_connect_both_notes() -> None:
    made = network(a="# Ferry\n\n[b](b.md) [[Crew List]]", b="nothing", c="# Crew list")
    assert made.ties["memory/a.md"]["memory/b.md"].links_to
    assert made.ties["memory/b.md"]["memory/a.md"].linked_from
    assert made.ties["memory/a.md"]["memory/c.md"].links_to


def test_a_link_that_leads_to_no_note_is_listed() -> None:
    made = network(a="[b](gone.md) [[nowhere]] ![p](picture.png)")
    assert made.missing == {"memory/a.md": ("memory/gone.md", "[[nowhere]]")}


def test_a_rare_name_connects_notes_and_a_common_one_does_not() -> None:
    rare = network(a="We met Anna Berg.", b="Call Anna Berg today.", c="Nothing.")
    assert rare.ties["memory/a.md"]["memory/b.md"].names == ("Anna Berg",)
    common = network(**{f"n{number}": "We use PostgreSQL." for number in range(RARE + 1)})
    assert not any(common.ties.values())


def test_a_neighbourhood_is_bounded_and_says_what_is_left_out() -> None:
    hub = " ".join(f"[x](n{number}.md)" for number in range(200))
    others = {f"n{number}": f"[x](m{number}.md)" for number in range(200)}
    made = network(hub=hub, **others, **{f"m{number}": "" for number in range(200)})
    shown = neighbourhood(made, "memory/hub.md")
    assert (len(shown.near), len(shown.far), shown.left_out) == (NEAR, min(FAR, NEAR), 200 - NEAR)
    assert all(near in shown.near for _, near in shown.far)


def test_links_come_before_shared_names() -> None:
    made = network(a="[z](z.md) and Anna Berg", b="with Anna Berg", z="")
    assert made.strongest("memory/a.md") == ["memory/z.md", "memory/b.md"]


def test_points_are_inside_the_drawing_and_apart() -> None:
    hub = " ".join(f"[x](n{number}.md)" for number in range(NEAR))
    notes = {f"n{number}": f"[x](m{number}.md) [y](o{number}.md)" for number in range(NEAR)}
    more = {f"{letter}{number}": "" for letter in "mo" for number in range(NEAR)}
    shown = neighbourhood(network(hub=hub, **notes, **more), "memory/hub.md")
    points = place(shown)
    assert height_of(shown) == HEIGHT
    assert len(points) == 1 + NEAR + FAR
    assert all(0 < one.x < WIDTH and 0 < one.y < HEIGHT for one in points.values())
    for one, other in combinations(points.values(), 2):
        assert abs(one.x - other.x) + abs(one.y - other.y) > 8


def test_a_note_without_ties_stands_alone() -> None:
    shown = neighbourhood(network(a="alone"), "memory/a.md")
    assert shown.near == () and list(place(shown)) == ["memory/a.md"]


def test_drawing_of_few_notes_is_low() -> None:
    shown = neighbourhood(network(a="[b](b.md)", b=""), "memory/a.md")
    assert height_of(shown) < HEIGHT / 3
    assert all(0 < one.y < height_of(shown) for one in place(shown).values())
