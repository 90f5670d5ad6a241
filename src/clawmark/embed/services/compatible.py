"""Services with OpenAI's protocol at any address, with or without a key; some of them by name.

The key comes from the configuration or from the service's own variable; OpenAI's key is never sent
from here. Without configured input types, models that were trained with prompts get them, because
these servers add none."""

from __future__ import annotations

from collections.abc import Mapping

from clawmark.embed.models import prompts_for
from clawmark.embed.openclaw_keys import compatible_facts
from clawmark.embed.services import openai
from clawmark.embed.services.wire import Provider, RemoteOptions, configure, fingerprint_facts
from clawmark.net.headers import JSON_TYPE, join_headers, public_headers


def provider(
    options: RemoteOptions, environ: Mapping[str, str], name: str = "openai-compatible"
) -> Provider:
    """Return the service as configured; raise ConfigError without an address or a model,
    EmbeddingUnavailable without a key.
    """
    service = configure(name, options, environ)
    has_types = bool(options.query_input_type or options.document_input_type)
    prompts = ("", "") if has_types else prompts_for(service.model)
    key_facts = fingerprint_facts(
        name,
        service.model,
        base_url=service.base_url,
        dims=options.dims,
        headers=public_headers(join_headers(JSON_TYPE, options.headers)),
        queryInputType=options.query_input_type,
        documentInputType=options.document_input_type,
        prompts=list(prompts) if any(prompts) else None,
    )
    wire = openai.wire(service.model, service.limits(), options, prompts)
    made = service.provider(wire, key_facts)
    if name != "openai-compatible" or prompts[1]:
        return made  # OpenClaw puts no prompt before a passage, so its vectors differ
    return made._replace(
        openclaw_facts=lambda: compatible_facts(options, service.model, service.base_url)
    )
