"""A memory for a program that talks to OpenAI's or Anthropic's API itself: schemas in, answers out.

    pip install clawmark openai anthropic
    python examples/plain_tools.py ~/agent openai "Which database did we pick?"
    python examples/plain_tools.py ~/agent anthropic "Which database did we pick?"

Needs `OPENAI_API_KEY` or `ANTHROPIC_API_KEY`; `OPENAI_BASE_URL` and `ANTHROPIC_BASE_URL` name other
servers."""

from __future__ import annotations

import sys
from typing import Any

from clawmark import Memory
from clawmark.adapters.plain import Toolbox


def ask_openai(box: Toolbox, system: str, question: str) -> str:
    from openai import OpenAI

    messages: list[Any] = [
        {"role": "system", "content": system},
        {"role": "user", "content": question},
    ]
    tools: list[Any] = box.openai()
    with OpenAI() as client:
        while True:
            answer = (
                client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=tools)
                .choices[0]
                .message
            )
            messages.append(answer)
            if not answer.tool_calls:
                return answer.content or ""
            for one in answer.tool_calls:
                if one.type == "function":
                    result = box.call(one.function.name, one.function.arguments)
                    messages.append({"role": "tool", "tool_call_id": one.id, "content": result})


def ask_anthropic(box: Toolbox, system: str, question: str) -> str:
    from anthropic import Anthropic

    messages: list[Any] = [{"role": "user", "content": question}]
    tools: list[Any] = box.anthropic()
    with Anthropic() as client:
        while True:
            answer = client.messages.create(
                model="claude-sonnet-4-5",
                max_tokens=2048,
                system=system,
                messages=messages,
                tools=tools,
            )
            messages.append({"role": "assistant", "content": answer.content})
            results = [
                {
                    "type": "tool_result",
                    "tool_use_id": block.id,
                    "content": box.call(block.name, block.input),
                }
                for block in answer.content
                if block.type == "tool_use"
            ]
            if not results:
                return "".join(block.text for block in answer.content if block.type == "text")
            messages.append({"role": "user", "content": results})


def main(workspace: str, api: str, question: str) -> None:
    with Memory.open(workspace) as memory:
        ask = {"openai": ask_openai, "anthropic": ask_anthropic}[api]
        print(ask(Toolbox(memory), memory.prompt(append=True).text, question))


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
