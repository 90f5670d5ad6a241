"""The README fits on a screen, and its two commands are the ones that are really used."""

from __future__ import annotations

import re
import tomllib

import pytest
from docblocks import PROJECT, ROOT, blocks, links

from clawmark import __version__

README = ROOT / "README.md"
INSTALL = "pip install '.[local]' && clawmark demo"
TEST = "scripts/ci"


def commands() -> list[str]:
    return [
        block.text for block in blocks(README) if block.language == "console" and not block.runs
    ]


def test_the_readme_fits_on_a_screen() -> None:
    lines = README.read_text(encoding="utf-8").rstrip("\n").split("\n")
    assert len(lines) <= 80
    assert max(map(len, lines)) <= 120


def test_there_is_one_command_to_try_it_and_one_to_test_it() -> None:
    assert commands() == [INSTALL, TEST]


def test_every_link_of_the_readme_is_an_address_that_works_on_pypi() -> None:
    assert links(README)
    assert [link for link in links(README) if not link.startswith(f"{PROJECT}/")] == []


def test_the_readme_says_how_to_install_from_pypi_with_pip_pipx_and_uvx() -> None:
    text = README.read_text(encoding="utf-8")
    for command in (
        'pip install "clawmark[local]"',
        'pipx install "clawmark[local]"',
        'uvx --from "clawmark[local]" clawmark demo',
    ):
        assert f"`{command}`" in text


def test_there_are_five_examples_and_all_run_but_the_talk_with_a_model() -> None:
    assert len([block for block in blocks(README) if block.runs]) == 4
    (talk,) = [block for block in blocks(README) if block.language == "text"]
    assert talk.text.startswith("$ clawmark chat --model ")


def test_ci_runs_the_readmes_test_command_and_nothing_else() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").split("\n")
    ran = [line for line in lines if line and not line.startswith(("#", "set ", "cd "))]
    assert ran == [f"exec {TEST}"]


def test_every_script_the_contributors_page_names_is_there_and_can_be_run() -> None:
    page = (ROOT / "AGENTS.md").read_text(encoding="utf-8")
    scripts = [file for file in (ROOT / "scripts").iterdir() if file.is_file() and not file.suffix]
    assert {"install", "check", "test", "test-integration", "bench", "ci"} <= {
        file.name for file in scripts
    }
    for file in scripts:
        assert f"`scripts/{file.name}`" in page
        assert file.stat().st_mode & 0o111


@pytest.mark.parametrize("page", ["AGENTS.md", "docs/explanation/architecture.md"])
def test_the_layers_on_a_page_are_those_the_linter_checks(page: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    drawn = re.findall(r"^(\d)  (\w+(?: \| \w+)*)", (ROOT / page).read_text(encoding="utf-8"), re.M)
    expected = [re.sub(r" [:|] ", " | ", layer) for layer in layers]
    assert drawn == [(str(number), layer) for number, layer in enumerate(expected, 1)]


def test_the_changelog_and_the_package_have_the_version_of_the_project() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    version = next(line.split('"')[1] for line in project.split("\n") if line.startswith("version"))
    assert f"\n## {version}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert __version__ == version
