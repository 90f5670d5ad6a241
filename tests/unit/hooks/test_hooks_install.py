"""Connecting a host changes what it must, and taking it back gives every byte back."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from configurations import JSON, JSONC, TOML

from clawmark.cli import VERBS
from clawmark.config.json5 import parse
from clawmark.hooks.hosts import NAMES, Addition, Launch, Scope, Surroundings, additions
from clawmark.hooks.install import carry_out, plan_install, plan_removal
from clawmark.hooks.receipt import load, save
from clawmark.model.errors import ConfigError, WriteConflict

LAUNCH = Launch(("/opt/my tools/clawmark",), ("--workspace", "/home/ann/agent"))
SKILL = "---\nname: clawmark\ndescription: memory\n---\n"
WITH_COMMENTS = ("cursor", "vscode", "gemini", "opencode", "openclaw")


class Desk:
    """A home, a project and our state, in a folder of its own."""

    def __init__(self, folder: Path, host: str, scope: Scope = "user") -> None:
        self.host, self.scope, self.state = host, scope, folder / "state"
        self.home, self.project = folder / "home", folder / "project"
        self.home.mkdir()
        self.project.mkdir()
        self.around = Surroundings(
            home=str(self.home), project=str(self.project), environ={}, platform="linux"
        )

    def wanted(self, launch: Launch = LAUNCH) -> list[Addition]:
        return additions(self.host, self.scope, self.around, launch, SKILL)

    def configuration(self) -> Path:
        return Path(self.wanted()[0].file)

    def install(self, launch: Launch = LAUNCH) -> int:
        receipt = load(str(self.state))
        plan = plan_install(self.wanted(launch), receipt)
        carry_out(plan, receipt, str(self.state), mode=0o600)
        return len(plan.edits)

    def remove(self) -> int:
        receipt = load(str(self.state))
        plan = plan_removal(self.wanted(), receipt)
        carry_out(plan, receipt, str(self.state), mode=0o600)
        return len(plan.edits)

    def files(self) -> dict[str, bytes | None]:
        """Everything there is below the home and the project, folders too."""
        found = [path for root in (self.home, self.project) for path in sorted(root.rglob("*"))]
        return {str(path): path.read_bytes() if path.is_file() else None for path in found}


def cases() -> Iterator[tuple[str, Scope, str, bytes | None]]:
    for host in NAMES:
        for scope in ("user", "project"):
            if (host, scope) == ("openclaw", "project"):
                continue
            known = (
                TOML if host == "codex" else {**JSON, **(JSONC if host in WITH_COMMENTS else {})}
            )
            for name, content in known.items():
                yield host, scope, name, content


CASES = list(cases())


@pytest.mark.parametrize(
    ("host", "scope", "name", "content"), CASES, ids=["-".join(case[:3]) for case in CASES]
)
def test_removing_gives_every_byte_back_and_a_second_install_changes_nothing(
    tmp_path: Path, host: str, scope: Scope, name: str, content: bytes | None
) -> None:
    desk = Desk(tmp_path, host, scope)
    for addition in desk.wanted():
        if content is not None and addition.form != "text":
            os.makedirs(os.path.dirname(addition.file), exist_ok=True)
            Path(addition.file).write_bytes(content)
    before = desk.files()
    assert desk.install() > 0
    connected = desk.files()
    assert connected != before
    check_connected(desk)
    assert desk.install() == 0
    assert desk.files() == connected
    desk.remove()
    assert desk.files() == before
    assert desk.remove() == 0


def check_connected(desk: Desk) -> None:
    """What the host will read says what it should, and what it said before is still there."""
    for addition in desk.wanted():
        text = Path(addition.file).read_bytes().decode().removeprefix("\ufeff")
        if addition.form == "toml":
            read = tomllib.loads(text.replace("\r\n", "\n"))
            assert read["mcp_servers"]["clawmark"] == {
                "command": "/opt/my tools/clawmark",
                "args": ["mcp", "--workspace", "/home/ann/agent"],
            }
            commands = [
                hook["command"] for group in read["hooks"]["SessionEnd"] for hook in group["hooks"]
            ]
            assert commands == [
                "'/opt/my tools/clawmark' hook codex SessionEnd --workspace /home/ann/agent"
            ]
        elif addition.form == "text":
            assert text == SKILL
        else:
            value = parse(text).value
            for key in addition.path:
                assert isinstance(value, dict)
                value = value[key]
            assert value == addition.value if addition.form == "json" else addition.value in value  # type: ignore[operator]


@pytest.mark.parametrize(
    "name", [name for name, content in JSON.items() if content and content.strip()]
)
def test_strict_json_stays_strict_json(tmp_path: Path, name: str) -> None:
    desk = Desk(tmp_path, "claude-code")
    content = JSON[name]
    assert content is not None
    desk.configuration().write_bytes(content)
    desk.install()
    assert (
        json.loads(desk.configuration().read_bytes().decode("utf-8-sig"))["mcpServers"]["clawmark"][
            "type"
        ]
        == "stdio"
    )


@pytest.mark.parametrize("host", NAMES)
def test_removal_keeps_changes_by_others(tmp_path: Path, host: str) -> None:
    desk = Desk(tmp_path, host)
    file = desk.configuration()
    file.parent.mkdir(parents=True, exist_ok=True)
    added = b"\n[later]\nx = 1\n" if host == "codex" else b"\n"
    file.write_bytes(b'model = "m"\n' if host == "codex" else b'{\n  "a": 1\n}')
    desk.install()
    file.write_bytes(file.read_bytes() + added)
    desk.remove()
    assert file.read_bytes() == (b'model = "m"\n' if host == "codex" else b'{\n  "a": 1\n}') + added


def test_removal_from_a_reformatted_file_keeps_everything_else(tmp_path: Path) -> None:
    """Claude Code writes its own file again and again, in its own way."""
    desk = Desk(tmp_path, "claude-code")
    desk.configuration().write_text('{\n    "mcpServers": {},\n    "a": {"b": [1, 2]}\n}\n')
    desk.install()
    for file in {addition.file for addition in desk.wanted() if addition.form != "text"}:
        Path(file).write_text(json.dumps(json.loads(Path(file).read_text()), indent="\t"))
    desk.remove()
    assert json.loads(desk.configuration().read_text()) == {"mcpServers": {}, "a": {"b": [1, 2]}}
    assert json.loads((desk.home / ".claude" / "settings.json").read_text()) == {}


def test_without_a_receipt_our_entries_are_found_by_their_names(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "claude-code")
    settings = desk.home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(
        '{"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "echo hi"}]}]}}'
    )
    desk.install()
    (desk.state / "receipt.json").unlink()
    assert desk.install(LAUNCH._replace(flags=("--workspace", "/elsewhere"))) == 1, (
        "only hooks are known to be ours"
    )
    assert settings.read_text().count("hook claude-code SessionStart") == 1
    (desk.state / "receipt.json").unlink()
    desk.remove()
    kept = json.loads(settings.read_text())["hooks"]
    assert kept["SessionStart"] == [{"hooks": [{"type": "command", "command": "echo hi"}]}]
    assert "clawmark" not in settings.read_text() + desk.configuration().read_text()
    assert not (desk.home / ".claude" / "skills" / "clawmark" / "SKILL.md").exists()


def test_installing_with_another_workspace_replaces_what_was_there(tmp_path: Path) -> None:
    for host in NAMES:
        (tmp_path / host).mkdir()
        desk = Desk(tmp_path / host, host)
        desk.install()
        assert desk.install(LAUNCH._replace(flags=("--workspace", "/elsewhere"))) >= 1
        text = desk.configuration().read_text()
        assert "/elsewhere" in text and "/home/ann/agent" not in text
        desk.remove()
        assert desk.files() == {}


def test_entry_made_by_hand_is_not_changed(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "cursor")
    desk.configuration().parent.mkdir()
    by_hand = b'{"mcpServers": {"clawmark": {"command": "my-own-wrapper"}}}'
    desk.configuration().write_bytes(by_hand)
    plan = plan_install(desk.wanted(), {})
    assert [edit.file for edit in plan.edits] == [desk.wanted()[-1].file]
    assert "not changed" in plan.notices[0]
    before = desk.files()
    assert desk.remove() == 0, "without a receipt"
    desk.install()
    desk.remove()
    assert desk.files() == before


def test_a_server_registered_by_hand_stays_when_the_rest_is_taken_back(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "claude-code")
    desk.configuration().write_text(
        '{"mcpServers": {"clawmark": {"command": "clawmark", "args": ["mcp"]}}}'
    )
    before = desk.files()
    desk.install()
    desk.remove()
    assert desk.files() == before


def test_foreign_skill_file_is_neither_replaced_nor_removed(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "gemini")
    skill = Path(desk.wanted()[-1].file)
    skill.parent.mkdir(parents=True)
    skill.write_text("mine\n")
    desk.install()
    assert skill.read_text() == "mine\n"
    desk.remove()
    assert skill.read_text() == "mine\n"


def test_a_skill_file_that_was_edited_since_stays(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "gemini")
    desk.install()
    skill = Path(desk.wanted()[-1].file)
    skill.write_text("edited\n")
    plan = plan_removal(desk.wanted(), load(str(desk.state)))
    assert skill.name in plan.notices[0] and "is kept" in plan.notices[0]
    desk.remove()
    assert skill.read_text() == "edited\n"


def test_codex_hooks_go_where_codex_has_hooks(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "codex")
    (desk.home / ".codex").mkdir()
    (desk.home / ".codex" / "hooks.json").write_text("{}\n")
    desk.install()
    hooks = json.loads((desk.home / ".codex" / "hooks.json").read_text())["hooks"]
    assert sorted(hooks) == ["PreCompact", "SessionEnd", "SessionStart", "UserPromptSubmit"]
    assert hooks["SessionEnd"][0]["hooks"][0]["timeout"] == 3
    assert "hooks" not in tomllib.loads((desk.home / ".codex" / "config.toml").read_text())
    desk.remove()
    assert (desk.home / ".codex" / "hooks.json").read_text() == "{}\n"


def test_opencode_of_both_versions_is_known_by_its_file(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "opencode")
    assert desk.wanted()[0].path == ("mcp", "servers", "clawmark")
    folder = desk.home / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.jsonc").write_text(
        '{ "mcp": { "files": { "type": "local", "command": ["f"] } } } // v1\n'
    )
    assert desk.wanted()[0].file.endswith("opencode.jsonc")
    assert desk.wanted()[0].path == ("mcp", "clawmark")


def test_a_link_stays_a_link_and_its_target_is_edited(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "cursor")
    dotfiles = tmp_path / "dotfiles.json"
    dotfiles.write_text('{"mcpServers": {}}')
    dotfiles.chmod(0o640)
    desk.configuration().parent.mkdir()
    desk.configuration().symlink_to(dotfiles)
    desk.install()
    assert desk.configuration().is_symlink() and "clawmark" in dotfiles.read_text()
    assert dotfiles.stat().st_mode & 0o777 == 0o640
    desk.remove()
    assert desk.configuration().is_symlink() and dotfiles.read_text() == '{"mcpServers": {}}'


@pytest.mark.parametrize(
    ("host", "content", "said"),
    [
        ("cursor", b'{"mcpServers": [}', "line 1"),
        ("cursor", b'{"mcpServers": []}', "mcpServers is not an object"),
        ("cursor", b"[]", "the top level is not an object"),
        ("cursor", b'{"a": 1, "a": 2}', "duplicate key"),
        ("cursor", b"\xff\xfe{\x00}\x00", "not UTF-8"),
        ("codex", b"model = \n", "config.toml"),
        ("codex", b"mcp_servers = { a = { command = 'x' } }\n", "conflict with Clawmark"),
    ],
)
def test_a_file_that_cannot_be_understood_is_an_error_and_nothing_changes(
    tmp_path: Path, host: str, content: bytes, said: str
) -> None:
    desk = Desk(tmp_path, host)
    desk.configuration().parent.mkdir(parents=True, exist_ok=True)
    desk.configuration().write_bytes(content)
    before = desk.files()
    with pytest.raises(ConfigError, match=said) as raised:
        desk.install()
    assert raised.value.hint
    assert desk.files() == before


def test_a_file_that_changes_between_plan_and_deed_is_not_written(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "cursor")
    plan = plan_install(desk.wanted(), {})
    desk.configuration().parent.mkdir()
    desk.configuration().write_text("{}")
    with pytest.raises(WriteConflict):
        carry_out(plan, {}, str(desk.state), mode=0o600)
    assert desk.configuration().read_text() == "{}"


@pytest.mark.parametrize("host", NAMES)
def test_crash_before_the_first_edit_can_be_undone(tmp_path: Path, host: str) -> None:
    desk = Desk(tmp_path, host)
    desk.configuration().parent.mkdir(parents=True, exist_ok=True)
    desk.configuration().write_bytes(b"" if host == "codex" else b'{"mcpServers": {}}')
    before = desk.files()
    save(str(desk.state), plan_install(desk.wanted(), {}).receipt)
    desk.remove()
    assert desk.files() == before
    assert load(str(desk.state)) == {}


def test_backups_hold_the_files_as_they_were_for_the_owner_only(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "cursor")
    desk.configuration().parent.mkdir()
    desk.configuration().write_text('{"mcpServers": {"x": {"env": {"TOKEN": "s3cret"}}}}')
    desk.install()
    (copy,) = (desk.state / "backups").iterdir()
    assert copy.read_text() == '{"mcpServers": {"x": {"env": {"TOKEN": "s3cret"}}}}'
    assert copy.stat().st_mode & 0o777 == 0o600
    assert (desk.state / "receipt.json").stat().st_mode & 0o777 == 0o600


def test_openclaw_has_no_configuration_of_a_project(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "openclaw", "project")
    with pytest.raises(ConfigError, match="one configuration"):
        desk.wanted()


def test_the_skill_has_the_head_that_every_host_reads() -> None:
    """One line for each key, the name of its folder, at most 1,024 characters; and only commands
    that there are.
    """
    text = files("clawmark.hooks").joinpath("SKILL.md").read_text(encoding="utf-8")
    _, head, body = text.split("---\n", 2)
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    assert (
        fields["name"] == "clawmark"
        and 50 < len(fields["description"]) <= 1_024
        and set(fields) == {"name", "description"}
    )
    shown = set(re.findall(r"`clawmark ([a-z]+)", body))
    assert shown == {"search", "get", "remember"} and shown <= set(VERBS)
