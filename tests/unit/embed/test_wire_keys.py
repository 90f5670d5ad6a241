"""What a provider's vectors depend on: OpenClaw's fingerprints for its defaults, others for
everything that differs.
"""

from __future__ import annotations

from typing import Any

import pytest
from test_wire_shapes import make

from clawmark.embed.services.wire import provider_key

GOLDEN = {
    "openai": "c03eebd0dbf911b9e937d66411651b4976ddde97fb3a820da68c2176068e449d",
    "gemini": "bd50811302958e0a342bc8a1d2687cb549fc6642bd40ff5466adad80ccd051bf",
    "voyage": "f76b05d4400af8e72c62ebb5b848b18ee4c12ac85b3a6a8c28f2ae03f1310aff",
    "mistral": "a45235dcac85a67cf6a5a2922c1c1137e51c9e8b3d0a24446be2986163716553",
    "ollama": "0eeec5c660cc1b0f3d2b83e8f758d4c80fba365db6ec183b4679534368c78085",
}
"""As OpenClaw 2026.3 computes them, from the conformance vectors."""
ALL = [*GOLDEN, "bedrock", "lmstudio", "deepinfra"]


def key(name: str, **options: Any) -> str:
    return provider_key(make(name, **options).key_facts)


@pytest.mark.parametrize("name", GOLDEN)
def test_the_default_has_the_fingerprint_openclaw_gives_it(name: str) -> None:
    assert key(name) == GOLDEN[name]
    assert key(name, api_key="another", headers={"X-Api-Key": "k"}) == GOLDEN[name]


@pytest.mark.parametrize("name", ALL)
def test_another_address_model_or_size_makes_other_vectors(name: str) -> None:
    model = "cohere.embed-v4:0" if name == "bedrock" else "other-model"
    found = [
        key(name),
        key(name, base_url="http://10.0.0.7:8000/v1x"),
        key(name, model=model),
        key(name, dims=768),
        key(name, headers={"X-Route": "b"}),
    ]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("name", ["openai", "voyage", "lmstudio"])
def test_input_types_make_other_vectors(name: str) -> None:
    assert (
        len({key(name), key(name, query_input_type="a"), key(name, document_input_type="a")}) == 3
    )


@pytest.mark.parametrize("name", ALL)
def test_trailing_slash_of_an_address_makes_no_difference(name: str) -> None:
    address = make(name).base_url
    assert key(name, base_url=address + "/") == key(name)


def openclaw_keys(name: str, **options: Any) -> list[str]:
    return [provider_key(facts) for facts in make(name, **options).openclaw_facts()]


SERVER = "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("name", "options", "recorded"),
    [
        ("openai", {}, "c03eebd0dbf911b9e937d66411651b4976ddde97fb3a820da68c2176068e449d"),
        ("openai", {}, "ca1e10985204b550a7b80d98f4d177234e2647e6c6a3f96c54c314c833b4ba39"),
        (
            "openai",
            {"model": "openai/text-embedding-3-small", "base_url": "https://api.openai.com/v1/"},
            "5a6c3f1119ad473abcca6bc3933aa6f1c221a2b091662e1960b5189f4e629bac",
        ),
        (
            "openai",
            {
                "model": "m",
                "base_url": f" {SERVER}/ ",
                "dims": 256,
                "query_input_type": "q",
                "document_input_type": "d",
                "headers": {
                    "X-Route": "b",
                    "x-api-key": "s",
                    "content-type": "application/json; charset=utf-8",
                },
            },
            "7f1718b925db19681228f441007832964e514dffd2b0ad40e90877234c00c2d4",
        ),
        (
            "openai-compatible",
            {"model": "openai-compatible/m", "base_url": f"{SERVER}/", "api_key": ""},
            "b01c2c3bc985302305c50e60a74e8b40019787a96c316bf2060e022c6e878f2b",
        ),
        (
            "openai-compatible",
            {
                "model": "m",
                "base_url": f"{SERVER}//",
                "dims": 256,
                "query_input_type": "q",
                "document_input_type": "d",
                "headers": {"X-Route": "b", "X-Token": "s"},
            },
            "69e0ddd2edad18926e8cc01801ef9acc853227d2e2efce971a6102a786c8867f",
        ),
        (
            "openai-compatible",
            {
                "model": "m",
                "base_url": SERVER,
                "query_input_type": "both",
                "document_input_type": "both",
            },
            "32df1434e882f4f04bdae4e3a47ccbc5bab07e1e005003f0c2ae207dfef3545e",
        ),
    ],
)
def test_the_keys_that_openclaw_computes_for_a_configuration_are_known(
    name: str, options: dict[str, Any], recorded: str
) -> None:
    assert recorded in openclaw_keys(name, **options)


def test_vectors_made_with_a_prompt_before_passages_are_not_taken_for_openclaws() -> None:
    assert openclaw_keys("openai-compatible", model="nomic-embed-text", base_url=SERVER) == []
    assert openclaw_keys("openai-compatible", model="mxbai-embed-large", base_url=SERVER) != []


def test_the_name_of_this_machine_is_as_good_as_its_number() -> None:
    assert key("ollama", base_url="http://localhost:11434") == GOLDEN["ollama"]


def test_headers_are_sorted_as_openclaw_sorts_them() -> None:
    facts = make("openai", headers={"x-b": "2", "X-a": "1"}).key_facts
    assert facts["headers"] == [["Content-Type", "application/json"], ["X-a", "1"], ["x-b", "2"]]
