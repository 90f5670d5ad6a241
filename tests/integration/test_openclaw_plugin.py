"""The OpenClaw plugin in `integrations/openclaw`: its own tests in Node.js, and its tools with the
real Clawmark.

`tests/compat/test_real_openclaw_plugin.py` runs it inside real releases of OpenClaw."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from commands import HANG_SECONDS, Place, new_place

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "integrations" / "openclaw"
NODE = shutil.which("node") or ""
OLDEST_NODE = 20
"""The plugin needs 22, as OpenClaw does; its tests use nothing that is newer than this."""
PRIVATE = "marker4711"

CALLS = """
import plugin from %(index)s;
const tools = {};
const services = [];
plugin.register({
  pluginConfig: %(config)s,
  config: {},
  runtime: {
    agent: { resolveAgentWorkspaceDir: () => %(workspace)s },
    state: { resolveStateDir: () => %(state)s },
  },
  registerTool: (factory, { names }) => { tools[names[0]] = factory; },
  registerMemoryCapability: () => {},
  registerHook: () => {},
  registerService: (service) => services.push(service),
});
const answers = [];
for (const [name, sessionKey, args] of %(calls)s) {
  const tool = tools[name]({ agentId: "main", sessionKey, config: {} });
  answers.push((await tool.execute("1", args)).details);
}
await services[0].stop();
console.log(JSON.stringify(answers));
"""
"""Loads the plugin as OpenClaw does, calls tools, and prints their answers."""


def _node_version() -> int:
    said = subprocess.run([NODE, "--version"], capture_output=True, text=True, check=True).stdout
    return int(said.removeprefix("v").split(".")[0])


needs_node = pytest.mark.skipif(
    not NODE or _node_version() < OLDEST_NODE,
    reason=f"Node.js {OLDEST_NODE} or newer is not installed",
)


@needs_node
@pytest.mark.parametrize(
    "file", sorted(PLUGIN.glob("test/*.test.js")), ids=lambda file: file.name.split(".")[0]
)
def test_javascript_tests_pass(file: Path) -> None:
    ran = subprocess.run(
        [NODE, "--test", str(file)],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    passed = re.search(r"^. pass (\d+)$", ran.stdout, re.MULTILINE)
    assert passed is not None and int(passed[1]) > 0


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = new_place(tmp_path)
    place.write("memory/2026-02-03.md", f"# 2026-02-03\n\n- The kingfisher is {PRIVATE}.\n")
    return place


def answers(place: Place, calls: list[tuple[str, str, Mapping[str, object]]]) -> list[Any]:
    """What the tools of the plugin answer to calls: (tool, session key, arguments)."""
    config = {"command": sys.executable, "args": ["-m", "clawmark"], "append": True}
    values = {
        "index": (PLUGIN / "index.js").as_uri(),
        "config": config,
        "workspace": str(place.workspace),
        "state": str(place.state),
        "calls": calls,
    }
    script = CALLS % {name: json.dumps(value) for name, value in values.items()}
    ran = subprocess.run(
        [NODE, "--input-type=module", "-e", script],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        env=place.environment({"CLAWMARK_WORKSPACE": None, "CLAWMARK_STATE_DIR": None}),
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return list(json.loads(ran.stdout))


@needs_node
def test_scope_of_a_call_is_that_of_its_session(place: Place) -> None:
    pytest.importorskip("mcp")
    search = {"query": "kingfisher", "minScore": 0}
    read = {"path": "memory/2026-02-03.md"}
    note = {"text": "Ada decided that the ferry timetable is printed on Mondays."}
    group = "agent:main:telegram:group:-100200300"
    # The first search of a busy machine may have too little time to index the files itself.
    assert place.run("index").code == 0
    found, denied, unknown, text, hidden, refused, written = answers(
        place,
        [
            ("memory_search", "agent:main:main", search),
            ("memory_search", group, search),
            ("memory_search", "", search),
            ("memory_get", "agent:main:main", read),
            ("memory_get", group, read),
            ("memory_append", group, note),
            ("memory_append", "agent:main:main", note),
        ],
    )
    assert PRIVATE in found["results"][0]["snippet"]
    for answer in (denied, unknown, hidden):
        assert answer["error"] == "Memory is unavailable in shared sessions."
        assert PRIVATE not in json.dumps(answer)
    assert PRIVATE in text["text"]
    assert "error" in refused and written["written"] is True
    assert place.workspace.joinpath(written["path"]).read_text().count("ferry timetable") == 1


def test_manifest_and_package_name_the_same_plugin() -> None:
    package = json.loads((PLUGIN / "package.json").read_text())
    manifest = json.loads((PLUGIN / "openclaw.plugin.json").read_text())
    assert package["name"] == manifest["id"] == "clawmark"
    assert package["version"] == manifest["version"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert package["version"] == project["version"]
    assert package["license"] == project["license"]
    assert (PLUGIN / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    for name in (*package["files"], *package["openclaw"]["extensions"]):
        assert (PLUGIN / name).exists(), name
    assert "dependencies" not in package


def test_manifest_declares_the_tools_that_the_plugin_registers() -> None:
    manifest = json.loads((PLUGIN / "openclaw.plugin.json").read_text())
    contract = json.loads((PLUGIN / "contract.json").read_text())
    assert manifest["contracts"]["tools"] == [tool["name"] for tool in contract["tools"]]


def test_plugin_is_not_part_of_the_wheel() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    assert build["targets"]["wheel"]["packages"] == ["src/clawmark"]
    assert "force-include" not in build["targets"]["wheel"]
