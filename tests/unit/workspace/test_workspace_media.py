"""Images and audio files of added folders, as a workspace lists, reads and describes them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clawmark.config.schema.media import can_embed
from clawmark.model.errors import PathDenied, WorkspaceError
from clawmark.model.values import MediaRules
from clawmark.workspace import Workspace
from clawmark.workspace.places import Source
from clawmark.workspace.read import media_type
from clawmark.workspace.watching import memory_targets

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
JPEG = b"\xff\xd8\xff\xe0" + b"\0" * 20
MP3 = b"\xff\xfb\x90\x44" + b"\0" * 20
WAV = b"RIFF\x24\0\0\0WAVEfmt " + b"\0" * 20
ALL = MediaRules(("audio", "image"), 10 << 20)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws" / "memory").mkdir(parents=True)
    (tmp_path / "ws" / "MEMORY.md").write_text("own\n", encoding="utf-8")
    (tmp_path / "ws" / "memory" / "own.png").write_bytes(PNG)
    return tmp_path / "ws"


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    (folder / "trip").mkdir(parents=True)
    (folder / "heron.png").write_bytes(PNG)
    (folder / "trip" / "Pier.JPG").write_bytes(JPEG)
    (folder / "song.mp3").write_bytes(MP3)
    (folder / "call.wav").write_bytes(WAV)
    (folder / "note.md").write_text("a note\n", encoding="utf-8")
    return folder


def opened(root: Path, photos: Path, media: MediaRules | None = ALL, *patterns: str) -> Workspace:
    return Workspace(
        str(root), sources=lambda: (Source("photos", str(photos), patterns),), media=media
    )


def listed(workspace: Workspace) -> list[str]:
    return [state.path for state in workspace.scan().files]


def reasons(workspace: Workspace) -> dict[str, str]:
    return dict(workspace.scan().skipped)


def test_images_and_audio_of_an_added_folder_are_listed(root: Path, photos: Path) -> None:
    assert listed(opened(root, photos)) == [
        "MEMORY.md",
        "photos:call.wav",
        "photos:heron.png",
        "photos:note.md",
        "photos:song.mp3",
        "photos:trip/Pier.JPG",
    ]


def test_without_the_setting_only_markdown_is_listed(root: Path, photos: Path) -> None:
    assert listed(opened(root, photos, None)) == ["MEMORY.md", "photos:note.md"]
    with pytest.raises(PathDenied, match=r"is not a \.md file"):
        opened(root, photos, None).read_lines("photos:heron.png")


def test_only_the_wanted_modality_is_listed(root: Path, photos: Path) -> None:
    audio = ALL._replace(modalities=("audio",))
    assert listed(opened(root, photos, audio))[1:] == [
        "photos:call.wav",
        "photos:note.md",
        "photos:song.mp3",
    ]


def test_the_workspaces_own_memory_folder_has_markdown_only(root: Path, photos: Path) -> None:
    workspace = opened(root, photos)
    assert "memory/own.png" not in listed(workspace)
    with pytest.raises(PathDenied, match=r"is not a \.md file"):
        workspace.read_lines("memory/own.png")
    with pytest.raises(PathDenied):
        workspace.append("photos:heron.png", "text")


@pytest.mark.parametrize("inside", [True, False])
def test_an_extra_path_may_be_a_folder_or_one_image(
    root: Path, tmp_path: Path, inside: bool
) -> None:
    folder = (root if inside else tmp_path) / "pictures"
    folder.mkdir()
    for name in ("a.png", "b.png"):
        (folder / name).write_bytes(PNG + name.encode())
    lead = "pictures" if inside else "../pictures"
    whole = Workspace(str(root), [str(folder)], media=ALL)
    assert {f"{lead}/a.png", f"{lead}/b.png"} < set(listed(whole))
    single = Workspace(str(root), [str(folder / "a.png")], media=ALL)
    assert f"{lead}/a.png" in listed(single) and f"{lead}/b.png" not in listed(single)
    assert single.read_lines(f"{lead}/a.png").mime == "image/png"
    small = Workspace(str(root), [str(folder / "a.png")], media=ALL._replace(max_file_bytes=5))
    assert reasons(small) == {f"{lead}/a.png": "33 bytes; the limit is 5"}


def test_patterns_hold_for_images_too(root: Path, photos: Path) -> None:
    (photos / "x.webp").write_bytes(b"RIFF....WEBP")
    workspace = opened(root, photos, ALL, "**/*.md", "trip/*")
    assert listed(workspace)[1:] == ["photos:note.md", "photos:trip/Pier.JPG"]
    assert reasons(workspace) == {}
    with pytest.raises(PathDenied, match="is not searched"):
        workspace.read_lines("photos:heron.png")


def test_files_too_large_or_of_another_type_are_reported(root: Path, photos: Path) -> None:
    for name in ("a.webp", "b.heic", "c.flac"):
        (photos / name).write_bytes(b"x")
    (photos / "movie.mp4").write_bytes(b"x")
    with (photos / "sparse.png").open("wb") as file:
        file.truncate(1 << 40)
    found = reasons(opened(root, photos))
    refused = "a type that the model does not take: it takes PNG, JPEG, MP3 and WAV"
    assert found == {
        "photos:a.webp": refused,
        "photos:b.heic": refused,
        "photos:c.flac": refused,
        "photos:sparse.png": "1,099,511,627,776 bytes; the limit is 10,485,760",
    }
    images = reasons(opened(root, photos, ALL._replace(modalities=("image",))))
    assert "photos:c.flac" not in images and "photos:a.webp" in images


def test_links_pipes_and_leftovers_are_not_listed(root: Path, photos: Path) -> None:
    (photos / "link.png").symlink_to("/etc/hostname")
    os.mkfifo(photos / "pipe.png")
    (photos / "._heron.png").write_bytes(PNG)
    (photos / "folder.png").mkdir()
    workspace = opened(root, photos)
    assert [path for path in listed(workspace) if "heron" not in path] == [
        "MEMORY.md",
        "photos:call.wav",
        "photos:note.md",
        "photos:song.mp3",
        "photos:trip/Pier.JPG",
    ]
    found = reasons(workspace)
    assert found["photos:link.png"] == "a link, and links are never followed"
    assert found["photos:pipe.png"] == "a pipe, not a file"
    for name in ("link.png", "pipe.png"):
        with pytest.raises(PathDenied):
            workspace.read_media(f"photos:{name}")
        with pytest.raises(PathDenied):
            workspace.read_lines(f"photos:{name}")


def test_names_with_newlines_and_direction_marks_are_listed(root: Path, photos: Path) -> None:
    odd = "a\nb\u202egnp.png"
    (photos / odd).write_bytes(PNG)
    (photos / os.fsdecode(b"\xff.png")).write_bytes(PNG)
    workspace = opened(root, photos)
    assert f"photos:{odd}" in listed(workspace)
    assert "photos:\\xff.png" in reasons(workspace)
    text = workspace.read_lines(f"photos:{odd}").text
    assert "\n" not in text and "\u202e" not in text and "image/png" in text


def test_reading_gives_the_state_and_the_bytes(root: Path, photos: Path) -> None:
    workspace = opened(root, photos)
    states = {state.path: state for state in workspace.scan().files}
    assert workspace.read_media("photos:heron.png") == (states["photos:heron.png"], PNG)
    (photos / "heron.png").unlink()
    with pytest.raises(WorkspaceError, match="is gone"):
        workspace.read_media("photos:heron.png")


def test_a_file_that_grew_beyond_the_limit_after_the_scan_is_refused(
    root: Path, photos: Path
) -> None:
    workspace = opened(root, photos, ALL._replace(max_file_bytes=100))
    assert "photos:heron.png" in listed(workspace)
    (photos / "heron.png").write_bytes(PNG * 10)
    with pytest.raises(PathDenied, match="more than 100 bytes"):
        workspace.read_media("photos:heron.png")


def test_a_watcher_looks_at_images_in_added_folders_only(root: Path, photos: Path) -> None:
    def wanted(media: MediaRules | None) -> dict[str, bool]:
        targets = memory_targets(str(root), (str(photos / "trip"),), (str(photos),), media)
        return {target.folder: target.is_wanted("new.PNG") for target in targets}

    assert wanted(ALL) == {
        str(root): False,
        str(root / "memory"): False,
        str(photos / "trip"): True,
        str(photos): True,
    }
    assert not any(wanted(None).values())


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("heron.png", "photos:heron.png is an image (image/png, 28 bytes)"),
        ("trip/Pier.JPG", "photos:trip/Pier.JPG is an image (image/jpeg, 24 bytes)"),
        ("song.mp3", "photos:song.mp3 is an audio file (audio/mpeg, 24 bytes)"),
        ("fake.png", "photos:fake.png is a file (9 bytes of an unknown type)"),
    ],
)
def test_reading_lines_describes_the_file_in_one_sentence(
    root: Path, photos: Path, name: str, sentence: str
) -> None:
    (photos / "fake.png").write_bytes(b"not a png")
    excerpt = opened(root, photos).read_lines(f"photos:{name}#L1")
    assert excerpt.text == f"{sentence}; open it with another program."
    assert (excerpt.lines, excerpt.total_lines, excerpt.missing) == (1, 1, False)
    assert opened(root, photos).read_lines("photos:nothing.png").missing


@pytest.mark.parametrize(
    ("head", "mime"),
    [
        (PNG, "image/png"),
        (JPEG, "image/jpeg"),
        (WAV, "audio/wav"),
        (MP3, "audio/mpeg"),
        (b"ID3\x04\0\0\0\0\0\0", "audio/mpeg"),
        (b"", ""),
        (b"\xff\xfb", ""),
        (b"\xff\xff\xff\xff", ""),
        (b"\xff\xf1\x50\x80", ""),  # AAC
        (b"GIF89a", ""),
        (b"RIFF\x24\0\0\0WEBPVP8 ", ""),
        (b"OggS", ""),
        (b"\x89PNG", ""),
        (b"# A note\n", ""),
    ],
)
def test_the_type_is_found_by_the_first_bytes(head: bytes, mime: str) -> None:
    assert media_type(head) == mime


@pytest.mark.parametrize(
    ("provider", "model", "can"),
    [
        ("gemini", "gemini-embedding-2", True),
        ("gemini", "models/gemini-embedding-2-preview", True),
        ("gemini", "google/gemini-embedding-2", True),
        ("gemini", "gemini-embedding-001", False),
        ("gemini", "", False),
        ("openai", "gemini-embedding-2", False),
        ("auto", "gemini-embedding-2", False),
    ],
)
def test_only_the_second_gemini_generation_embeds_files(
    provider: str, model: str, can: bool
) -> None:
    assert can_embed(provider, model) is can
