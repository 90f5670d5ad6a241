"""Searching the memory files as they were on an earlier day."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from as_of_scene import Day, Scene, answers, live_a_month, open_copy, questions

from clawmark import AsyncMemory, Memory
from clawmark.agent.tools import Tool
from clawmark.backends.as_of import kept
from clawmark.backends.as_of.index import MOST_EMBEDDED, may_embed
from clawmark.backends.as_of.kept import forget_as_of
from clawmark.backends.builtin import BuiltinBackend
from clawmark.embed.base import Traits
from clawmark.mcp.tools import SessionTools
from clawmark.model.errors import ConfigError, FilterError, PathDenied, VersionMissing
from clawmark.model.values import Found, Query, Vector
from clawmark.testing import HashingEmbedder, UnreliableEmbedder

LAUNCH = "# Memory\n\n- The launch is in {}.\n- Anna likes tea.\n"


class CountingEmbedder(HashingEmbedder):
    """Counts the texts that it embeds."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        self.texts += texts
        return super().embed_texts(texts)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path, CountingEmbedder())
    yield made
    made.close()


@pytest.fixture
def launch(scene: Scene) -> Scene:
    """A launch that was planned for February on 1 March, and for March from 5 March on."""
    for day, month in ((1, "February"), (5, "March")):
        scene.now = datetime(2026, 3, day, 12, tzinfo=UTC)
        scene.write("MEMORY.md", LAUNCH.format(month))
        scene.record()
        scene.memory.sync()
    scene.now = datetime(2026, 3, 20, 12, tzinfo=UTC)
    return scene


def embedded(scene: Scene) -> list[str]:
    assert isinstance(scene.embedder, CountingEmbedder)
    return scene.embedder.texts


def snippet(scene: Scene, as_of: str | None) -> str:
    (hit,) = scene.memory.search("When is the launch?", as_of=as_of).hits
    return hit.snippet


def called(tool: Tool, **arguments: object) -> Any:
    return tool.call(arguments)


@pytest.mark.parametrize("provider", ["none", "static"])
def test_answers_equal_those_of_a_new_index_of_that_days_files(
    tmp_path: Path, provider: str
) -> None:
    scene = Scene(tmp_path, provider=provider)
    try:
        days: list[Day] = list(live_a_month(scene))
        asked = questions(200)
        different = []
        for number, day in enumerate(days[4::6]):
            with open_copy(day, tmp_path / "fresh" / day.day, provider) as fresh:
                fresh.sync()
                for question in asked[number * 40 : number * 40 + 40]:
                    expected = answers(fresh, question)
                    assert expected, question
                    if answers(scene.memory, question, day.day) != expected:
                        different.append((day.day, question))
        assert len(days[4::6]) * 40 == 200
        assert different == []
    finally:
        scene.close()


def test_a_day_answers_with_its_last_version_and_a_time_with_the_one_before_it(
    launch: Scene,
) -> None:
    assert "February" in snippet(launch, "2026-03-04")
    assert "March" in snippet(launch, "2026-03-05")
    assert "February" in snippet(launch, "2026-03-05T11:59")
    assert "February" in snippet(launch, "2026-03-05T14:00+04:00")
    assert "March" in snippet(launch, "2026-03-05T12:01Z")
    assert "February" in snippet(launch, "16d")
    assert "March" in snippet(launch, "2w")
    assert "March" in snippet(launch, None)


def test_a_day_that_is_not_over_is_answered_from_the_files_as_they_are(launch: Scene) -> None:
    assert "March" in snippet(launch, "2026-03-20")
    launch.write("MEMORY.md", LAUNCH.format("April"))  # not recorded yet
    assert "March" in snippet(launch, "2026-03-19"), "it is not recorded for a day that has passed"
    # The history has the time of the machine, which is later than the day of this scene.
    assert "April" in snippet(launch, "2099-01-01")
    assert "April" in snippet(launch, None)


def test_the_answer_says_which_version_it_is_from(launch: Scene) -> None:
    found = launch.memory.search("When is the launch?", as_of="2026-03-02")
    assert found.as_of is not None
    assert found.as_of.asked == "2026-03-02"
    assert found.as_of.recorded == "2026-03-01T12:00:00+00:00"
    assert launch.history.find(found.as_of.version)
    assert found.due_files == 0 and found.degraded is None
    assert found.hits[0].citation == "MEMORY.md#L1-L4"
    assert launch.memory.search("When is the launch?").as_of is None


