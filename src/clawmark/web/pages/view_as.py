"""View as: exactly what the prompt, the recall and the tools of a session would show.

What the session may not see is not in the model of the page, so that it is not in the HTML."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from clawmark.agent.tools.base import Tool, render
from clawmark.agent.tools.policy import Access
from clawmark.composition.agent import session_access
from clawmark.composition.history.session_reports import known_sessions
from clawmark.composition.usage import not_counted
from clawmark.memory import Memory
from clawmark.model.errors import ClawmarkError
from clawmark.text.transcripts.session_keys import is_private, kind_of
from clawmark.web.render import page

KINDS = {
    "main": "the main session: one person with their own agent",
    "direct": "a direct message: one person with their own agent",
    "group": "a group: several people read what the agent says",
    "channel": "a channel: anyone in it reads what the agent says",
    "subagent": "a sub-agent: another agent gave it its task",
    "cron": "a job that runs by the clock: no person takes part",
    "heartbeat": "a heartbeat: no person takes part",
    "unknown": "of an unknown kind: nothing proves who takes part",
}
EXAMPLES = (
    "agent:{agent}:main",
    "agent:{agent}:telegram:direct:1",
    "agent:{agent}:telegram:group:1",
    "agent:{agent}:discord:channel:1",
    "agent:{agent}:subagent:1",
    "agent:{agent}:cron:1",
    "agent:{agent}:main:heartbeat",
)
CALLED = {"memory_search": "query", "memory_recall": "query", "memory_get": "path"}
"""The tools that the page calls, which only read, with the argument that it gives them."""


class Choice(NamedTuple):
    """A session that can be chosen."""

    key: str
    kind: str
    is_private: bool
    is_known: bool
    """Whether it is a session of this agent; otherwise it is an example of its kind."""


class ChoosePage(NamedTuple):
    """The model of the page where a session is chosen."""

    choices: tuple[Choice, ...]


class PromptPart(NamedTuple):
    """A section of the prompt."""

    name: str
    text: str
    tokens: int


class ToolAnswer(NamedTuple):
    """A tool of the session, and what it answers to what was asked on the page."""

    name: str
    description: str
    asked: str
    """What it was asked; empty if it was not called."""
    answer: str


class AsPage(NamedTuple):
    """The model of what one session sees."""

    key: str
    kind: str
    is_private: bool
    is_known: bool
    facts: tuple[str, ...]
    """What the session may do, and why, in sentences."""
    change: str
    """What the owner can do to change it; empty if nothing is withheld."""
    prompt: tuple[PromptPart, ...]
    tokens: int
    prompt_problem: str
    question: str
    recalled: str
    recall_problem: str
    """Why nothing was recalled for the question; empty if something was."""
    path: str
    tools: tuple[ToolAnswer, ...]


def choose_page(memory: Memory) -> ChoosePage:
    """Return the sessions of this agent, then one example of each other kind."""
    known = [
        Choice(key=one.key, kind=one.kind, is_private=is_private(one.kind), is_known=True)
        for one in known_sessions(memory.places)
    ]
    kinds = {one.kind for one in known}
    examples = (example.format(agent=memory.places.agent) for example in EXAMPLES)
    others = [
        Choice(key=key, kind=kind, is_private=is_private(kind), is_known=False)
        for key in examples
        if (kind := kind_of(key)) not in kinds
    ]
    return ChoosePage((*known, *others))


def as_page(memory: Memory, key: str, question: str = "", path: str = "") -> AsPage:
    """Return what a session with this key sees; the host's declaration about a known one counts."""
    known = next((one for one in known_sessions(memory.places) if one.key == key), None)
    chat_type = known.chat_type if known else ""
    access = session_access(memory.settings, key, chat_type=chat_type)
    parts, tokens, problem = _prompt(memory, key, chat_type)
    recalled, why = _recall(memory, key, chat_type, question, access)
    tools = memory.tools(key, append=True, chat_type=chat_type)
    given = {"query": question.strip(), "path": path.strip()}
    return AsPage(
        key=key,
        kind=access.kind,
        is_private=access.is_private,
        is_known=known is not None,
        facts=tuple(access_facts(access, chat_type)),
        change=how_to_change(access),
        prompt=parts,
        tokens=tokens,
        prompt_problem=problem,
        question=question,
        recalled=recalled,
        recall_problem=why,
        path=path,
        tools=tuple(_answer(tool, given.get(CALLED.get(tool.name, ""), "")) for tool in tools),
    )


