"""Measure the web page in Chromium: first paint, the answer to a key, weight, foreign requests.

    python bench/web.py --work DIR [--files 5000] [--provider static]

Input: the corpus made by the shared `corpus.py`, indexed before anything is measured. `clawmark
web` serves it, and the system's Chromium opens the search page and types questions. First paint is
what the browser reports (`first-contentful-paint`) in a new profile, so that nothing is cached; the
answer to a key is the time from the key to the hits in the page, by the clock of the browser.
Other work on the machine counts in both; the load and the CPU time of the server stand beside them.
Output: a table, and `bench/results/web.json`."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from harness import (
    clawmark_command,
    clean_environment,
    must,
    run,
    settings_file,
    shared_folder,
    table,
    verdict,
    write_result,
)

TARGETS = {"first_paint_ms": 300.0, "key_ms": 100.0, "weight_kb": 150.0, "foreign_requests": 0.0}
LOADS = 9
QUESTIONS = 6
KEYS = 12
"""Letters typed of each question."""

# The time from a key to the moment when the hits for exactly this query are in the page.
TYPE_ONE = """
async ([letter]) => {
  const field = document.getElementById("q");
  const results = document.getElementById("results");
  field.value += letter;
  const began = performance.now();
  const changed = new Promise((resolve) => {
    const watch = new MutationObserver(() => { watch.disconnect(); resolve(performance.now()); });
    watch.observe(results, { childList: true });
  });
  field.dispatchEvent(new Event("input", { bubbles: true }));
  return (await changed) - began;
}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, required=True, help="folder for corpus and index")
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--provider", default="static", help="the embedder; auto is the default")
    parser.add_argument("--chromium", default=shutil.which("chromium") or "/usr/bin/chromium")
    parser.add_argument("--python", default=sys.executable)
    given = parser.parse_args()
    work = given.work.resolve()
    corpus, questions = make_corpus(work, given.files)
    options = [
        *("--workspace", str(corpus), "--state-dir", str(work / "web-state")),
        *settings_file(work, given.provider),
    ]
    env = clean_environment(work / "home")
    must(run([*clawmark_command(given.python), "index", *options], env), "the index")
    command = [*clawmark_command(given.python), "web", "--no-open", *options]
    with serving(command, env) as (address, process):
        body = measure(given.chromium, address, questions, lambda: cpu_seconds(process))
    body |= {"files": given.files, "provider": given.provider, "targets": TARGETS}
    show(body)
    write_result("web", "python bench/web.py --work DIR", given.python, body)
    return 0


def make_corpus(work: Path, files: int) -> tuple[Path, list[str]]:
    """Make the notes, once, and return them with their questions."""
    corpus = work / f"corpus-{files}"
    if not corpus.is_dir():
        maker = shared_folder() / "bench" / "corpus.py"
        must(run([sys.executable, str(maker), str(corpus), "--files", str(files)]), "the corpus")
    asked = json.loads((work / f"corpus-{files}.queries.json").read_text(encoding="utf-8"))
    return corpus, [one["q"] for one in asked]


@contextmanager
def serving(command: list[str], env: dict[str, str]) -> Iterator[tuple[str, int]]:
    """Run the server until the block ends, and yield its first address and its process."""
    server = subprocess.Popen(
        [*command, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=env,
    )
    try:
        assert server.stdout is not None
        yield server.stdout.readline().strip(), server.pid
    finally:
        server.terminate()
        server.communicate()


def cpu_seconds(process: int) -> float:
    """Return the CPU time that a process has used, where the system says so; else 0."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(
    chromium: str, address: str, questions: list[str], cpu: Callable[[], float]
) -> dict[str, Any]:
    """Open the page and type into it, in a real browser."""
    # Imported late: the other benchmarks need no browser.
    from playwright.sync_api import sync_playwright

    requests, sizes = list[str](), dict[str, int]()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        paints = [first_paint(browser, address, requests, sizes) for _ in range(LOADS)]
        before = cpu()
        keys = type_questions(browser, address, questions, requests)
        used = cpu() - before
        browser.close()
    host = urlsplit(address).netloc
    return {
        "first_paint_ms": round(statistics.median(paints), 1),
        "first_paint_worst_ms": round(max(paints), 1),
        "key_ms": round(statistics.median(keys), 1),
        "key_p95_ms": round(sorted(keys)[int(0.95 * (len(keys) - 1))], 1),
        "first_paint_best_ms": round(min(paints), 1),
        "key_best_ms": round(min(keys), 1),
        "server_cpu_ms_a_key": round(1000 * used / len(keys), 1),
        "keys": len(keys),
        "weight_kb": round(sum(sizes.values()) / 1000, 1),
        "weight_by_file_kb": {name: round(size / 1000, 1) for name, size in sizes.items()},
        "foreign_requests": sum(urlsplit(one).netloc != host for one in requests),
        "requests": len(requests),
        "load": round(os.getloadavg()[0], 1),
        "browser": browser_version(chromium),
    }


def first_paint(browser: Any, address: str, requests: list[str], sizes: dict[str, int]) -> float:
    """Load the search page in a new profile and return when the browser first painted it."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(address)  # lets the browser in
    page.goto("about:blank")
    page.on("request", lambda request: requests.append(request.url))
    base = f"http://{urlsplit(address).netloc}"
    # A page with hits weighs most. The sizes are those of the files, as nothing is compressed.
    with page.expect_response(lambda one: "/search" in one.url):
        page.goto(f"{base}/search?q=backup", wait_until="load")
    page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length > 0")
    paint: float = page.evaluate(
        "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    )
    found = page.evaluate(
        "performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))"
        ".map((one) => [new URL(one.name).pathname, one.decodedBodySize])"
    )
    sizes |= {name: size for name, size in found if name != "/events"}
    context.close()
    return paint


def type_questions(
    browser: Any, address: str, questions: list[str], requests: list[str]
) -> list[float]:
    """Type the first letters of some questions, and return how long each key was unanswered."""
    context = browser.new_context()
    page = context.new_page()
    page.on("request", lambda request: requests.append(request.url))
    page.goto(address)
    times = list[float]()
    for number, question in enumerate(questions[: QUESTIONS + 1]):
        page.goto(f"http://{urlsplit(address).netloc}/search")
        taken = [page.evaluate(TYPE_ONE, [letter]) for letter in question[:KEYS]]
        times += taken if number else []  # the first question loads what all others use
    context.close()
    return times


def browser_version(chromium: str) -> str:
    return run([chromium, "--version", "--no-sandbox"]).out.strip()


def show(body: dict[str, Any]) -> None:
    names = {
        "first_paint_ms": "first paint, ms (median)",
        "key_ms": "answer to a key, ms (median)",
        "weight_kb": "page weight, KB",
        "foreign_requests": "requests to other hosts",
    }
    rows = [
        (
            text,
            f"{body[name]:g}",
            f"{TARGETS[name]:g}",
            verdict(body[name], TARGETS[name], at_least=False),
        )
        for name, text in names.items()
    ]
    print(table([("", "measured", "at most", ""), *rows]))
    print(
        f"95 % of the keys within {body['key_p95_ms']} ms; best {body['key_best_ms']} ms; server CPU "
        f"{body['server_cpu_ms_a_key']} ms a key; load of the machine {body['load']}"
    )


if __name__ == "__main__":
    sys.exit(main())