def test_relative_days_and_named_times_are_those_of_that_day(launch: Scene) -> None:
    launch.now = datetime(2026, 3, 6, 12, tzinfo=UTC)
    launch.write("memory/2026-03-06.md", "- The launch party is planned.\n")
    launch.write("memory/2026-02-01.md", "- The launch party was an idea.\n")
    launch.record()
    launch.now = datetime(2026, 6, 1, 12, tzinfo=UTC)
    found = launch.memory.search("launch party", since="7d", as_of="2026-03-07", min_score=0.0)
    assert [hit.path for hit in found.hits] == ["memory/2026-03-06.md"]
    named = launch.memory.search("launch party yesterday", as_of="2026-03-07", explain=True)
    assert named.explanation is not None
    assert any("2026-03-06" in step.summary for step in named.explanation.steps)


def test_no_text_is_embedded_twice(launch: Scene) -> None:
    before = len(embedded(launch))
    assert "February" in snippet(launch, "2026-03-02")
    assert len(embedded(launch)) == before, "the cache of the main index has its vector"


def test_new_vectors_go_into_the_cache_of_the_main_index(scene: Scene) -> None:
    scene.write("MEMORY.md", LAUNCH.format("February"))
    scene.record()
    assert "February" in snippet(scene, "2026-02-01")
    before = embedded(scene).copy()
    assert before
    forget_as_of(str(scene.as_of_folder))
    assert "February" in snippet(scene, "2026-02-01")
    scene.memory.sync()
    assert embedded(scene) == before


def test_an_index_is_kept_for_the_next_question(launch: Scene) -> None:
    snippet(launch, "2026-03-02")
    (index,) = launch.as_of_folder.glob("*.sqlite")
    before = index.stat()
    snippet(launch, "2026-03-03")
    assert [*launch.as_of_folder.glob("*.sqlite")] == [index]
    assert index.stat().st_ino == before.st_ino


def test_no_copy_of_the_files_is_left_on_disk(launch: Scene) -> None:
    snippet(launch, "2026-03-02")
    names = {path.name.partition(".sqlite")[1] for path in launch.as_of_folder.rglob("*")}
    assert names == {".sqlite"}
    assert os.stat(launch.as_of_folder).st_mode & 0o077 == 0