def access_facts(access: Access, chat_type: str = "") -> list[str]:
    """Say in sentences what a session may do with the memory."""
    declared = f" The host declared it as “{chat_type}”." if chat_type else ""
    facts = [f"It is {KINDS[access.kind]}.{declared}"]
    if not access.reads:
        facts.append("It may not search or read the memory.")
    elif access.is_private:
        facts.append("It may search and read the whole memory.")
    elif access.curates:
        facts.append("It looks after the memory, and may search and read it, except USER.md.")
    else:
        facts.append(
            "The setting memory.sharedSessions lets it search and read the memory, except USER.md."
        )
    facts.append("It may add to the memory." if access.writes else "It may not write.")
    if access.reads:
        facts.append(
            "Its answers name files and lines."
            if access.cites
            else "Its answers do not name files and lines."
        )
    if access.sandbox:
        facts.append(f"Its sandbox has the workspace access “{access.sandbox}”.")
    return facts


def how_to_change(access: Access) -> str:
    """Say what the owner can set to let a session read more, or less."""
    if access.sandbox == "none":
        return "agents.defaults.sandbox.workspaceAccess decides what a sandboxed session may read."
    if access.is_private or access.curates:
        return ""
    if access.reads:
        return f"To take that away, remove “{access.kind}” from memory.sharedSessions."
    return f"To let such sessions search and read, add “{access.kind}” to memory.sharedSessions."


def _prompt(memory: Memory, key: str, chat_type: str) -> tuple[tuple[PromptPart, ...], int, str]:
    try:
        prompt = memory.prompt(key, append=True, chat_type=chat_type)
    except ClawmarkError as error:
        return (), 0, error.message
    parts = tuple(PromptPart(one.name, one.text, one.tokens) for one in prompt.sections)
    return parts, prompt.tokens, ""


def _recall(
    memory: Memory, key: str, chat_type: str, question: str, access: Access
) -> tuple[str, str]:
    """Return what is recalled for a message, or why nothing is."""
    if not question.strip():
        return "", ""
    try:
        with not_counted():
            recalled = memory.recall(question, key, chat_type=chat_type)
    except ClawmarkError as error:
        return "", error.message
    if recalled or not access.is_private:
        return recalled, "" if recalled else "Nothing is recalled outside private sessions."
    return "", "Nothing in the memory is clearly relevant enough to be recalled unasked."


def _answer(tool: Tool, asked: str) -> ToolAnswer:
    answer = ""
    if asked:
        with not_counted():
            answer = render(tool.call({CALLED[tool.name]: asked}))
    return ToolAnswer(name=tool.name, description=tool.description, asked=asked, answer=answer)


def address_of(key: str) -> str:
    """Return the address of the view of a session."""
    return f"/as/{quote(key, safe=':@')}"


def _choose(request: Request) -> Response:
    memory: Memory = request.app.state.site.memory
    if "key" in request.query_params:
        return RedirectResponse(address_of(request.query_params["key"].strip()), 303)
    return page(request, "view_as_choose.html", choose_page(memory))


def _view(request: Request) -> Response:
    memory: Memory = request.app.state.site.memory
    given = request.query_params
    model = as_page(memory, request.path_params["key"], given.get("q", ""), given.get("path", ""))
    return page(request, "view_as.html", model)


routes = [Route("/as", _choose), Route("/as/{key:path}", _view)]
