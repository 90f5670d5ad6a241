"""What settings the files make, where each comes from, and what is said about mistakes."""

from __future__ import annotations

import json
import zoneinfo
from importlib.util import find_spec
from pathlib import Path

import pytest

from clawmark.config.check import fill_in
from clawmark.config.load import load
from clawmark.config.paths import resolve_places
from clawmark.config.schema import Loaded, Remote, RemoteBatch, Settings
from clawmark.model.errors import ConfigError


class Home:
    """A state folder and a workspace to load from."""

    def __init__(self, folder: Path) -> None:
        self.state, self.workspace = folder / "state", folder / "workspace"
        self.state.mkdir()
        self.workspace.mkdir()

    def load(
        self,
        config: object = None,
        *,
        inside: object = None,
        agent: str | None = None,
        overrides: dict[str, object] | None = None,
        name: str = "clawmark.json",
    ) -> Loaded:
        if config is not None:
            text = config if isinstance(config, str) else json.dumps(config)
            (self.state / name).write_text(text, encoding="utf-8")
        if inside is not None:
            (self.workspace / ".clawmark").mkdir(exist_ok=True)
            text = inside if isinstance(inside, str) else json.dumps(inside)
            (self.workspace / ".clawmark" / "settings.json").write_text(text, encoding="utf-8")
        places = resolve_places(
            str(self.workspace), agent, None, str(self.state), env={"HOME": str(self.state)}
        )
        return load(places, overrides)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def search(values: dict[str, object]) -> dict[str, object]:
    return {"agents": {"defaults": {"memorySearch": values}}}


def error_of(home: Home, config: object) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        home.load(config)
    assert "\n" not in caught.value.message
    return caught.value


def test_without_files_every_setting_has_its_default(home: Home) -> None:
    loaded = home.load()
    assert loaded.settings == Settings()
    assert loaded.origins == {}
    assert loaded.origin("memorySearch.provider") == "default"


def test_the_defaults_are_those_of_the_tables(home: Home) -> None:
    options = home.load().settings.memory_search
    assert (options.query.max_results, options.query.min_score) == (6, 0.35)
    assert (options.chunking.tokens, options.chunking.overlap) == (400, 80)
    assert options.cache.max_entries == 50_000
    assert (options.query.hybrid.vector_weight, options.query.hybrid.text_weight) == (0.7, 0.3)


def test_the_origin_of_a_value_is_its_file(home: Home) -> None:
    loaded = home.load(search({"query": {"hybrid": {"mmr": {"enabled": True, "lambda": 0.5}}}}))
    mmr = loaded.settings.memory_search.query.hybrid.mmr
    assert (mmr.enabled, mmr.lambda_) == (True, 0.5)
    assert (
        loaded.origin("memorySearch.query.hybrid.mmr.lambda")
        == f"file {home.state / 'clawmark.json'}"
    )
    assert loaded.origin("memorySearch.query.minScore") == "default"


def test_sections_are_laid_over_each_other_leaf_by_leaf(home: Home) -> None:
    config = {
        "memorySearch": {
            "query": {"maxResults": 1, "minScore": 0.1},
            "provider": "one",
            "model": "old",
        },
        "memory": {"search": {"query": {"maxResults": 2}, "provider": "two"}, "citations": "off"},
        "agents": {
            "defaults": {"memorySearch": {"query": {"maxResults": 3}}, "userTimezone": "UTC"},
            "list": [
                {"id": "main", "memorySearch": {"query": {"hybrid": {"enabled": False}}}},
                {"id": "other"},
            ],
        },
    }
    settings = home.load(config).settings
    options = settings.memory_search
    assert (options.query.max_results, options.query.min_score) == (3, 0.1)
    assert (options.provider, options.model) == ("two", "old")
    assert options.query.hybrid.enabled is False
    assert home.load(config, agent="other").settings.memory_search.query.hybrid.enabled is True
    assert (settings.memory.citations, settings.user_timezone) == ("off", "UTC")


