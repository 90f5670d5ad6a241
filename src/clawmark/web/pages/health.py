"""Health: what `status` and `doctor` say, as sentences, problems first, each with its fix.

The state is shown at once. The checks of `doctor` read every file and the whole index, which takes
seconds, so that the script of the page asks for them afterwards."""

from __future__ import annotations

from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from clawmark.agent.consolidation.superseded import Contradiction
from clawmark.memory import Memory
from clawmark.model.reports import Finding, Probe, SourceReport, Status
from clawmark.web.render import form, page, plural

_ORDER = {"problem": 0, "note": 1, "ok": 2}
DONE = {
    "fix": "The safe repairs were made; what is still listed needs you.",
    "index": "What has changed is indexed.",
}


class Work(NamedTuple):
    """Work that is due or running."""

    sentence: str
    is_due: bool = False
    done: int = 0
    total: int = 0


class Pair(NamedTuple):
    """Two statements that contradict each other, with their places."""

    older: str
    older_citation: str
    newer: str
    newer_citation: str


class Checks(NamedTuple):
    """What the checks found: what needs attention, and what is in order."""

    problems: int
    findings: tuple[Finding, ...]
    """Problems first, then notes."""
    passed: tuple[Finding, ...]


class HealthPage(NamedTuple):
    """The model of the health page."""

    facts: tuple[tuple[str, str], ...]
    work: Work
    checks: Checks | None = None
    """None if they were not run."""
    message: str = ""
    probes: tuple[Probe, ...] = ()
    contradictions: tuple[Pair, ...] | None = None
    """None if they were not looked for: that reads a year of logs."""


def health_page(
    memory: Memory,
    *,
    done: str = "",
    checks: bool = False,
    contradictions: bool = False,
    probe: bool = False,
) -> HealthPage:
    """Describe the state of the memory; nothing is changed, and only `probe` calls a service."""
    status = memory.status()
    return HealthPage(
        facts=tuple(facts(status)),
        work=work(status),
        checks=run_checks(memory) if checks else None,
        message=DONE.get(done, ""),
        probes=memory.probe() if probe else (),
        contradictions=tuple(map(_pair, memory.contradictions())) if contradictions else None,
    )


def run_checks(memory: Memory) -> Checks:
    """Examine the memory as `clawmark doctor` does; nothing is changed."""
    found = sorted(memory.doctor(), key=lambda one: _ORDER[one.level])
    return Checks(
        problems=sum(one.level == "problem" for one in found),
        findings=tuple(one for one in found if one.level != "ok"),
        passed=tuple(one for one in found if one.level == "ok"),
    )


def _pair(found: Contradiction) -> Pair:
    older, newer = found.older, found.newer
    return Pair(
        older=older.sentence,
        older_citation=older.entry.citation,
        newer=newer.sentence,
        newer_citation=newer.entry.citation,
    )


def facts(status: Status) -> list[tuple[str, str]]:
    """Return what the status says, as pairs of a name and a sentence."""
    rows = [
        ("Memory", f"{plural(status.files, 'file')}, {plural(status.chunks, 'passage')}"),
        ("Index", f"{status.index_bytes / 1e6:.1f} MB, generation {status.generation}"),
        ("Embedder", f"{status.embedder} ({status.embedder_reason})"),
        ("Backend", status.backend),
        ("Memory plugin", status.memory_plugin),
        ("Review", f"{plural(status.proposals, 'proposal')} waiting" if status.proposals else ""),
        ("Skipped", plural(len(status.skipped), "file") if status.skipped else ""),
        ("Spent", spent(status.spent)),
        ("Settings", status.config_file),
    ]
    rows += [(source.name or source.path, _source(source)) for source in status.sources]
    return [(name, text) for name, text in rows if text]


def _source(source: SourceReport) -> str:
    return source.problem or f"{plural(source.files, 'file')} in {source.path}"


def spent(counts: dict[str, int]) -> str:
    """Return what was sent to services today and in total."""
    if not counts:
        return "nothing; no service is used"
    budget = f" of {counts['dailyTokens']:,}" if counts["dailyTokens"] else ""
    today = f"{plural(counts['callsToday'], 'call')}, {counts['tokensToday']:,}{budget} tokens"
    total = f"{plural(counts['calls'], 'call')}, {counts['tokens']:,} tokens"
    return f"today {today}; in total {total}"


def work(status: Status) -> Work:
    """Return what is due, or the progress of what runs now."""
    if status.running:
        done, total = (int(str(status.running.get(name, 0))) for name in ("done", "total"))
        if not total:
            return Work("Indexing has begun.")
        stage = "files" if status.running.get("stage") == "text" else "vectors"
        return Work(f"Indexing {stage}: {done:,} of {total:,}.", done=done, total=total)
    due = [plural(status.due_files, "file")] if status.due_files else []
    due += [plural(status.due_vectors, "vector")] if status.due_vectors else []
    if not due:
        return Work("Everything is indexed.")
    return Work(f"{' and '.join(due)} due.", is_due=True)


def _show(request: Request) -> Response:
    memory: Memory = request.app.state.site.memory
    given = request.query_params
    if given.get("part") == "checks":
        return page(request, "health_checks.html", run_checks(memory))
    model = health_page(
        memory,
        done=given.get("done", ""),
        checks=_wants(request, "checks"),
        contradictions=_wants(request, "contradictions"),
    )
    return page(request, "health.html", model)


def _wants(request: Request, name: str) -> bool:
    return request.query_params.get(name, "") not in ("", "0")


def _act(request: Request) -> Response:
    """Repair, index, or try the providers out, as a button of the page asks."""
    memory: Memory = request.app.state.site.memory
    action = form(request).get("action", "")
    if action == "fix":
        memory.doctor(fix=True)
    elif action == "index":
        memory.sync(instant_only=True)
    elif action == "probe":  # changes nothing, so that its result is the answer
        return page(request, "health.html", health_page(memory, probe=True))
    return RedirectResponse(f"/health?done={action}" if action in DONE else "/health", 303)


routes = [Route("/health", _show), Route("/health", _act, methods=["POST"])]
