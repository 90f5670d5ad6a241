"""The path, body and headers of the requests to every provider."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from clawmark.embed.media_file import MediaFile
from clawmark.embed.services import bedrock, compatible, gemini, mistral, ollama, openai, voyage
from clawmark.embed.services.wire import Provider, RemoteOptions
from clawmark.model.errors import ConfigError, EmbeddingUnavailable
from clawmark.model.providers import PROVIDERS, embedding_facts
from clawmark.net.headers import join_headers, secrets_of

KEYS = {
    "OPENAI_API_KEY": "sk-openai",
    "GEMINI_API_KEY": "g-one",
    "VOYAGE_API_KEY": "pa-voyage",
    "MISTRAL_API_KEY": "m-mistral",
    "DEEPINFRA_API_KEY": "di-infra",
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "secret-secret",
}
QWEN = "Given a web search query, retrieve relevant passages that answer the query"
GEMINI_URL = embedding_facts("gemini").base_url
COMPATIBLE = [
    name for name, row in PROVIDERS.items() if row.embedding and row.embedding.is_compatible
]
MODULES = {
    "openai": openai,
    "gemini": gemini,
    "voyage": voyage,
    "mistral": mistral,
    "ollama": ollama,
    "bedrock": bedrock,
}


def make(name: str, environ: Mapping[str, str] = KEYS, **options: Any) -> Provider:
    if name in COMPATIBLE:
        return compatible.provider(RemoteOptions(**options), environ, name)
    made: Provider = MODULES[name].provider(RemoteOptions(**options), environ)
    return made


def sent(provider: Provider, *texts: str, is_query: bool = False) -> tuple[str, Any]:
    path, body = provider.wire.request(texts, is_query)
    return path, json.loads(body)


def test_openai_sends_model_and_input_and_nothing_else() -> None:
    provider = make("openai")
    assert provider.base_url == "https://api.openai.com/v1"
    assert provider.headers == {
        "Content-Type": "application/json",
        "Authorization": "Bearer sk-openai",
    }
    assert provider.secrets == ("sk-openai",)
    assert sent(provider, "a", "b") == (
        "/embeddings",
        {"model": "text-embedding-3-small", "input": ["a", "b"]},
    )
    assert sent(provider, "q", is_query=True) == (
        "/embeddings",
        {"model": "text-embedding-3-small", "input": ["q"]},
    )


def test_openai_sends_what_is_configured() -> None:
    provider = make(
        "openai",
        model="openai/text-embedding-3-large",
        dims=256,
        encoding="base64",
        document_input_type="d",
    )
    body = {
        "model": "text-embedding-3-large",
        "input": ["a"],
        "dimensions": 256,
        "encoding_format": "base64",
    }
    assert sent(provider, "a")[1] == {**body, "input_type": "d"}
    assert sent(provider, "a", is_query=True)[1] == body
    assert provider.dims == 256


def test_text_goes_out_as_utf8_and_not_as_escapes() -> None:
    assert "数据库 😀".encode() in make("openai").wire.request(["数据库 😀"], False)[1]


def test_voyage_distinguishes_questions_from_passages() -> None:
    provider = make("voyage")
    body = {"model": "voyage-4-large", "input": ["a"], "input_type": "document"}
    assert sent(provider, "a") == ("/embeddings", body)
    assert sent(provider, "a", is_query=True)[1] == {**body, "input_type": "query"}
    assert sent(make("voyage", dims=512), "a")[1] == {**body, "output_dimension": 512}
    assert provider.base_url == "https://api.voyageai.com/v1"


def test_voyage_takes_a_million_tokens_where_the_model_does() -> None:
    assert make("voyage").wire.limits[:3] == (1000, 120_000, 32_000)
    assert make("voyage", model="voyage/voyage-4-lite").wire.limits.tokens == 1_000_000


def test_mistral_sends_model_and_input() -> None:
    provider = make("mistral")
    assert provider.base_url == "https://api.mistral.ai/v1"
    assert sent(provider, "a") == ("/embeddings", {"model": "mistral-embed", "input": ["a"]})
    assert provider.wire.limits[:2] == (512, 16_384)


def test_gemini_has_a_task_for_each_kind_of_text_and_its_key_in_a_header_of_its_own() -> None:
    provider = make("gemini")
    assert provider.headers == {"Content-Type": "application/json", "x-goog-api-key": "g-one"}
    path, body = sent(provider, "a", "b")
    assert path == "/models/gemini-embedding-001:batchEmbedContents"
    assert body["requests"][1] == {
        "model": "models/gemini-embedding-001",
        "content": {"parts": [{"text": "b"}]},
        "taskType": "RETRIEVAL_DOCUMENT",
    }
    path, body = sent(provider, "q", is_query=True)
    assert path == "/models/gemini-embedding-001:embedContent"
    assert body == {"content": {"parts": [{"text": "q"}]}, "taskType": "RETRIEVAL_QUERY"}
    assert provider.wire.limits[:3] == (100, 0, 2048)


def test_gemini_requests_include_the_size() -> None:
    provider = make("gemini", model="models/gemini-embedding-001", dims=768)
    assert [row["outputDimensionality"] for row in sent(provider, "a", "b")[1]["requests"]] == [
        768,
        768,
    ]
    assert sent(provider, "q", is_query=True)[1]["outputDimensionality"] == 768


def test_second_gemini_generation_uses_prompts_and_has_three_sizes() -> None:
    provider = make("gemini", model="google/gemini-embedding-2-preview")
    assert sent(provider, "q", is_query=True)[1] == {
        "content": {"parts": [{"text": "task: search result | query: q"}]},
        "outputDimensionality": 3072,
    }
    assert sent(provider, "a")[1]["requests"][0]["content"] == {
        "parts": [{"text": "title: none | text: a"}]
    }
    with pytest.raises(ConfigError, match="512"):
        make("gemini", model="gemini-embedding-2-preview", dims=512)


@pytest.mark.parametrize("model", ["gemini-embedding-2", "gemini-embedding-2-preview"])
def test_second_gemini_generation_takes_files_with_a_label_and_without_a_prompt(model: str) -> None:
    wire = make("gemini", model=f"models/{model}", dims=768).wire
    assert wire.media is not None
    path, body = wire.media(
        [
            MediaFile("Image file: ../photos/heron.png", "image/png", b"\x89PNG"),
            MediaFile("Audio file: notes:\u00e9.wav", "audio/wav", b"RIFF?"),
        ]
    )
    assert path == f"/models/{model}:batchEmbedContents"
    assert body.decode() == (
        '{"requests":[{"model":"models/MODEL","content":{"parts":['
        '{"text":"Image file: ../photos/heron.png"},'
        '{"inlineData":{"mimeType":"image/png","data":"iVBORw=="}}]},"outputDimensionality":768},'
        '{"model":"models/MODEL","content":{"parts":['
        '{"text":"Audio file: notes:\u00e9.wav"},'
        '{"inlineData":{"mimeType":"audio/wav","data":"UklGRj8="}}]},"outputDimensionality":768}]}'
    ).replace("MODEL", model)


def test_other_models_take_only_text() -> None:
    assert make("gemini").wire.media is None
    assert all(make(name).wire.media is None for name in ("openai", "voyage", "mistral"))


@pytest.mark.parametrize(
    ("configured", "base_url"),
    [
        ("https://generativelanguage.googleapis.com", GEMINI_URL),
        ("https://generativelanguage.googleapis.com/v1beta/openai/", GEMINI_URL),
        ("http://127.0.0.1:9/v1beta/", "http://127.0.0.1:9/v1beta"),
    ],
)
def test_an_address_for_other_clients_becomes_one_for_gemini(
    configured: str, base_url: str
) -> None:
    assert make("gemini", base_url=configured).base_url == base_url


def test_gemini_finds_every_key_once_the_configured_one_first() -> None:
    environ = {
        "GEMINI_API_KEYS": "key-two, key-three;key-two",
        "GEMINI_API_KEY": "key-four",
        "GEMINI_API_KEY_B": "key-six",
        "GEMINI_API_KEY_A": "key-five",
        "GOOGLE_API_KEY": "key-seven",
    }
    provider = make("gemini", environ, api_key="key-one")
    assert provider.secrets == (
        "key-one",
        "key-two",
        "key-three",
        "key-four",
        "key-five",
        "key-six",
        "key-seven",
    )
    assert [keys["x-goog-api-key"] for keys in provider.keys] == list(provider.secrets)
    assert provider.headers == provider.keys[0]
    assert make("gemini", {"GOOGLE_API_KEY": "g-google"}, api_key="GOOGLE_API_KEY").secrets == (
        "g-google",
    )
    assert make("gemini", {"GOOGLE_API_KEY": "g"}).keys == ()


def test_a_gemini_key_that_is_a_login_becomes_a_bearer_token() -> None:
    provider = make("gemini", {}, api_key='{"token":"ya29.secret"}')
    assert provider.headers["Authorization"] == "Bearer ya29.secret"
    assert "x-goog-api-key" not in provider.headers
    assert "ya29.secret" in provider.secrets


def test_ollama_needs_no_key_and_adds_prompts() -> None:
    provider = make("ollama", {})
    assert provider.headers == {"Content-Type": "application/json"}
    assert provider.base_url == "http://127.0.0.1:11434"
    assert sent(provider, "a", "b") == (
        "/api/embed",
        {"model": "nomic-embed-text", "input": ["search_document: a", "search_document: b"]},
    )
    assert sent(provider, "q", is_query=True)[1]["input"] == ["search_query: q"]
    assert provider.wire.limits.at_once == 2
    assert sent(make("ollama", {}, dims=256), "a")[1]["dimensions"] == 256


@pytest.mark.parametrize(
    ("model", "query", "passage"),
    [
        (
            "mxbai-embed-large:335m",
            "Represent this sentence for searching relevant passages: x",
            "x",
        ),
        ("qwen3-embedding:0.6b", f"Instruct: {QWEN}\nQuery:x", "x"),
        ("embeddinggemma", "task: search result | query: x", "title: none | text: x"),
        (
            "snowflake-arctic-embed:22m",
            "Represent this sentence for searching relevant passages: x",
            "x",
        ),
        ("snowflake-arctic-embed2", "query: x", "x"),
        ("someone/nomic-embed-text:v1.5", "search_query: x", "search_document: x"),
        ("bge-m3", "x", "x"),
        ("all-minilm", "x", "x"),
    ],
)
def test_each_model_of_ollama_has_the_prompts_it_was_trained_with(
    model: str, query: str, passage: str
) -> None:
    provider = make("ollama", {}, model=f"ollama/{model}")
    assert provider.model == model
    assert sent(provider, "x", is_query=True)[1]["input"] == [query]
    assert sent(provider, "x")[1]["input"] == [passage]


@pytest.mark.parametrize(
    "given", ["http://10.0.0.7:11434/", "http://10.0.0.7:11434/v1", "http://10.0.0.7:11434/v1/"]
)
def test_the_other_language_of_ollama_is_cut_from_its_address(given: str) -> None:
    assert make("ollama", base_url=given).base_url == "http://10.0.0.7:11434"


@pytest.mark.parametrize(
    ("name", "base_url", "model"),
    [
        ("lmstudio", "http://127.0.0.1:1234/v1", "text-embedding-nomic-embed-text-v1.5"),
        ("deepinfra", "https://api.deepinfra.com/v1/openai", "BAAI/bge-m3"),
    ],
)
def test_a_named_service_knows_its_address_and_model(name: str, base_url: str, model: str) -> None:
    provider = make(name)
    assert (provider.name, provider.base_url, provider.model) == (name, base_url, model)


def test_a_compatible_service_needs_an_address_and_a_model_and_no_key() -> None:
    with pytest.raises(ConfigError, match=r"memorySearch\.remote\.baseUrl"):
        make("openai-compatible", model="m")
    with pytest.raises(ConfigError, match=r"memorySearch\.model"):
        make("vllm")
    provider = make(
        "openai-compatible", base_url="http://127.0.0.1:9/v1/", model="m", headers={"X-Team": "a"}
    )
    assert provider.headers == {"Content-Type": "application/json", "X-Team": "a"}
    assert sent(provider, "a") == ("/embeddings", {"model": "m", "input": ["a"]})


def test_the_key_of_openai_goes_to_openai_only() -> None:
    for name in COMPATIBLE:
        provider = make(name, base_url="http://127.0.0.1:9/v1", model="m")
        assert "sk-openai" not in str(provider)


def test_input_types_are_sent_where_they_are_configured_and_take_the_place_of_prompts() -> None:
    options: dict[str, Any] = {
        "base_url": "http://127.0.0.1:9/v1",
        "model": "nomic-embed-text-v1.5",
    }
    assert sent(make("vllm", **options), "q", is_query=True)[1]["input"] == ["search_query: q"]
    typed = make("vllm", **options, query_input_type="query", document_input_type="passage")
    assert sent(typed, "q", is_query=True)[1] == {
        "model": options["model"],
        "input": ["q"],
        "input_type": "query",
    }
    assert sent(typed, "a")[1]["input_type"] == "passage"


def test_titan_takes_one_text_and_its_second_version_a_size() -> None:
    provider = make("bedrock")
    assert provider.wire.limits.texts == 1
    assert sent(provider, "a") == (
        "/model/amazon.titan-embed-text-v2%3A0/invoke",
        {"inputText": "a", "normalize": True},
    )
    assert sent(make("bedrock", dims=256), "a")[1] == {
        "inputText": "a",
        "dimensions": 256,
        "normalize": True,
    }
    first = make("bedrock", model="amazon.titan-embed-text-v1")
    assert sent(first, "a")[1] == {"inputText": "a"}
    assert first.dims == 1536


def test_cohere_on_bedrock_takes_96_texts_with_an_input_type() -> None:
    third = make("bedrock", model="cohere.embed-multilingual-v3")
    assert sent(third, "a", "b") == (
        "/model/cohere.embed-multilingual-v3/invoke",
        {"texts": ["a", "b"], "input_type": "search_document", "truncate": "END"},
    )
    fourth = make("bedrock", model="eu.cohere.embed-v4:0", dims=512)
    assert sent(fourth, "q", is_query=True)[1] == {
        "texts": ["q"],
        "input_type": "search_query",
        "embedding_types": ["float"],
        "output_dimension": 512,
    }
    assert fourth.wire.limits.texts == third.wire.limits.texts == 96


def test_a_bedrock_model_of_another_family_is_refused() -> None:
    with pytest.raises(ConfigError, match="Titan and Cohere"):
        make("bedrock", model="anthropic.claude-3-haiku")


@pytest.mark.parametrize(
    ("options", "environ", "region"),
    [
        (
            {"base_url": "https://bedrock-runtime.eu-west-3.amazonaws.com", "region": "x"},
            {"AWS_REGION": "y"},
            "eu-west-3",
        ),
        ({"region": "eu-central-1"}, {"AWS_REGION": "us-west-2"}, "eu-central-1"),
        ({}, {"AWS_REGION": "us-west-2", "AWS_DEFAULT_REGION": "sa-east-1"}, "us-west-2"),
        ({}, {"AWS_DEFAULT_REGION": "sa-east-1"}, "sa-east-1"),
        ({}, {}, "us-east-1"),
    ],
)
def test_the_region_of_bedrock_is_found_in_order(
    options: dict[str, str], environ: dict[str, str], region: str
) -> None:
    provider = make("bedrock", {**KEYS, **environ}, **options)
    assert provider.base_url == f"https://bedrock-runtime.{region}.amazonaws.com"
    assert provider.sign
    assert f"/{region}/bedrock/aws4_request" in provider.sign("POST", "/", b"")["authorization"]


def test_invalid_region_is_refused() -> None:
    with pytest.raises(ConfigError, match="not the name of a region"):
        make("bedrock", {**KEYS, "AWS_REGION": "evil.example/#"})


def test_bedrock_reads_the_profile_of_the_credentials_file(tmp_path: Path) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(
        "[default]\naws_access_key_id = A1\naws_secret_access_key = "
        "S%1\n\n[work]\naws_access_key_id=A2\n"
        "aws_secret_access_key=second\naws_session_token = token-2\n"
    )
    home = {"HOME": str(tmp_path)}
    assert bedrock._find_credentials(home, "m") == ("A1", "S%1", "")
    assert bedrock._find_credentials({**home, "AWS_PROFILE": "work"}, "m") == (
        "A2",
        "second",
        "token-2",
    )
    assert make("bedrock", {**home, "AWS_PROFILE": "work"}).secrets == ("second", "token-2")
    for environ in ({**home, "AWS_PROFILE": "none"}, {"HOME": str(tmp_path / "nobody")}):
        with pytest.raises(EmbeddingUnavailable, match="AWS_ACCESS_KEY_ID"):
            make("bedrock", environ)


def test_an_api_key_of_bedrock_is_sent_instead_of_a_signature() -> None:
    provider = make("bedrock", {**KEYS, "AWS_BEARER_TOKEN_BEDROCK": "bedrock-key"})
    assert provider.sign is None
    assert provider.headers["Authorization"] == "Bearer bedrock-key"


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("openai", "OPENAI_API_KEY"),
        ("gemini", "GEMINI_API_KEY"),
        ("voyage", "VOYAGE_API_KEY"),
        ("mistral", "MISTRAL_API_KEY"),
        ("deepinfra", "DEEPINFRA_API_KEY"),
        ("bedrock", "AWS_ACCESS_KEY_ID"),
    ],
)
def test_a_missing_key_names_its_variable(name: str, variable: str, tmp_path: Path) -> None:
    with pytest.raises(EmbeddingUnavailable) as caught:
        make(name, {"HOME": str(tmp_path), variable: "  "})
    assert f"No API key found for provider {name}" in caught.value.message
    assert variable in caught.value.message
    assert variable in caught.value.hint


def test_key_with_invalid_characters_is_refused_and_not_quoted() -> None:
    for key in ("sk-a\nb", "sk-\u200bab", "sk-a\x7fb"):
        with pytest.raises(EmbeddingUnavailable, match="characters that no key has") as caught:
            make("openai", {"OPENAI_API_KEY": key})
        assert "sk-" not in caught.value.message + caught.value.hint


def test_the_configured_key_goes_before_the_environment_and_configured_headers_before_both() -> (
    None
):
    assert make("openai", api_key=" mine ").headers["Authorization"] == "Bearer mine"
    provider = make("openai", {}, headers={"authorization": "Bearer other-key"})
    assert provider.headers == {
        "Content-Type": "application/json",
        "authorization": "Bearer other-key",
    }
    assert provider.secrets == ("Bearer other-key", "other-key")


def test_headers_of_one_name_in_any_case_are_one_header() -> None:
    assert join_headers({"A-B": "1", "C": "2"}, {"a-b": "3"}) == {"a-b": "3", "C": "2"}


def test_headers_that_look_like_secrets_are_secrets() -> None:
    headers = {"X-Api-Key": "hidden", "Proxy-Auth": "Basic Zm9v", "X-Team": "billing"}
    assert secrets_of(["sk-one", ""], headers) == ("sk-one", "hidden", "Basic Zm9v")


def test_short_placeholder_key_is_not_a_secret() -> None:
    """Servers at home take any key, and people give them one letter."""
    assert make("lmstudio", api_key="e").secrets == ()
