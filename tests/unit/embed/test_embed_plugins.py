"""Real distributions in a folder: a module, and a `.dist-info` that names its entry points."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from clawmark.embed import plugins
from clawmark.model.errors import EmbeddingRejected, EmbeddingUnavailable
from clawmark.testing import HashingEmbedder, embedder_contract

GOOD = """
from clawmark.testing import HashingEmbedder

def make(options, environ):
    return HashingEmbedder(dims=int(options.get("dims", 64)))
"""
KEY = "sk-test-0123456789abcdef"


def install(folder: Path, name: str, module: str, code: str, **points: str) -> None:
    """Put a distribution into the folder as an installer would."""
    about = folder / f"{name}-1.2.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    lines = [f"{point} = {target}" for point, target in points.items()]
    (about / "entry_points.txt").write_text("\n".join([f"[{plugins.GROUP}]", *lines]) + "\n")
    (folder / f"{module}.py").write_text(code)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path; whatever was imported from it is forgotten afterwards."""
    known = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in set(sys.modules) - known:
        del sys.modules[name]


def test_an_embedder_is_found_by_its_name_and_given_its_options(site: Path) -> None:
    install(site, "acme-embed", "acme_embed", GOOD, acme="acme_embed:make")
    point = plugins.find("acme")
    assert point is not None
    assert (point.name, point.value) == ("acme", "acme_embed:make")
    embedder = plugins.make("acme", {"dims": 32}, {})
    assert embedder.identity == HashingEmbedder(dims=32).identity
    assert embedder.embed_query("hello") == HashingEmbedder(dims=32).embed_query("hello")
    assert plugins.names() == ("acme",)


def test_a_guarded_embedder_passes_the_contract(site: Path) -> None:
    install(site, "acme-embed", "acme_embed", GOOD, acme="acme_embed:make")
    embedder_contract(lambda: plugins.make("acme", {}, {}))


def test_an_unknown_plugin_is_not_found(site: Path) -> None:
    assert plugins.find("acme") is None
    with pytest.raises(
        EmbeddingUnavailable, match='No installed package offers an embedder called "acme"'
    ):
        plugins.make("acme", {}, {})


def test_only_the_chosen_one_is_imported(site: Path) -> None:
    install(site, "acme-embed", "acme_embed", GOOD, acme="acme_embed:make")
    install(site, "bad-embed", "bad_embed", "raise SystemExit('imported')", bad="bad_embed:make")
    plugins.make("acme", {}, {})
    assert "bad_embed" not in sys.modules
    assert plugins.find("bad") is not None
    assert "bad_embed" not in sys.modules


def test_a_name_that_two_distributions_use_is_refused_naming_both(site: Path) -> None:
    install(site, "acme-embed", "acme_embed", GOOD, acme="acme_embed:make")
    install(site, "other-embed", "other_embed", GOOD, acme="other_embed:make")
    with pytest.raises(EmbeddingUnavailable, match=r"acme-embed 1\.2 and other-embed 1\.2"):
        plugins.find("acme")


BROKEN = {
    "import acme_needs_this_package": r"\(ModuleNotFoundError: No module named "
    r"'acme_needs_this_package'\)",
    "x = = 1": r"cannot be imported \(SyntaxError: ",
    "other = 1": r"cannot be imported \(AttributeError: ",
    "make = 5": "is not a function",
    "def make(options, environ): return None": "gave a NoneType, which is not an embedder",
    "def make(options, environ): return object()": "gave a object, which is not an embedder",
    "def make(): pass": r"failed \(TypeError: ",
    "def make(options, environ): raise "
    "OSError('no ' + environ['ACME_KEY'])": r"failed \(OSError: no \[redacted:key\]\)",
    "def make(options, environ): raise KeyError": r"failed \(KeyError\)",
    "class A:\n"
    "    identity = traits = 1\n"
    "    covers = embed_texts = embed_query = lambda *all: 1\n"
    "def make(options, environ): return A()": "gives an invalid identity",
}


@pytest.mark.parametrize("code", BROKEN)
def test_a_broken_plugin_is_named_with_its_distribution_and_without_the_key(
    site: Path, code: str
) -> None:
    install(site, "acme-embed", "acme_embed", code, acme="acme_embed:make")
    with pytest.raises(EmbeddingUnavailable, match=BROKEN[code]) as caught:
        plugins.make("acme", {}, {"ACME_KEY": KEY})
    assert 'The embedder "acme" of acme-embed 1.2 (acme_embed:make)' in caught.value.message
    assert KEY not in caught.value.message + caught.value.hint
    assert caught.value.provider == "acme"


LATER = {
    "raise OSError('the disk is gone')": (
        EmbeddingUnavailable,
        r"acme-embed 1\.2 .* failed \(OSError: the disk is gone\)",
    ),
    "return [[1.0] * 64 for _ in texts]": (
        EmbeddingUnavailable,
        "packed float32 bytes, not a list",
    ),
    "return None": (EmbeddingUnavailable, r"failed \(TypeError: "),
    "return super().embed_texts(texts)[1:]": (EmbeddingRejected, "1 vectors for 2 texts"),
    "return [bytes(256) for _ in texts]": (EmbeddingRejected, "unusable vector"),
    "return [bytes(8) for _ in texts]": (EmbeddingRejected, "2 numbers instead of 64"),
}


@pytest.mark.parametrize("body", LATER)
def test_a_plugin_that_fails_while_embedding_raises_what_a_sync_expects(
    site: Path, body: str
) -> None:
    code = (
        "from clawmark.testing import HashingEmbedder\n"
        "class Acme(HashingEmbedder):\n"
        f"    def embed_texts(self, texts): {body}\n"
        "    def covers(self, text): raise ValueError\n"
        "def make(options, environ): return Acme()\n"
    )
    install(site, "acme-embed", "acme_embed", code, acme="acme_embed:make")
    embedder = plugins.make("acme", {}, {})
    assert embedder.covers("hello")
    kind, reason = LATER[body]
    with pytest.raises(kind, match=reason):
        embedder.embed_texts(["one", "two"])
