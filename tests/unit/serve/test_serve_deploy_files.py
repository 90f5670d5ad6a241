"""The files in `deploy/` fit together, as far as can be checked without starting containers."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from clawmark.config.load import load
from clawmark.config.paths import resolve_places
from clawmark.config.schema.serve import ServeOptions

yaml = pytest.importorskip("yaml")

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    return found


def test_the_services_depend_on_services_and_use_what_is_declared() -> None:
    document = compose()
    services = document["services"]
    for name, service in services.items():
        assert "image" in service or "build" in service, name
        assert set(service.get("depends_on", ())) <= set(services), name
        assert set(service["networks"]) <= set(document["networks"]), name
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            if source.startswith("./"):
                assert (DEPLOY / source).is_file(), source
            else:
                assert source in document["volumes"], source
        if "build" in service:
            assert (DEPLOY.parent / service["build"]["dockerfile"]).is_file()


def test_only_the_proxy_can_be_reached_and_no_password_is_in_the_file() -> None:
    document = compose()
    assert [name for name, one in document["services"].items() if "ports" in one] == ["proxy"]
    assert document["networks"]["inside"]["internal"] is True
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    passwords = re.findall(r"(?:PASSWORD:|clawmark_\w+:)\s*\"?([^@\s\"]+)", text)
    assert passwords
    assert all(one.startswith("${") for one in passwords), passwords


def test_the_configuration_of_the_containers_is_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Imported here: optional extras.
    pytest.importorskip("psycopg_pool")
    from clawmark.composition.serving import open_team_database, serve_options
    from clawmark.serve.clients import read_proxies
    from clawmark.serve.server import check_options

    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "workspace").mkdir()
    places = resolve_places(
        str(tmp_path / "workspace"), None, str(DEPLOY / "clawmark.json"), str(tmp_path / "state")
    )
    loaded = load(places, {})
    assert loaded.warnings == ()
    environ = {
        "CLAWMARK_DATABASE": "postgresql://u:p@database/clawmark",
        "CLAWMARK_PUBLIC_URL": "https://memory.example",
    }
    options = serve_options(loaded.settings, environ)
    check_options(options)
    open_team_database(loaded.settings, environ).close()
    subnet = compose()["networks"]["inside"]["ipam"]["config"][0]["subnet"]
    assert read_proxies(options.trusted_proxies).trusts(subnet.replace("0/24", "7"))


def test_the_proxies_allow_the_bodies_that_the_server_allows() -> None:
    limit = ServeOptions().max_body_bytes >> 20
    assert f"client_max_body_size {limit}m;" in (DEPLOY / "nginx.conf").read_text("utf-8")
    assert f"max_size {limit}MB" in (DEPLOY / "Caddyfile").read_text("utf-8")
    for name in ("nginx.conf", "Caddyfile"):
        text = (DEPLOY / name).read_text("utf-8")
        assert f"127.0.0.1:{ServeOptions().port}" in text
        assert "/metrics" in text


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    unit = (DEPLOY / "clawmark.service").read_text(encoding="utf-8")
    # The program and the user are not on this machine.
    unit = unit.replace("/opt/clawmark/bin/clawmark", shutil.which("true") or "/bin/true")
    unit = re.sub(r"(?m)^(User|Group)=.*$", r"\1=root", unit)
    file = tmp_path / "clawmark.service"
    file.write_text(unit, encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", str(file)], capture_output=True, text=True, check=False
    )
    about = [line for line in done.stderr.splitlines() if "clawmark" in line]
    assert (done.returncode, about) == (0, [])
