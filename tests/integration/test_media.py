"""Images and audio files in added folders: indexed, found by text, shown, and paid for once."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from media_scene import BICYCLE, HERON, INVOICE, KEY, PNG, Scene, found, open_scene

from clawmark.agent.tools import render
from clawmark.composition.index_identity import scope_hash
from clawmark.config.schema.media import Multimodal
from clawmark.engine.sync import media as media_sync


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    with open_scene(tmp_path, monkeypatch) as made:
        yield made


# --- finding ------------------------------------------------------------------------------------


def test_files_are_found_by_what_they_show_and_say(scene: Scene) -> None:
    with scene.open() as memory:
        report = memory.sync()
        assert (report.added, report.failures, report.skipped, report.degraded) == (5, (), (), None)
        assert found(memory, HERON) == [("../photos/IMG_0001.png", "image/png")]
        assert found(memory, BICYCLE) == [("../photos/IMG_0002.jpg", "image/jpeg")]
        assert found(memory, INVOICE) == [("../photos/REC_0003.wav", "audio/wav")]
        hit = memory.search(INVOICE.decode()).hits[0]
        assert hit.snippet == "Audio file: ../photos/REC_0003.wav"
        assert (hit.modality, hit.citation) == ("audio", "../photos/REC_0003.wav")
        assert memory.search("which database did we choose for billing?").hits[0].mime == ""


def test_files_are_found_by_their_names_without_any_vectors(scene: Scene) -> None:
    with scene.open(provider="none") as memory:
        memory.sync()
        assert found(memory, b"IMG_0002") == [
            ("../photos/IMG_0002.jpg", "image/jpeg"),
            ("../photos/IMG_0001.png", "image/png"),
        ]
    assert scene.server.requests == []


def test_files_of_an_added_folder_are_found_too(scene: Scene) -> None:
    scene.configure(extraPaths=[])
    with scene.open() as memory:
        report = memory.add_source(scene.photos)
        assert (report.files, report.media, report.other_files) == (0, 3, {})
        memory.sync()
        assert found(memory, HERON) == [("photos:IMG_0001.png", "image/png")]
        assert memory.remove_source("photos")
        memory.sync()
        assert found(memory, HERON) == []


def test_a_dated_name_gives_the_day(scene: Scene) -> None:
    (scene.photos / "2026-03-01-pier.png").write_bytes(PNG + HERON)
    with scene.open(provider="none") as memory:
        memory.sync()
        (hit,) = memory.search("pier", since="2026-03-01", until="2026-03-01").hits
        assert (hit.path, hit.date) == ("../photos/2026-03-01-pier.png", "2026-03-01")


# --- what is paid for ---------------------------------------------------------------------------


def test_unchanged_files_are_sent_once_and_changed_ones_again(scene: Scene) -> None:
    with scene.open() as memory:
        memory.sync()
        assert sorted(scene.sent_files()) == ["IMG_0001.png", "IMG_0002.jpg", "REC_0003.wav"]
        scene.server.requests.clear()
        memory.sync()
        os.utime(scene.photos / "IMG_0001.png")
        memory.sync()
        assert memory.sync(force=True).embedded == 0
        assert scene.server.requests == []
        (scene.photos / "IMG_0001.png").write_bytes(PNG + BICYCLE)
        report = memory.sync()
        assert (report.updated, scene.sent_files()) == (1, ["IMG_0001.png"])
        assert found(memory, HERON) == []
        assert ("../photos/IMG_0001.png", "image/png") in found(memory, BICYCLE)
        (scene.photos / "IMG_0001.png").write_bytes(PNG + HERON)
        memory.sync()
        assert scene.sent_files() == ["IMG_0001.png"]


def test_a_deleted_file_leaves_the_index(scene: Scene) -> None:
    with scene.open() as memory:
        memory.sync()
        (scene.photos / "IMG_0001.png").unlink()
        assert memory.sync().deleted == 1
        assert found(memory, HERON) == []
        assert memory.status().media["image"] == 1
        assert memory.verify().problems == ()


def test_a_hit_of_a_file_that_was_replaced_meanwhile_is_dropped(scene: Scene) -> None:
    scene.configure(sync={"onSearch": False})
    with scene.open() as memory:
        memory.sync()
        (scene.photos / "IMG_0001.png").write_bytes(PNG + BICYCLE)
        assert found(memory, HERON) == []


def test_a_search_indexes_the_names_and_sends_no_file(scene: Scene) -> None:
    with scene.open() as memory:
        assert [path for path, _ in found(memory, b"IMG_0001.png")][:1] == [
            "../photos/IMG_0001.png"
        ]
        assert scene.sent_files() == []


def test_requests_are_small_and_batch_jobs_are_for_texts(scene: Scene) -> None:
    scene.configure(
        remote={"baseUrl": scene.server.gemini_url, "apiKey": KEY, "batch": {"enabled": True}}
    )
    for number in range(10):
        (scene.photos / f"more{number}.png").write_bytes(PNG + b"picture number %d" % number)
    with scene.open() as memory:
        assert memory.sync().degraded is None
    counts = [
        len(body["requests"])
        for request in scene.server.requests
        if request.path.endswith(":batchEmbedContents")
        and len((body := json.loads(request.body))["requests"][0]["content"]["parts"]) == 2
    ]
    assert counts == [6, 6, 1]
    assert len(set(scene.sent_files())) == 13


def test_the_daily_budget_stops_the_sending_and_the_rest_stays_due(scene: Scene) -> None:
    (scene.photos / "REC_0003.wav").unlink()
    remote_settings = {"baseUrl": scene.server.gemini_url, "apiKey": KEY, "dailyTokens": 400}
    scene.configure(remote=remote_settings)
    with scene.open() as memory:
        report = memory.sync()
        assert report.degraded is not None and "budget" in report.degraded.reason
        assert len(scene.sent_files()) == 1
        status = memory.status()
        assert status.media == {"image": 2, "audio": 0, "skipped": 0, "withoutVector": 1}
        assert status.spent["callsToday"] >= 1 and status.due_vectors >= 1
        assert 270 < status.spent["tokensToday"] <= 400
    scene.configure()
    with scene.open() as memory:
        assert memory.sync().degraded is None
        assert sorted(scene.sent_files()) == ["IMG_0001.png", "IMG_0002.jpg"]


def test_an_estimate_counts_the_files_and_names_no_wrong_price(scene: Scene) -> None:
    with scene.open() as memory:
        memory.sync(instant_only=True)
        spending = memory.spending()
        assert sum(spending.due.values()) > 2 * 270 and spending.price_per_million is None
        memory.sync()
        assert memory.spending().due == {}


# --- settings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"model": "gemini-embedding-001"},
        {"model": ""},
        {"provider": "openai", "model": "text-embedding-3-small"},
        {"provider": "none"},
    ],
)
def test_a_model_that_cannot_do_it_is_a_warning_and_text_is_indexed(
    scene: Scene, settings: dict[str, Any]
) -> None:
    scene.configure(**settings, remote={})
    with scene.open() as memory:
        (warning,) = [text for text in memory.loaded.warnings if "multimodal" in text]
        assert warning.startswith("memorySearch.multimodal.enabled is true, but images and audio")
        memory.sync(instant_only=True)
        assert memory.status().media == {} and memory.status().files == 2
        assert memory.search("PostgreSQL billing").hits
    status = scene.place.run("status")
    assert status.code == 0 and status.out.count("memorySearch.multimodal") == 1


def test_the_scope_hash_is_openclaws() -> None:
    default = "e861c1d291b583b9f4bf96233b72b9e6984cc92320671a0805e1063946e4b1a1"
    assert scope_hash(()) == scope_hash((), Multimodal(modalities=("image",))) == default
    on = Multimodal(enabled=True)
    assert scope_hash((), on) == scope_hash((), on._replace(modalities=("image", "audio")))
    # SHA-256 of {"extraPaths":["/a"],"multimodal":{"enabled":true,"modalities":["audio","image"],
    # "maxFileBytes":5}}
    assert scope_hash(("/a",), on._replace(max_file_bytes=5)) == (
        "c48700e68f90635f581c12f111ad08f2d825c1ed6d089110e6f1e072d4dbd1da"
    )
    assert len({scope_hash((), on._replace(modalities=(one,))) for one in ("image", "audio")}) == 2


def test_the_hash_of_a_file_is_openclaws() -> None:
    # SHA-256 of {"path":"../p/a.png","contentText":"Image file: ../p/a.png",
    # "mimeType":"image/png","dataHash":"<SHA-256 of the bytes>"}
    assert media_sync.hash_of("../p/a.png", "Image file: ../p/a.png", "image/png", b"x") == (
        "95cfae907c0fe9b9e188e0cb72343cb31c1e7ae02dab825d5ac7e6cee9732440"
    )


def test_a_size_limit_that_is_too_large_is_reduced_with_a_warning(scene: Scene) -> None:
    scene.configure(multimodal={"enabled": True, "maxFileBytes": 1 << 40})
    with scene.open() as memory:
        assert memory.settings.memory_search.multimodal.max_file_bytes == 64 << 20
        assert any("maxFileBytes" in warning for warning in memory.loaded.warnings)
    scene.configure(multimodal={"enabled": True, "modalities": ["video"]})
    ran = scene.place.run("status")
    assert ran.code == 2 and "modalities" in ran.err and "Traceback" not in ran.err


# --- doors --------------------------------------------------------------------------------------


def test_the_command_line_shows_path_and_type(scene: Scene) -> None:
    (scene.photos / "page.webp").write_bytes(b"RIFF....WEBP")
    run = scene.place.run
    indexed = run("index")
    assert indexed.code == 0 and "page.webp: a type that the model does not take" in indexed.out
    (hit,) = run("search", HERON.decode(), "--json").json()["results"]
    assert (hit["path"], hit["modality"], hit["mime"]) == (
        "../photos/IMG_0001.png",
        "image",
        "image/png",
    )
    assert hit["citation"] == "../photos/IMG_0001.png"
    shown = run("search", HERON.decode()).out
    assert "../photos/IMG_0001.png  image/png" in shown and "Image file: " in shown
    sentence = "../photos/IMG_0001.png is an image (image/png, 99 bytes); open it with another"
    got = run("get", "../photos/IMG_0001.png")
    assert got.code == 0 and got.out == f"{sentence} program.\n" and got.err == ""
    body = run("get", "../photos/IMG_0001.png", "--json").json()
    assert body["mime"] == "image/png" and body["text"].startswith(sentence)
    status = run("status").out
    assert "2 images · 1 audio file · 1 skipped" in status
    assert run("status", "--json").json()["media"] == {
        "image": 2,
        "audio": 1,
        "skipped": 1,
        "withoutVector": 0,
    }
    assert run("doctor").code in (0, 1) and run("verify").code == 0
    assert KEY not in indexed.out + shown + status


def test_an_agent_sees_the_type_and_reads_one_sentence(scene: Scene) -> None:
    with scene.open() as memory:
        memory.sync()
        search, get = memory.tools()
        payload = search.call({"query": HERON.decode()})
        results = payload["results"]
        assert isinstance(results, list)
        assert (results[0]["modality"], results[0]["mime"]) == ("image", "image/png")
        answer = get.call({"path": results[0]["path"]})
        assert answer["status"] == "ok" and answer["mime"] == "image/png"
        assert answer["text"] == (
            "../photos/IMG_0001.png is an image (image/png, 99 bytes); "
            "open it with another program."
        )
        assert "golden" not in render(answer)
        missing = get.call({"path": "../photos/none.png"})
        assert missing["status"] == "not_found"