@pytest.mark.skipif(
    find_spec("tzdata") is not None, reason="the package tzdata has a list of its own"
)
def test_without_time_zone_data_the_error_names_the_package_to_install(home: Home) -> None:
    zoneinfo.ZoneInfo.clear_cache()
    zoneinfo.reset_tzpath(to=())
    try:
        with pytest.raises(ConfigError, match="pip install tzdata"):
            home.load({"agents": {"defaults": {"userTimezone": "Europe/Berlin"}}})
    finally:
        zoneinfo.reset_tzpath()


def test_newer_agent_entries_are_read(home: Home) -> None:
    config = {"agents": {"entries": {"main": {"memory": {"search": {"query": {"maxResults": 9}}}}}}}
    assert home.load(config).settings.memory_search.query.max_results == 9


def test_extra_paths_of_all_sections_are_joined_without_duplicates(home: Home) -> None:
    config = {
        "agents": {
            "defaults": {"memorySearch": {"extraPaths": ["notes", " docs "]}},
            "list": [
                {
                    "id": "main",
                    "memorySearch": {
                        "extraPaths": ["./notes", {"path": "wiki", "pattern": "*.md"}]
                    },
                }
            ],
        }
    }
    assert home.load(config).settings.memory_search.extra_paths == ("notes", "docs", "wiki")


@pytest.mark.parametrize("path", ["/", "~", "..", "notes/../.."])
def test_an_extra_path_around_the_workspace_is_refused(
    home: Home, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home.state))
    assert "would open" in error_of(home, search({"extraPaths": [path]})).message


def test_an_error_names_file_line_key_and_what_is_allowed(home: Home) -> None:
    text = "{\n agents: { defaults: {\n  memorySearch: { query: {\n   minScore: 7 } } } } }"
    error = error_of(home, text)
    assert error.message == (
        f"{home.state / 'clawmark.json'}, line 4: agents.defaults.memorySearch.query.minScore"
        " must be a number from 0 to 1, not 7."
    )
    assert error.key == "agents.defaults.memorySearch.query.minScore"


@pytest.mark.parametrize(
    ("values", "part"),
    [
        ({"enabled": "yes"}, 'true or false, not "yes"'),
        ({"query": {"maxResults": True}}, "not true"),
        ({"query": {"maxResults": 0}}, "from 1 to 10000"),
        ({"query": []}, "query must be an object, not a list"),
        ({"store": {"vector": {"engine": "faiss"}}}, '"blocks" or "sqlite-vec"'),
        ({"sources": ["memory", "mail"]}, 'not "mail"'),
        ({"provider": "Open AI"}, "a name such as"),
        ({"model": "a\x1b[31m"}, "text of one line"),
        ({"extraPaths": ["a\0b"]}, "extraPaths[0]"),
        ({"remote": {"baseUrl": "http://169.254.169.254/"}}, "is refused"),
        ({"remote": {"headers": {"X Y": "1"}}}, "header names"),
        ({"remote": {"batch": {"concurrency": 0}}}, "from 1"),
    ],
)
def test_a_wrong_value_is_refused(home: Home, values: dict[str, object], part: str) -> None:
    assert part in error_of(home, search(values)).message


@pytest.mark.parametrize(
    ("config", "part"),
    [
        ({"agents": []}, "agents must be an object, not a list"),
        ({"agents": {"defaults": None}}, "agents.defaults must be an object, not null"),
        ({"agents": {"list": {}}}, "agents.list must be a list"),
        ({"agents": {"list": [1]}}, "agents.list[0] must be an object"),
        ({"agents": {"list": [{"id": "../x"}]}}, "agents.list[0].id"),
        ({"agents": {"defaults": {"userTimezone": "Mars/Olympus"}}}, "time zone"),
        ({"agents": {"defaults": {"workspace": 5}}}, "workspace must be a text"),
        ({"memory": {"citations": "sometimes"}}, '"auto", "on" or "off"'),
        ({"memory": {"search": 1}}, "memory.search must be an object"),
    ],
)
def test_wrong_sections_are_refused(home: Home, config: dict[str, object], part: str) -> None:
    assert part in error_of(home, config).message


