"""Services that speak like OpenAI: any address, with or without a key; LM Studio, vLLM, llama.cpp
and DeepInfra by name.

A key comes from the configuration or from the service's own variable: OpenAI's key is never sent
elsewhere from here. Where no input types are configured, models that were trained with prompts get
them, because these servers add none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from clawmark.embed.models import look_up, prompts_for
from clawmark.embed.openclaw_keys import compatible_facts
from clawmark.embed.services import openai
from clawmark.embed.services.wire import (
    JSON_TYPE,
    Limits,
    Provider,
    RemoteOptions,
    facts,
    find_key,
    join_headers,
    make_provider,
    names_a_key,
    need,
    need_key,
    pick_base,
    pick_model,
    public_headers,
)


class Service(NamedTuple):
    """What a name stands for."""

    base_url: str = ""
    model: str = ""
    key: str = ""
    """The variable its key is in."""
    needs_key: bool = False
    texts: int = 32
    """Servers refuse more than they are set up for, in words of their own; 32 is the smallest usual
    setting.
    """
    at_once: int = 4


SERVICES: dict[str, Service] = {
    "openai-compatible": Service(),
    "lmstudio": Service(
        "http://127.0.0.1:1234/v1",
        "text-embedding-nomic-embed-text-v1.5",
        "LMSTUDIO_API_KEY",
        at_once=2,
    ),
    "vllm": Service("http://127.0.0.1:8000/v1", key="VLLM_API_KEY"),
    "llamacpp": Service("http://127.0.0.1:8080/v1", key="LLAMA_API_KEY", at_once=2),
    "deepinfra": Service(
        "https://api.deepinfra.com/v1/openai",
        "BAAI/bge-m3",
        "DEEPINFRA_API_KEY",
        needs_key=True,
        texts=128,
    ),
}


def provider(
    options: RemoteOptions, environ: Mapping[str, str], name: str = "openai-compatible"
) -> Provider:
    """The service as configured; raises ConfigError without an address or a model,
    EmbeddingUnavailable without a key.
    """
    service = SERVICES[name]
    base_url = need(
        pick_base(options, service.base_url),
        "memorySearch.remote.baseUrl",
        name,
        '"http://127.0.0.1:8000/v1"',
    )
    model = need(
        pick_model(options, service.model, f"{name}/"),
        "memorySearch.model",
        name,
        '"nomic-embed-text-v1.5"',
    )
    key = find_key(options, environ, service.key)
    if key or (service.needs_key and not names_a_key(options.headers)):
        need_key(key, name, model, service.key or "memorySearch.remote.apiKey")
    has_types = bool(options.query_input_type or options.document_input_type)
    prompts = ("", "") if has_types else prompts_for(model)
    key_facts = facts(
        name,
        model,
        base_url=base_url,
        dims=options.dims,
        headers=public_headers(join_headers(JSON_TYPE, options.headers)),
        queryInputType=options.query_input_type,
        documentInputType=options.document_input_type,
        prompts=list(prompts) if any(prompts) else None,
    )
    limits = Limits(
        texts=service.texts,
        tokens=0,
        text_tokens=look_up(model).text_tokens,
        at_once=service.at_once,
    )
    language = openai.wire(model, limits, options, prompts)
    made = make_provider(name, model, base_url, key, options, wire=language, key_facts=key_facts)
    if (
        name != "openai-compatible" or prompts[1]
    ):  # OpenClaw puts nothing before a passage, so these are other vectors
        return made

    def openclaw_facts() -> Sequence[dict[str, object]]:
        return compatible_facts(options, model, base_url)

    return made._replace(openclaw_facts=openclaw_facts)
