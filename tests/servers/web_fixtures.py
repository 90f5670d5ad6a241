"""The real web page for tests: `clawmark web` in a process of its own, and the system's Chromium.

    def test_…(web_site: WebSite, browser_page: Page) -> None:
        browser_page.goto(web_site.first_address)

`web_site` serves the sample memory; `serve_web` serves any workspace. Tests that need a browser are
skipped where no Chromium is found."""

from __future__ import annotations

import http.client
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import pytest

from clawmark import Memory
from clawmark.workspace.sample import write_sample

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
HANG_SECONDS = 60


class Answer(NamedTuple):
    """What the server answered."""

    status: int
    headers: dict[str, str]
    body: str


class WebSite(NamedTuple):
    """A running web page."""

    first_address: str
    """With the token; it leads to the search page."""
    workspace: Path
    state: Path
    process: subprocess.Popen[str]

    @property
    def host(self) -> str:
        return urlsplit(self.first_address).netloc

    @property
    def address(self) -> str:
        return f"http://{self.host}"

    def request(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: str = ""
    ) -> Answer:
        """Send a request with exactly these headers in addition to Host."""
        connection = http.client.HTTPConnection(self.host, timeout=HANG_SECONDS)
        try:
            connection.request(method, path, body.encode() or None, dict(headers or {}))
            got = connection.getresponse()
            text = got.read().decode("utf-8", "replace")
            return Answer(got.status, {k.lower(): v for k, v in got.getheaders()}, text)
        finally:
            connection.close()

    def cookie(self) -> str:
        """Exchange the token of the first address for the cookie."""
        parts = urlsplit(self.first_address)
        answer = self.request("GET", f"{parts.path}?{parts.query}")
        return answer.headers["set-cookie"].partition(";")[0]

    def get(self, path: str) -> Answer:
        """Ask for a page as a browser that has been let in."""
        return self.request("GET", path, {"cookie": self.cookie()})

    def post(self, path: str, fields: Mapping[str, str]) -> Answer:
        """Send a form as a page of the site does."""
        cookie = self.cookie()
        page = self.request("GET", "/search", {"cookie": cookie}).body
        token = page.partition('name="form-token" content="')[2].partition('"')[0]
        headers = {
            "cookie": cookie,
            "origin": self.address,
            "content-type": "application/x-www-form-urlencoded",
        }
        return self.request("POST", path, headers, urlencode({**fields, "form_token": token}))


@contextmanager
def serve_web(
    workspace: Path, state: Path, *options: str, stderr: int = subprocess.DEVNULL
) -> Iterator[WebSite]:
    """Run `clawmark web` for a workspace on a free port until the block ends."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("CLAWMARK_", "OPENCLAW_"))}
    command = [sys.executable, "-m", "clawmark", "web", "--no-open", "--port", "0", *options]
    process = subprocess.Popen(
        [*command, "--workspace", str(workspace), "--state-dir", str(state)],
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        env={**kept, "HOME": str(state.parent)},
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), f"the server said {address!r}"
        yield WebSite(address, workspace, state, process)
    finally:
        process.terminate()
        process.communicate(timeout=HANG_SECONDS)


@pytest.fixture(scope="module")
def web_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebSite]:
    """The web page of the sample memory, which is indexed."""
    folder = tmp_path_factory.mktemp("web")
    (folder / "workspace").mkdir()
    (folder / "state").mkdir(mode=0o700)
    write_sample(str(folder / "workspace"), date.today())
    with Memory.open(folder / "workspace", state_dir=folder / "state", background=False) as memory:
        memory.sync()  # so that the server announces only what a test changes
    with serve_web(folder / "workspace", folder / "state") as site:
        yield site


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A running Chromium; one for each module, because Playwright's event loop runs until it ends,
    and other tests could not run theirs."""
    if not CHROMIUM:
        pytest.skip("no Chromium is installed: apt-get install --no-install-recommends chromium")
    # Imported late: most tests need no browser.
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def browser_page(chromium: Any) -> Iterator[Any]:
    """An empty page of a fresh profile; script errors and foreign requests fail the test."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    problems = list[str]()
    page.on("pageerror", lambda error: problems.append(f"script error: {error}"))
    page.on("request", lambda request: problems.extend(_foreign(request.url)))
    page.on(
        "console",
        lambda message: (
            problems.append(f"console: {message.text}")
            if "Content Security Policy" in message.text
            else None
        ),
    )
    yield page
    context.close()
    assert not problems, problems


def _foreign(address: str) -> list[str]:
    parts = urlsplit(address)
    if parts.scheme in ("http", "https") and parts.hostname != "127.0.0.1":
        return [f"request to another host: {address}"]
    return []