def test_a_secret_is_never_repeated(home: Home) -> None:
    error = error_of(home, search({"remote": {"apiKey": "sk-FAKE\nX-Injected: 1"}}))
    assert "FAKE" not in error.message + error.hint


def test_values_are_clamped_as_in_openclaw_with_a_warning(home: Home) -> None:
    loaded = home.load(
        search(
            {
                "chunking": {"tokens": 100, "overlap": 500},
                "query": {
                    "hybrid": {"candidateMultiplier": 1_000, "vectorWeight": 0.9, "textWeight": 0.9}
                },
            }
        )
    )
    options = loaded.settings.memory_search
    assert (options.chunking.tokens, options.chunking.overlap) == (100, 99)
    assert options.query.hybrid.candidate_multiplier == 20
    assert (options.query.hybrid.vector_weight, options.query.hybrid.text_weight) == (0.5, 0.5)
    assert len(loaded.warnings) == 2


def test_a_small_passage_has_a_small_overlap(home: Home) -> None:
    loaded = home.load(search({"chunking": {"tokens": 50}}))
    assert loaded.settings.memory_search.chunking.overlap == 10
    assert loaded.warnings == ()
    tiny = home.load(
        search({"chunking": {"tokens": 1, "overlap": 0}})
    ).settings.memory_search.chunking
    assert (tiny.tokens, tiny.overlap) == (16, 0)


def test_weights_of_zero_are_replaced_by_the_defaults(home: Home) -> None:
    loaded = home.load(search({"query": {"hybrid": {"vectorWeight": 0, "textWeight": 0}}}))
    hybrid = loaded.settings.memory_search.query.hybrid
    assert (hybrid.vector_weight, hybrid.text_weight) == (0.7, 0.3)
    assert "both 0" in loaded.warnings[0]


def test_an_unknown_key_is_named_with_the_nearest_real_one(home: Home) -> None:
    loaded = home.load(search({"provder": "openai", "query": {"maxResult": 3}}))
    assert "agents.defaults.memorySearch.provder" in loaded.warnings[0]
    assert "Did you mean memorySearch.provider?" in loaded.warnings[0]
    assert "Did you mean memorySearch.query.maxResults?" in loaded.warnings[1]


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("qury", "memorySearch.query"),
        ("minscore", "memorySearch.query.minScore"),
        ("foo", ""),
        ("zzz", ""),
    ],
)
def test_a_suggestion_goes_by_the_last_part_of_a_key(home: Home, wrong: str, meant: str) -> None:
    (warning,) = home.load(search({wrong: {}})).warnings
    assert warning.endswith(f"it is ignored. Did you mean {meant}?" if meant else "it is ignored.")


def test_openclaw_sections_are_ignored_and_unknown_ones_are_a_warning(home: Home) -> None:
    loaded = home.load(
        {"channels": {"x": 1}, "gateway": 5, "agents": {"defaults": {"cliBackends": 1}}}
    )
    assert loaded.warnings == ()
    assert "agnets" in home.load({"agnets": {}}).warnings[0]
    assert len(home.load({"__proto__": {}, "constructor": {}}).warnings) == 2


def test_settings_of_a_remote_provider_are_typed(home: Home) -> None:
    loaded = home.load(
        search({"remote": {"baseUrl": "https://example.com/v1", "batch": {"enabled": True}}})
    )
    assert loaded.warnings == ()
    assert loaded.settings.memory_search.remote == Remote(
        base_url="https://example.com/v1", batch=RemoteBatch(enabled=True)
    )


