"""Voyage's batch interface: OpenAI's, with twelve hours instead of a day, and what all requests
share said once.
"""

from __future__ import annotations

from clawmark.embed.batch.calls import Dialect, jsonl
from clawmark.embed.batch.openai import body_of, openai_style
from clawmark.embed.services.wire import Provider


def dialect(provider: Provider) -> Dialect:
    def line(hash_: str, text: str) -> bytes:
        return jsonl({"custom_id": hash_, "body": {"input": body_of(provider, text)["input"]}})

    shared = {name: value for name, value in body_of(provider, "").items() if name != "input"}
    return openai_style(line, {"completion_window": "12h", "request_params": shared})
