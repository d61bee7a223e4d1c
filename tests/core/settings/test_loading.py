"""Settings are loaded from flags, variables and files, and a project's files have limited rights."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from pages.setting_texts import describe_settings
from suture.core.records import TaskService
from suture.core.settings import LoadedSettings, Settings, render_settings
from suture.core.settings.rendering import format_value, setting_fields
from suture.core.settings.schema import USER_ONLY_SETTINGS
from suture.core.settings.setting_changes import encode_settings, restore_settings
from suture.errors import UsageError
from trusting import load_trusted


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    (folder / ".config" / "suture").mkdir(parents=True)
    return folder


def load(
    project: Path, home: Path, _flags: Mapping[str, object] | None = None, /, **environ: str
) -> LoadedSettings:
    return load_trusted(project, _flags, {"HOME": str(home), **environ})


def write_user_file(home: Path, text: str) -> None:
    (home / ".config" / "suture" / "suture.toml").write_text(text)


def test_each_source_overrides_the_lower_ones_and_is_named(project: Path, home: Path) -> None:
    expected: list[tuple[int, str]] = [(60_000, "default")]

    def load_tokens(flags: Mapping[str, object] | None = None, **environ: str) -> tuple[int, str]:
        loaded = load(project, home, flags, **environ)
        return loaded.settings.budget.tokens, loaded.origins["budget.tokens"]

    assert [load_tokens()] == expected
    write_user_file(home, "[budget]\ntokens = 1")
    assert load_tokens() == (1, f"{home}/.config/suture/suture.toml")
    (project / "suture.toml").write_text("[budget]\ntokens = 2")
    assert load_tokens() == (2, f"{project}/suture.toml")
    (project / ".env").write_text("SUTURE_BUDGET_TOKENS=3")
    assert load_tokens() == (3, f"{project}/.env SUTURE_BUDGET_TOKENS")
    assert load_tokens(SUTURE_BUDGET_TOKENS="4") == (4, "environment SUTURE_BUDGET_TOKENS")
    assert load_tokens({"budget.tokens": 5}, SUTURE_BUDGET_TOKENS="4") == (5, "flag")
    assert load_tokens({"budget.tokens": None}, SUTURE_BUDGET_TOKENS="4") == (
        4,
        "environment SUTURE_BUDGET_TOKENS",
    )


def test_groups_of_two_files_are_merged_by_value(project: Path, home: Path) -> None:
    write_user_file(home, "[budget]\ntokens = 1\nattempts = 2")
    (project / "suture.toml").write_text("[budget]\ntokens = 3")
    budget = load(project, home).settings.budget
    assert (budget.tokens, budget.attempts) == (3, 2)


def test_unset_settings_have_their_defaults(project: Path, home: Path) -> None:
    loaded = load(project, home)
    assert loaded.settings.model_dump(exclude={"paths"}) == Settings().model_dump(exclude={"paths"})
    assert set(loaded.origins.values()) == {"default"}
    assert loaded.notes == ()


@pytest.mark.parametrize("field", ["home", "cache"])
def test_paths_are_relative_to_their_file_or_the_home_folder(project: Path, home: Path, field: str) -> None:
    def get_path(loaded: LoadedSettings) -> Path:
        return Path(getattr(loaded.settings.paths, field))

    assert get_path(load(project, home)) in (home / ".local/state/suture", home / ".cache/suture")
    config = home / ".config" / "suture" / "suture.toml"
    config.write_text(f'[paths]\n{field} = "here"')
    assert get_path(load(project, home)) == config.parent / "here"
    config.write_text(f'[paths]\n{field} = "~/there"')
    assert get_path(load(project, home)) == home / "there"
    assert get_path(load(project, home, {f"paths.{field}": Path("x")})) == Path.cwd() / "x"


def test_xdg_folders_are_used(project: Path, home: Path, tmp_path: Path) -> None:
    (tmp_path / "conf" / "suture").mkdir(parents=True)
    (tmp_path / "conf" / "suture" / "suture.toml").write_text("[loop]\nsamples = 7")
    loaded = load(
        project,
        home,
        XDG_STATE_HOME=str(tmp_path / "state"),
        XDG_CACHE_HOME="relative/is/invalid",
        XDG_CONFIG_HOME=str(tmp_path / "conf"),
    )

    assert loaded.settings.paths.home == tmp_path / "state" / "suture"
    assert loaded.origins["paths.home"] == "default under XDG_STATE_HOME"
    assert loaded.settings.paths.cache == home / ".cache" / "suture"
    assert loaded.settings.loop.samples == 7


def test_short_variable_names_are_accepted(project: Path, home: Path) -> None:
    loaded = load(project, home, SUTURE_HOME="~/runs", SUTURE_MODEL="openai:gpt-4")
    assert loaded.settings.paths.home == home / "runs"
    assert loaded.settings.model.name == "openai:gpt-4"
    with pytest.raises(UsageError, match=r"set model\.name to different values"):
        load(project, home, SUTURE_MODEL="a:b", SUTURE_MODEL_NAME="c:d")


def test_settings_of_a_file_are_those_of_its_folder(project: Path, home: Path) -> None:
    (project / "a.py").touch()
    (project / "suture.toml").write_text("[loop]\nsamples = 3")
    assert load(project / "a.py", home).settings.loop.samples == 3


def test_an_empty_variable_is_not_set(project: Path, home: Path) -> None:
    assert load(project, home, SUTURE_BUDGET_TOKENS="", LLM_PROVIDER=" ").settings.budget.tokens == 60_000


def test_variables_of_the_test_suite_and_of_proposers_are_not_settings(project: Path, home: Path) -> None:
    assert load(project, home, SUTURE_DATA="x", SUTURE_REQUIRE="y", SUTURE_TASK="z").notes == ()


def test_a_folder_named_dotenv_is_ignored(project: Path, home: Path) -> None:
    (project / ".env").mkdir()
    assert load(project, home).notes == ()


def test_other_programs_variables_in_dotenv_are_ignored(project: Path, home: Path) -> None:
    (project / ".env").write_text("DATABASE_URL='x\nDEBUG\nSUTURE_LOOP_SAMPLES=3\n")
    assert load(project, home).settings.loop.samples == 3


@pytest.mark.parametrize(
    ("environ", "flags", "toml", "message"),
    [
        (
            {"SUTURE_BUDGET_TOKEN": "1"},
            {},
            "",
            "environment: .*SUTURE_BUDGET_TOKEN .did you mean SUTURE_BUDGET_TOKENS?",
        ),
        ({}, {"budget.token": 1}, "", "the flags: .*'budget.token' .did you mean budget.tokens?"),
        ({}, {}, "[budget]\ntoken = 1", "suture.toml': .*'budget.token' .did you mean budget.tokens?"),
        ({}, {}, "tokens = 1", "suture.toml': .*'tokens' .did you mean budget.tokens?"),
        ({}, {}, "[budgets]\ntokens = 1", "'budgets.tokens' .did you mean budget.tokens?"),
        ({}, {}, "[zzz]", "'zzz' .*suture config show"),
        ({}, {}, "budget = 3", "there is no setting 'budget'"),
        ({}, {}, "[budget\n", "is not TOML: .*line 1"),
        (
            {"SUTURE_BUDGET_TOKENS": "many"},
            {},
            "",
            "budget.tokens from environment SUTURE_BUDGET_TOKENS must be a whole number, not 'many'",
        ),
        ({}, {"budget.attempts": 0}, "", "budget.attempts from flag must be at least 1, not 0"),
        ({}, {}, "[budget]\nattempts = true", "budget.attempts from .*not True"),
        ({}, {}, "[model]\nname = 3", "model.name from .* must be text, not 3"),
        ({}, {}, "[budget]\nattempts = [1]", r"budget.attempts from .* must be a whole number, not \[1\]"),
        ({}, {}, "[budget.attempts]\nx = 1", "budget.attempts from .* must be a whole number"),
        ({"SUTURE_SANDBOX_MODE": "hot"}, {}, "", "sandbox.mode .* must be .*, not .hot."),
        ({}, {}, "[paths]\nhome = 3", "paths.home from .*no say in this"),
    ],
)
def test_an_error_is_one_line_that_names_the_origin(
    project: Path, home: Path, environ: dict[str, str], flags: dict[str, object], toml: str, message: str
) -> None:
    (project / "suture.toml").write_text(toml)
    with pytest.raises(UsageError) as caught:
        load(project, home, flags, **environ)
    assert re.search(message, str(caught.value))
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_text_is_a_usage_error(project: Path, home: Path) -> None:
    (project / "suture.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not UTF-8"):
        load(project, home)


def test_an_invalid_key_is_not_repeated_in_the_error(project: Path, home: Path) -> None:
    (project / "suture.toml").write_text("[keys]\nopenai = 12345678")
    with pytest.raises(UsageError, match=r"keys\.openai from") as caught:
        load(project, home)
    assert "12345678" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


OPENAI = {"SUTURE_MODEL": "openai:gpt-4"}
ADDRESS = '[model]\nbase_url = "http://user:hunter2@elsewhere.test/v1"\n'


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({**OPENAI, "OPENAI_API_KEY": "sk-1"}, "environment OPENAI_API_KEY"),
        ({**OPENAI, "SUTURE_KEYS_OPENAI": "sk-1"}, "environment SUTURE_KEYS_OPENAI"),
        ({"SUTURE_MODEL": "groq:x"}, "your key for 'groq'"),
        ({"SUTURE_MODEL": "ollama:x", "OLLAMA_API_KEY": "k"}, "your key for 'ollama'"),
        ({"SUTURE_MODEL": "qwen:x", "QWEN_API_KEY": "k"}, "environment QWEN_API_KEY"),
        ({"SUTURE_MODEL": "auto", "OLLAMA_API_KEY": "k"}, "your key for 'auto'"),
    ],
)
@pytest.mark.parametrize("file", ["suture.toml", ".env"])
def test_a_project_cannot_redirect_the_users_key(
    project: Path, home: Path, environ: dict[str, str], message: str, file: str
) -> None:
    address = (
        ADDRESS if file == "suture.toml" else "SUTURE_MODEL_BASE_URL=http://user:hunter2@elsewhere.test/v1"
    )
    (project / file).write_text(address)

    with pytest.raises(UsageError) as caught:
        load(project, home, **environ)
    assert message in str(caught.value)
    assert file in str(caught.value)
    assert "SUTURE_MODEL_BASE_URL" in caught.value.remedy
    assert "sk-1" not in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_project_cannot_redirect_the_key_by_an_ancestors_variable(project: Path, home: Path) -> None:
    (project / ".env").write_text("OPENAI_BASE_URL=http://elsewhere.test\nLLM_MODEL=openai:x\n")
    with pytest.raises(UsageError, match="would send your key"):
        load(project, home, OPENAI_API_KEY="sk-1")


def test_a_project_cannot_redirect_the_key_in_the_users_file(project: Path, home: Path) -> None:
    write_user_file(home, '[keys]\nopenai = "sk-1"\n[model]\nname = "openai:x"')
    (project / "suture.toml").write_text(ADDRESS)
    with pytest.raises(UsageError, match="would send your key"):
        load(project, home)


@pytest.mark.parametrize(
    ("environ", "dotenv"),
    [
        ({**OPENAI, "OPENAI_API_KEY": "k", "SUTURE_MODEL_BASE_URL": "http://mine.test"}, ""),
        ({**OPENAI, "OPENAI_API_KEY": "k"}, "SUTURE_KEYS_OPENAI=the-projects-own"),
        ({**OPENAI, "ANTHROPIC_API_KEY": "k"}, ""),
        ({"SUTURE_MODEL": "ollama:x", "OPENAI_API_KEY": "k"}, ""),
        ({"OPENAI_API_KEY": "k"}, ""),
    ],
)
def test_a_project_may_set_an_address_that_gets_no_user_key(
    project: Path, home: Path, environ: dict[str, str], dotenv: str
) -> None:
    (project / "suture.toml").write_text(ADDRESS)
    (project / ".env").write_text(dotenv)
    assert load(project, home, **environ).settings.model.base_url


@pytest.mark.parametrize("setting", ["MEMORY_MB", "TOTAL_MEMORY_MB", "DISK_MB", "PROCESSES"])
def test_a_limit_too_large_for_the_kernel_is_refused(project: Path, home: Path, setting: str) -> None:
    with pytest.raises(UsageError, match="at most"):
        load(project, home, **{f"SUTURE_SANDBOX_{setting}": "9" * 30})


@pytest.mark.parametrize("address", ["http://h.test/v1?key=hunter2", "http://h.test/v1#hunter2"])
def test_an_address_with_a_query_or_fragment_is_refused(project: Path, home: Path, address: str) -> None:
    with pytest.raises(UsageError, match=r"no `\?` and no `#`") as caught:
        load(project, home, SUTURE_MODEL_BASE_URL=address)
    assert "hunter2" not in str(caught.value)


def test_the_query_of_an_address_is_masked() -> None:
    assert format_value("tcp://u:pw@h.test:1/a?key=hunter2") == "tcp://********@h.test:1/a?********"


def test_secrets_are_masked_in_rendered_settings(project: Path, home: Path) -> None:
    (project / "suture.toml").write_text(ADDRESS)
    loaded = load(project, home, OPENAI_API_KEY="sk-secret")
    rows = {key: (value, origin) for key, value, origin in render_settings(loaded.settings, loaded.origins)}

    assert rows["keys.openai"] == ("********", "environment OPENAI_API_KEY")
    assert rows["keys.anthropic"] == ("unset", "default")
    assert rows["model.base_url"][0] == "http://********@elsewhere.test/v1"
    assert "sk-secret" not in repr(loaded)
    assert list(rows) == [description.key for description in describe_settings()]


def test_every_setting_is_documented_and_has_a_variable(project: Path, home: Path) -> None:
    for description in describe_settings():
        assert description.text.endswith("."), description.key
        assert description.default == "unset" or not Path(description.default).is_absolute()
        value = (
            "4096" if description.key.endswith("_tokens") else "http://h" if "url" in description.key else "1"
        )
        value = {"model.profile.reasoning_effort": "low", "model.profile.prompt_cache": "none"}.get(
            description.key, value
        )
        value = value if description.default == "unset" else description.default
        loaded = load(project, home, **{description.variable: value})
        assert loaded.origins[description.key] == f"environment {description.variable}"


def test_a_group_inside_a_group_is_a_table_inside_a_table(project: Path, home: Path) -> None:
    config = home / ".config" / "suture" / "suture.toml"
    config.write_text("[model.profile]\ntools = true\ncontext_tokens = 16384\n")
    loaded = load(project, home, SUTURE_MODEL_PROFILE_REASONING="true")
    assert loaded.settings.model.profile.reasoning
    assert (loaded.settings.model.profile.tools, loaded.settings.model.profile.context_tokens) == (
        True,
        16384,
    )
    assert loaded.origins["model.profile.tools"] == str(config)


@pytest.mark.parametrize("source", ["file", "environment", "flag"])
def test_profiles_of_named_models_are_tables(project: Path, home: Path, source: str) -> None:
    text = '{"openai:one" = {tools = false}, "openai:two" = {reasoning = true}}'
    if source == "file":
        config = home / ".config" / "suture" / "suture.toml"
        config.write_text(
            '[model.profiles."openai:one"]\ntools = false\n[model.profiles."openai:two"]\nreasoning = true\n'
        )
    flags = {"model.profiles": text} if source == "flag" else None
    environ = {"SUTURE_MODEL_PROFILES": text} if source == "environment" else {}
    settings = load(project, home, flags, **environ).settings
    profiles = settings.model.profiles
    assert (profiles["openai:one"].tools, profiles["openai:two"].reasoning) == (False, True)
    assert restore_settings(encode_settings(settings), Settings()).model == settings.model


@pytest.mark.parametrize(
    "text", ["nonsense", "7", '{"openai:one" = {toolz = true}}', '{"openai:one" = {context_tokens = 3}}']
)
def test_profiles_that_cannot_be_read_are_a_usage_error(project: Path, home: Path, text: str) -> None:
    with pytest.raises(UsageError, match=r"model\.profiles"):
        load(project, home, {"model.profiles": text})


@pytest.mark.parametrize("source", ["project", "environment", "flag"])
def test_services_are_tables_that_a_project_may_set_without_trust(
    project: Path, home: Path, source: str
) -> None:
    text = '{redis = {}, web = {command = "serve", port = 7001, variables = {URL = "http://127.0.0.1:7001"}}}'
    if source == "project":
        (project / "suture.toml").write_text(f"[project]\nservices = {text}\n")
    flags = {"project.services": text} if source == "flag" else None
    environ = {"SUTURE_PROJECT_SERVICES": text} if source == "environment" else {}
    services = load(project, home, flags, **environ).settings.project.services
    web = TaskService(command="serve", port=7001, variables={"URL": "http://127.0.0.1:7001"})
    assert services == {"redis": TaskService(), "web": web}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{mysql = {}}", "say how to start it with `command`"),
        ('{web = {command = "serve"}}', "say with `port` or `ready`"),
        ("{redis = {prot = 7}}", "prot"),
        ("{redis = {port = 70000}}", "no port 70000"),
        ("{redis = {timeout_s = 0}}", "timeout_s"),
        ('{"a b" = {}}', "a service's name"),
        ("redis", "inline table"),
    ],
)
def test_a_service_that_cannot_be_started_is_a_usage_error(
    project: Path, home: Path, text: str, reason: str
) -> None:
    with pytest.raises(UsageError, match=r"project\.services") as caught:
        load(project, home, {"project.services": text})
    assert reason in caught.value.message


def test_an_unknown_key_of_an_inner_group_is_refused_with_a_suggestion(project: Path, home: Path) -> None:
    config = home / ".config" / "suture" / "suture.toml"
    config.write_text("[model.profile]\ntoolz = true\n")
    with pytest.raises(UsageError, match=r"no setting 'model.profile.toolz'.*") as caught:
        load(project, home)
    assert "model.profile.tools" in str(caught.value.remedy)


@pytest.mark.parametrize(
    ("code", "advice"), [("lines_not_rnu", "did you mean 'lines_not_run'"), ("bogus", "docs/judge.md")]
)
@pytest.mark.parametrize("key", ["judge.rejects", "judge.remarks", "judge.ignores"])
def test_an_unknown_finding_in_a_policy_is_refused(
    project: Path, home: Path, key: str, code: str, advice: str
) -> None:
    with pytest.raises(UsageError, match=f"there is no finding '{code}'") as refused:
        load(project, home, {key: code})
    assert advice in refused.value.message


def test_settings_created_in_code_have_real_paths() -> None:
    assert Settings().paths.home.is_absolute()


@pytest.mark.parametrize("key", USER_ONLY_SETTINGS)
@pytest.mark.parametrize("file", ["suture.toml", ".env"])
def test_a_project_cannot_set_user_only_settings(project: Path, home: Path, key: str, file: str) -> None:
    group, _, field = key.partition(".")
    values = {
        "sandbox.minimum_level": "none",
        "project.untrusted": "ignore",
        "store.runs": "database",
        "serve.executor": "ray",
        "safety.approve_deps": "never",
        "proposer.outside": "true",
        "proposer.seconds": "60",
        "proposer.turns": "3",
    }
    is_number = any(kind in str(setting_fields()[key].annotation) for kind in ("int", "float"))
    value = values.get(key, "7" if is_number else "container")
    line = f'[{group}]\n{field} = "{value}"' if file == "suture.toml" else f"SUTURE_{key.upper()}={value}"
    (project / file).write_text(line.replace(key.upper(), key.upper().replace(".", "_")))

    with pytest.raises(UsageError, match="no say in this"):
        load(project, home)
    assert load(project, home, {key: value})
    config = home / ".config" / "suture" / "suture.toml"
    config.write_text(f'[{group}]\n{field} = "{value}"')
    (project / file).unlink()
    assert load(project, home)


def test_a_project_cannot_send_the_users_key_to_a_roles_server(project: Path, home: Path) -> None:
    (project / "suture.toml").write_text(
        '[models]\ncritic = "openai:x"\ncritic_base_url = "http://elsewhere"\n'
    )
    assert load(project, home)
    with pytest.raises(UsageError, match=r"would send your key .*SUTURE_MODELS_CRITIC_BASE_URL"):
        load(project, home, OPENAI_API_KEY="k")
    with pytest.raises(UsageError, match="would send your key"):
        load(project, home, SUTURE_MODELS_CRITIC_KEY="k")


def test_the_key_of_a_role_is_never_shown(project: Path, home: Path) -> None:
    loaded = load(project, home, SUTURE_MODELS_CRITIC_KEY="very-secret")
    assert "very-secret" not in repr(render_settings(loaded.settings, loaded.origins))
    with pytest.raises(UsageError) as caught:
        load(project, home, SUTURE_MODELS_CRITIC_KEY="very secret")
    assert "very" not in str(caught.value)


def test_a_project_cannot_redirect_the_users_headers(project: Path, home: Path) -> None:
    (project / "suture.toml").write_text('[model]\nname = "openai:x"\nbase_url = "http://elsewhere"')
    assert load(project, home)
    with pytest.raises(UsageError, match="would send your key"):
        load(project, home, OPENAI_CUSTOM_HEADERS="authorization: x")
