from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from clawmark.embed.choose import choose
from clawmark.embed.weights import find_pack
from clawmark.errors import ConfigError

needs_weights = pytest.mark.skipif(not find_pack(), reason="the extra `local` is not installed")


def labels(provider: str, **options: str) -> list[str]:
    return [embedder.traits.label for embedder in choose(provider, **options).embedders]


@needs_weights
@pytest.mark.parametrize("provider", ["auto", "default", "", "local"])
def test_with_the_extra_the_instant_tier_comes_first_and_the_model_last(provider: str) -> None:
    assert labels(provider) == ["wordllama-256 (static)", "granite-30m (local)"]
    assert choose(provider).degraded is None


def test_static_is_the_static_tier_alone() -> None:
    assert labels("static") == ["wordllama-256 (static)"]


def test_none_means_keywords_alone() -> None:
    assert choose("none").embedders == ()
    assert "none" in choose("none").reason


def without_the_extra(provider: str) -> str:
    """What is chosen by an interpreter that sees no installed packages at all."""
    source = str(Path(__file__).parents[3] / "src")
    code = (
        f"import sys; sys.path.append({source!r}); from clawmark.embed.choose import choose; c = choose({provider!r}); "
        "print([e.traits.label for e in c.embedders], c.degraded and c.degraded.fix)"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)
    assert not done.stderr
    return done.stdout


def test_without_the_extra_auto_is_the_static_tier() -> None:
    assert without_the_extra("auto") == "['wordllama-256 (static)'] None\n"


def test_without_the_extra_local_is_degraded_and_says_how_to_mend_it() -> None:
    answer = without_the_extra("local")
    assert answer.startswith("['wordllama-256 (static)']")
    assert "pip install 'clawmark[local]'" in answer


@pytest.mark.parametrize(
    ("provider", "why"), [("openai", "not in this version"), ("Gemini", "not in this version"), ("wat", "no provider")]
)
def test_an_unknown_provider_is_refused_with_the_known_ones(provider: str, why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        choose(provider)
    assert caught.value.key == "memorySearch.provider"
    assert f'"{provider}"' in caught.value.message
    assert why in caught.value.message
    assert "auto, local, static, none" in caught.value.message


def test_a_model_that_the_provider_does_not_have_is_refused() -> None:
    with pytest.raises(ConfigError, match="text-embedding-3-small") as caught:
        choose("static", model="text-embedding-3-small")
    assert caught.value.key == "memorySearch.model"


def test_a_model_path_that_is_no_pack_is_refused_when_local_was_asked_for(tmp_path: Path) -> None:
    other = tmp_path / "model.gguf"
    other.write_bytes(b"GGUF")
    for path in (str(other), str(tmp_path / "absent.hmsemb"), "hf:some/model.gguf"):
        with pytest.raises(ConfigError) as caught:
            choose("local", local_model_path=path)
        assert caught.value.key == "memorySearch.local.modelPath"


@needs_weights
def test_a_pack_elsewhere_is_used_and_has_the_same_identity(tmp_path: Path) -> None:
    link = tmp_path / "granite.hmsemb"
    link.symlink_to(find_pack())
    there = choose("local", local_model_path=str(link)).embedders[-1]
    here = choose("local").embedders[-1]
    assert there.identity == here.identity
    assert there.embed_query("hello") == here.embed_query("hello")


@needs_weights
def test_auto_leaves_a_path_to_another_kind_of_model_alone() -> None:
    assert labels("auto", local_model_path="hf:some/model.gguf") == labels("auto")


def test_the_tiers_have_different_identities() -> None:
    identities = [embedder.identity for embedder in choose("auto").embedders]
    assert len(set(identities)) == len(identities)


def test_choosing_imports_nothing_heavy() -> None:
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}; from clawmark.embed.choose import choose; choose('auto'); "
        "print({'numpy', 'pathlib', 'importlib.metadata', 'concurrent.futures', 'logging'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True)
    assert done.stdout == b"set()\n", done.stderr