def test_an_unset_variable_is_named(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_VARIABLE", raising=False)
    loaded = home.load(search({"remote": {"apiKey": "${NO_SUCH_VARIABLE}"}}))
    assert "NO_SUCH_VARIABLE" in loaded.warnings[0]
    with pytest.raises(ConfigError, match="NO_SUCH_VARIABLE"):
        fill_in("${NO_SUCH_VARIABLE}", "remote.apiKey", {})
    assert fill_in("Bearer ${KEY}", "remote.apiKey", {"KEY": "x"}) == "Bearer x"


def test_transcripts_are_a_source_when_they_are_named(home: Home) -> None:
    options = home.load({}).settings.memory_search
    assert (options.sources, options.sessions.paths) == (("memory",), ())
    named = {
        "sources": ["memory", "sessions"],
        "experimental": {"sessionMemory": True},
        "sessions": {"paths": ["talks", "talks"]},
    }
    loaded = home.load(search({**named, "sync": {"sessions": {"deltaBytes": 0}}}))
    options = loaded.settings.memory_search
    assert (options.sources, options.sessions.paths) == (("memory", "sessions"), ("talks",))
    assert (options.sync.sessions.delta_bytes, options.sync.sessions.delta_messages) == (0, 50)
    assert loaded.warnings == ()
    assert home.load(search({"sources": []})).settings.memory_search.sources == ("memory",)


def test_a_folder_of_transcripts_around_the_workspace_is_refused(home: Home) -> None:
    with pytest.raises(ConfigError, match="would open"):
        home.load(search({"sessions": {"paths": ["~"]}}))


def test_the_workspace_file_may_set_chunking_and_query_options_only(home: Home) -> None:
    loaded = home.load(
        search({"query": {"maxResults": 3}}),
        inside={
            "memorySearch": {
                "query": {"maxResults": 9},
                "provider": "evil",
                "remote": {"baseUrl": "http://x/"},
            },
            "agents": {"defaults": {"workspace": "/"}},
        },
    )
    options = loaded.settings.memory_search
    assert (options.query.max_results, options.provider) == (9, "auto")
    assert loaded.origin("memorySearch.query.maxResults").startswith("workspace ")
    assert "may set memorySearch.chunking.* and memorySearch.query.* only" in loaded.warnings[0]


@pytest.mark.parametrize(
    "inside",
    [
        "{",
        "[]",
        {"memorySearch": 1},
        {"memorySearch": {"query": 5}},
        {"memorySearch": {"query": {"minScore": 9}}},
    ],
)
def test_a_mistake_in_the_workspace_file_is_only_a_warning(home: Home, inside: object) -> None:
    loaded = home.load(inside=inside)
    assert loaded.settings == Settings()
    assert len(loaded.warnings) == 1


def test_links_to_settings_in_the_workspace_are_not_followed(home: Home, tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text('{"memorySearch": {"query": {"maxResults": 9}}}', encoding="utf-8")
    (home.workspace / ".clawmark").mkdir()
    (home.workspace / ".clawmark" / "settings.json").symlink_to(secret)
    assert home.load().settings == Settings()
    assert home.load().warnings


def test_overrides_win_and_are_checked(home: Home) -> None:
    loaded = home.load(search({"provider": "ollama"}), overrides={"memorySearch.provider": "none"})
    assert loaded.settings.memory_search.provider == "none"
    assert loaded.origin("memorySearch.provider") == "flag"
    with pytest.raises(ConfigError, match=r"memorySearch\.provider must be"):
        home.load(overrides={"memorySearch.provider": 5})
    with pytest.raises(ConfigError, match=r"Did you mean memorySearch\.provider"):
        home.load(overrides={"memorySearch.provder": "x"})
    with pytest.raises(ConfigError, match="cannot be overridden"):
        home.load(overrides={"memorySearch.store.path": "x"})


def test_settings_of_the_sqlite_file_are_reported_as_unused_with_a_database(home: Home) -> None:
    store = {"uri": "postgresql://db/memory", "path": "x.sqlite", "vector": {"engine": "blocks"}}
    warnings = home.load(search({"store": store})).warnings
    assert [warning.partition(" ")[0] for warning in warnings] == [
        "memorySearch.store.path",
        "memorySearch.store.vector.engine",
    ]
    assert home.load(search({"store": {"uri": "postgresql://db/memory"}})).warnings == ()


def test_a_fallback_of_the_database_that_is_never_used_is_a_warning(home: Home) -> None:
    store = {"uri": "postgresql://db/memory", "fallback": "sqlite"}
    assert home.load(search({"store": store})).warnings == ()
    (warning,) = home.load(search({"store": {"fallback": "sqlite"}})).warnings
    assert "memorySearch.store.fallback has no effect" in warning