def test_few_indexes_are_kept_and_the_oldest_go_first(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = [day.day for day in live_a_month(scene, 7)]
    for day in days:
        scene.memory.search("heron", as_of=day)
    assert len([*scene.as_of_folder.glob("*.sqlite")]) == kept.MOST_KEPT
    monkeypatch.setattr(kept, "MOST_BYTES", 1)
    found = scene.memory.search("heron", as_of=days[0])
    assert found.hits and found.as_of is not None
    assert [path.stem for path in scene.as_of_folder.glob("*.sqlite")] == [found.as_of.version]


def test_text_that_was_removed_from_the_history_is_in_no_answer_and_no_index(
    launch: Scene,
) -> None:
    assert "February" in snippet(launch, "2026-03-02")
    launch.history.rewrite(lambda _, data: data.replace(b"February", b"spring"))
    assert "spring" in snippet(launch, "2026-03-02"), (
        "the rewritten version has an index of its own"
    )
    forget_as_of(str(launch.as_of_folder))
    assert not launch.as_of_folder.exists()
    assert "spring" in snippet(launch, "2026-03-02")
    assert all(b"February" not in path.read_bytes() for path in launch.as_of_folder.iterdir())


def test_an_index_of_a_version_that_no_longer_exists_is_removed_with_the_next_build(
    launch: Scene,
) -> None:
    snippet(launch, "2026-03-02")
    launch.history.rewrite(lambda _, data: data.replace(b"February", b"spring"))
    snippet(launch, "2026-03-02")
    assert len([*launch.as_of_folder.glob("*.sqlite")]) == 1


def test_a_damaged_index_is_built_again(launch: Scene) -> None:
    snippet(launch, "2026-03-02")
    (index,) = launch.as_of_folder.glob("*.sqlite")
    for path in launch.as_of_folder.iterdir():
        path.unlink()
    index.write_bytes(b"not a database" * 500)
    assert "February" in snippet(launch, "2026-03-02")


def test_a_day_before_the_first_version_says_when_the_history_begins(launch: Scene) -> None:
    with pytest.raises(VersionMissing) as caught:
        launch.memory.search("launch", as_of="2026-02-27")
    assert caught.value.message == (
        "The history begins on 2026-03-01 at 12:00; there is no version of 2026-02-27."
    )
    assert caught.value.exit_code == 3 and caught.value.hint


def test_without_a_history_the_next_step_is_named(scene: Scene) -> None:
    with pytest.raises(VersionMissing, match="There is no history yet") as caught:
        scene.memory.search("launch", as_of="2026-02-27")
    assert "clawmark index" in caught.value.hint
    with pytest.raises(VersionMissing):
        scene.memory.read("MEMORY.md", as_of="2026-02-27")


@pytest.mark.parametrize("wrong", ["soon", "2026-13-01", "2026-03-01T99:00", "7", "d7", "-1d"])
def test_a_day_that_cannot_be_read_is_refused(launch: Scene, wrong: str) -> None:
    with pytest.raises(FilterError, match="asOf must be"):
        launch.memory.search("launch", as_of=wrong)


def test_only_memory_files_have_a_history(launch: Scene) -> None:
    with pytest.raises(FilterError, match="has no history"):
        launch.memory.search("launch", as_of="2026-03-02", source="sessions")
    assert launch.memory.search("launch", as_of="2026-03-02", source="memory").hits


def test_a_hit_of_an_earlier_day_can_be_read(launch: Scene) -> None:
    (hit,) = launch.memory.search("When is the launch?", as_of="2026-03-02").hits
    assert "February" in launch.memory.read(hit.citation, as_of="2026-03-02").text
    assert "March" in launch.memory.read(hit.citation).text
    assert launch.memory.read("memory/2026-01-01.md", as_of="2026-03-02").missing
    for outside in ("../secret.md", "/etc/passwd", "AGENTS.md"):
        with pytest.raises(PathDenied):
            launch.memory.read(outside, as_of="2026-03-02")


def test_an_agent_searches_and_reads_an_earlier_day(launch: Scene) -> None:
    search, get = launch.memory.tools("agent:main:main")
    for tool in (search, get):
        properties: Any = tool.parameters["properties"]
        assert "asOf" in properties
    answer = called(search, query="When is the launch?", asOf="2026-03-02")
    assert answer["asOf"] == "2026-03-02"
    assert answer["version"]["recorded"] == "2026-03-01T12:00:00+00:00"
    (result,) = answer["results"]
    assert result["citation"] == "MEMORY.md#L1-L4"
    assert result["snippet"].endswith("Source: MEMORY.md#L1-L4 as of 2026-03-02")
    read = called(get, path=result["citation"], asOf=answer["asOf"])
    assert "February" in read["text"] and read["asOf"] == "2026-03-02"
    assert "March" in called(get, path=result["citation"])["text"]
    assert "version" not in called(search, query="When is the launch?")


def test_an_agent_learns_why_a_day_cannot_be_searched(launch: Scene) -> None:
    search, get = launch.memory.tools("agent:main:main")
    for day, words in (("2026-02-01", "The history begins"), ("soon", "asOf must be")):
        for answer in (
            called(search, query="launch", asOf=day),
            called(get, path="MEMORY.md", asOf=day),
        ):
            assert words in answer["error"] and "disabled" not in answer
            assert answer["action"]


def test_a_group_cannot_read_an_earlier_day_either(launch: Scene) -> None:
    search, get = launch.memory.tools("agent:main:discord:group:1")
    assert called(search, query="launch", asOf="2026-03-02")["results"] == []
    assert called(get, path="MEMORY.md", asOf="2026-03-02")["text"] == ""


def test_hits_say_what_their_lines_have_replaced(launch: Scene) -> None:
    found = launch.memory.search("When is the launch?", explain=True)
    assert found.hits[0].replaced == (), "it is not computed unless it is asked for"
    (hit,) = launch.memory.with_replaced(found).hits
    assert [(one.text, one.until) for one in hit.replaced] == [
        ("The launch is in February.", "2026-03-05T12:00:00+00:00")
    ]
    earlier = launch.memory.search("When is the launch?", as_of="2026-03-02")
    assert launch.memory.with_replaced(earlier).hits[0].replaced == ()


def test_text_that_was_removed_from_the_history_was_never_replaced(launch: Scene) -> None:
    launch.history.rewrite(lambda _, data: data.replace(b"- The launch is in February.\n", b""))
    found = launch.memory.with_replaced(launch.memory.search("When is the launch?"))
    assert found.hits and all(hit.replaced == () for hit in found.hits)


def test_a_failing_embedder_leaves_keywords_and_is_asked_again_later(tmp_path: Path) -> None:
    embedder = UnreliableEmbedder()
    scene = Scene(tmp_path, embedder)
    scene.write("MEMORY.md", LAUNCH.format("February"))
    scene.record()
    embedder.fault = "down"
    found = scene.memory.search("When is the launch?", as_of="2026-02-01")
    assert found.hits and found.mode == "fts-only" and found.degraded is not None
    embedder.fault = ""
    found = scene.memory.search("When is the launch?", as_of="2026-02-01")
    assert found.hits and found.mode == "hybrid" and found.degraded is None
    scene.close()


def test_an_index_that_is_deleted_while_it_is_open_is_built_again(
    launch: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, deleted = BuiltinBackend.search, list[str]()

    def search(self: BuiltinBackend, query: Query, *, freshen: bool = True) -> Found:
        found = whole(self, query, freshen=freshen)
        if not deleted:
            deleted.append(self.parts.store.path)
            forget_as_of(str(launch.as_of_folder))
        return found

    monkeypatch.setattr(BuiltinBackend, "search", search)
    assert "February" in snippet(launch, "2026-03-02")
    assert deleted and Path(deleted[0]).exists()


def test_the_present_index_is_not_changed_by_a_search_of_an_earlier_day(launch: Scene) -> None:
    launch.memory.search("launch", as_of="2026-03-02")
    assert launch.memory.status().files == 1
    assert launch.memory.verify().problems == ()
    assert launch.memory.search("When is the launch?").due_files == 0


def test_a_memory_whose_search_is_switched_off_does_not_search_earlier_days(
    tmp_path: Path,
) -> None:
    Scene(tmp_path).close()
    for overrides, words in (
        ({"memorySearch.enabled": False}, "switched off"),
        ({"plugins.slots.memory": "none"}, "slot is empty"),
        ({"memorySearch.sources": ["sessions"]}, "Only memory files have a history"),
    ):
        with (
            Memory.open(
                tmp_path / "workspace", state_dir=tmp_path / "state", overrides=overrides
            ) as memory,
            pytest.raises(ConfigError, match=words),
        ):
            memory.search("launch", as_of="2026-03-02")


class RemoteEmbedder(CountingEmbedder):
    """Counts what it would send to a service."""

    @property
    def traits(self) -> Traits:
        return super().traits._replace(remote=True)


def test_a_search_of_an_earlier_day_sends_no_passage_to_a_service(tmp_path: Path) -> None:
    scene = Scene(tmp_path, RemoteEmbedder())
    for month in ("February", "March"):
        scene.write("MEMORY.md", LAUNCH.format(month))
        scene.record()
        scene.now += timedelta(days=3)
    scene.memory.sync()  # of the present: the text of March
    sent = embedded(scene).copy()
    found = scene.memory.search("When is the launch?", as_of="2026-02-01")
    assert "February" in found.hits[0].snippet
    assert found.degraded is not None and "clawmark index --as-of" in found.degraded.fix
    assert embedded(scene) == sent
    known = scene.memory.search("When is the launch?", as_of="2026-02-04")
    assert known.degraded is None and known.mode == "hybrid"
    assert embedded(scene) == sent
    report = scene.memory.sync(as_of="2026-02-01")
    assert report.embedded == 1 and len(embedded(scene)) == len(sent) + 1
    found = scene.memory.search("When is the launch?", as_of="2026-02-01")
    assert found.degraded is None and found.mode == "hybrid"
    assert scene.memory.sync(as_of="2026-02-01").embedded == 0
    scene.close()


def test_a_search_embeds_only_so_many_texts_of_an_earlier_day_itself() -> None:
    local = Traits("model (local)", 0.0, 1.0)
    assert may_embed(local, MOST_EMBEDDED) and not may_embed(local, MOST_EMBEDDED + 1)
    assert may_embed(local._replace(instant=True), 1_000_000)
    assert may_embed(local._replace(remote=True), 0)
    assert not may_embed(local._replace(remote=True), 1)


def test_an_mcp_client_searches_and_reads_an_earlier_day(launch: Scene) -> None:
    async def ask() -> tuple[Any, Any]:
        async with AsyncMemory.open(
            launch.workspace,
            state_dir=launch.folder / "state",
            embedder=HashingEmbedder(),
            background=False,
        ) as memory:
            tools = SessionTools(memory, "agent:main:main")
            day = "2026-03-02"
            search = {"query": "When is the launch?", "asOf": day}
            found = await tools.call("memory_search", search)
            read = await tools.call("memory_get", {"path": "MEMORY.md", "asOf": day})
            return found.structured_content, read.structured_content

    found, read = asyncio.run(ask())
    assert found["asOf"] == "2026-03-02" and "February" in found["results"][0]["snippet"]
    assert "February" in read["text"]
