"""A LangGraph graph whose long-term memory is a workspace: what it puts are Markdown files.

    pip install 'clawmark[langgraph]' openai
    python examples/langgraph_memory.py ~/agent "I take tea, never coffee."

The graph keeps what the user says about themselves and shows the model what fits. Needs
`OPENAI_API_KEY`; `OPENAI_BASE_URL` names another server."""

from __future__ import annotations

import hashlib
import sys
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.store.base import BaseStore
from openai import OpenAI

from clawmark import Memory
from clawmark.adapters.langgraph import MemoryStore

NAMESPACE = ("users", "example")


class State(TypedDict):
    question: str
    answer: str


def remember(state: State, *, store: BaseStore) -> None:
    text = state["question"]
    if text.startswith("I "):
        store.put(NAMESPACE, hashlib.sha256(text.encode()).hexdigest()[:12], {"text": text})


def respond(state: State, *, store: BaseStore) -> dict[str, str]:
    known = [
        str(item.value["text"])
        for item in store.search(NAMESPACE, query=state["question"], limit=3)
    ]
    system = "\n".join(["What the user said about themselves:", *(f"- {text}" for text in known)])
    with OpenAI() as client:
        answer = client.chat.completions.create(
            model="gpt-4o-mini",
            messages=[
                {"role": "system", "content": system},
                {"role": "user", "content": state["question"]},
            ],
        )
    return {"answer": answer.choices[0].message.content or ""}


def main(workspace: str, question: str) -> None:
    with Memory.open(workspace) as memory:
        builder = StateGraph(State)
        builder.add_node("remember", remember)
        builder.add_node("respond", respond)
        builder.add_edge(START, "remember")
        builder.add_edge("remember", "respond")
        builder.add_edge("respond", END)
        graph = builder.compile(store=MemoryStore(memory))
        print(graph.invoke({"question": question, "answer": ""})["answer"])


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
