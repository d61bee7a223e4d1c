"""Each variable and argument of Suture's ancestors works, or a message says what to use instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from suture.core.settings import LoadedSettings, flags_from_arguments, load_settings, render_settings
from suture.core.settings.aliases import ARGUMENTS, VARIABLES
from suture.errors import UsageError
from trusting import load_trusted

KEYS = (
    "keys.openai",
    "keys.anthropic",
    "keys.qwen",
    "keys.deepseek",
    "keys.openrouter",
    "keys.google",
    "keys.bedrock",
    "keys.huggingface",
    "keys.e2b",
)


def load(folder: Path, **environ: str) -> LoadedSettings:
    return load_trusted(folder, None, {"HOME": str(folder), **environ})


def get_value(loaded: LoadedSettings, key: str) -> object:
    group, _, field = key.partition(".")
    value = getattr(getattr(loaded.settings, group), field)
    return value.get_secret_value() if key in KEYS else value


# Variables that work: the environment, the setting, its value, and the variable that its origin names.
WORKING_VARIABLES: tuple[tuple[dict[str, str], str, object, str], ...] = (
    ({"LLM_MODEL": "qwen2.5-coder:7b"}, "model.name", "ollama:qwen2.5-coder:7b", "LLM_MODEL"),
    ({"LLM_MODEL": "openai:gpt-4"}, "model.name", "openai:gpt-4", "LLM_MODEL"),
    ({"LLM_PROVIDER": "ollama"}, "model.name", "ollama:llama3", "LLM_PROVIDER"),
    ({"LLM_PROVIDER": "ollama", "LLM_MODEL": "m"}, "model.name", "ollama:m", "LLM_MODEL"),
    ({"LLM_PROVIDER": "Auto", "OLLAMA_MODEL": "m"}, "model.name", "ollama:m", "OLLAMA_MODEL"),
    ({"LLM_PROVIDER": "mock"}, "model.name", "scripted:example", "LLM_PROVIDER"),
    ({"LLM_PROVIDER": "mock", "LLM_MODEL": "m"}, "model.name", "scripted:example", "LLM_PROVIDER"),
    ({"LLM_PROVIDER": "openai", "LLM_MODEL": "gpt-4"}, "model.name", "openai:gpt-4", "LLM_PROVIDER"),
    ({"LLM_PROVIDER": "anthropic", "LLM_MODEL": "c"}, "model.name", "anthropic:c", "LLM_PROVIDER"),
    ({"OLLAMA_MODEL": "llama3"}, "model.name", "ollama:llama3", "OLLAMA_MODEL"),
    (
        {"OLLAMA_MODEL": "llama3", "OLLAMA_GENERATOR_MODEL": "llama3.2:3b"},
        "model.name",
        "ollama:llama3.2:3b",
        "OLLAMA_GENERATOR_MODEL",
    ),
    (
        {"OLLAMA_MODEL": "m", "OLLAMA_BASE_URL": "http://h:1"},
        "model.base_url",
        "http://h:1",
        "OLLAMA_BASE_URL",
    ),
    (
        {"SUTURE_MODEL": "openai:m", "OPENAI_BASE_URL": "http://h"},
        "model.base_url",
        "http://h",
        "OPENAI_BASE_URL",
    ),
    ({"MAX_RETRIES": "2"}, "budget.attempts", 3, "MAX_RETRIES"),
    ({"MAX_RETRIES": "0"}, "budget.attempts", 1, "MAX_RETRIES"),
    ({"OPENAI_API_KEY": "k"}, "keys.openai", "k", "OPENAI_API_KEY"),
    ({"ANTHROPIC_API_KEY": "k"}, "keys.anthropic", "k", "ANTHROPIC_API_KEY"),
    ({"HF_TOKEN": "k"}, "keys.huggingface", "k", "HF_TOKEN"),
    ({"QWEN_API_KEY": "k"}, "keys.qwen", "k", "QWEN_API_KEY"),
    ({"DEEPSEEK_API_KEY": "k"}, "keys.deepseek", "k", "DEEPSEEK_API_KEY"),
    ({"OPENROUTER_API_KEY": "k"}, "keys.openrouter", "k", "OPENROUTER_API_KEY"),
    ({"GEMINI_API_KEY": "k"}, "keys.google", "k", "GEMINI_API_KEY"),
    ({"AWS_BEARER_TOKEN_BEDROCK": "k"}, "keys.bedrock", "k", "AWS_BEARER_TOKEN_BEDROCK"),
    ({"E2B_API_KEY": "k"}, "keys.e2b", "k", "E2B_API_KEY"),
    ({"LLM_PROVIDER": "qwen", "LLM_MODEL": "qwen-plus"}, "model.name", "qwen:qwen-plus", "LLM_PROVIDER"),
    ({"LLM_PROVIDER": "huggingface", "HF_MODEL": "m"}, "model.name", "huggingface:m", "LLM_PROVIDER"),
    (
        {"LLM_PROVIDER": "huggingface", "HF_MODEL": "m", "USE_4BIT": "True"},
        "model.quantization",
        "4bit",
        "USE_4BIT",
    ),
)

# Variables that may be set for another program: the run continues, and a note names the replacement.
NOTED_VARIABLES = {
    "DB_PASSWORD": "SUTURE_DATABASE_URL",
    "LANGCHAIN_TRACING_V2": "LangSmith",
    "LANGCHAIN_API_KEY": "LangChain",
    "LANGCHAIN_PROJECT": "LangChain",
}

# Variables that are refused, because ignoring them would change what the user asked for.
REFUSED_VARIABLES: tuple[tuple[dict[str, str], str], ...] = (
    ({"LLM_PROVIDER": "huggingface"}, "LLM_PROVIDER=huggingface needs a model .*HF_MODEL"),
    ({"LLM_PROVIDER": "qwen"}, "needs a model .*LLM_MODEL"),
    ({"LLM_PROVIDER": "huggingface", "HF_MODEL": "m", "USE_4BIT": "maybe"}, "neither true nor false"),
    ({"LLM_PROVIDER": "gpt"}, "names no known provider .*known are mock, anthropic"),
    ({"LLM_PROVIDER": "openai"}, "needs a model .*LLM_MODEL"),
    ({"MAX_RETRIES": "many"}, "'many' is not a whole number .*SUTURE_BUDGET_ATTEMPTS"),
    ({"MAX_RETRIES": "-1"}, "not a whole number"),
)

ANCESTOR_ARGUMENTS = (
    "model_provider",
    "model_name",
    "max_iterations",
    "temperature",
    "max_tokens",
    "coder_provider",
    "coder_model",
    "coder_max_tokens",
    "coder_temperature",
    "critic_provider",
    "critic_model",
    "critic_max_tokens",
    "critic_temperature",
    "stuck_threshold",
    "early_termination",
    "schema_retries",
    "approval_threshold",
    "patience",
    "min_delta",
    "autonomy_level",
    "enable_cross_session_memory",
    "parallel_strategies",
    "enable_spec_tests",
    "enable_critic",
    "critic_confidence_threshold",
    "enable_checkpointing",
    "persist_checkpoints",
    "model_overrides",
)


@pytest.mark.parametrize(("environ", "key", "value", "variable"), WORKING_VARIABLES)
@pytest.mark.parametrize("source", ["environment", ".env"])
def test_an_ancestors_variable_works(
    tmp_path: Path, environ: dict[str, str], key: str, value: object, variable: str, source: str
) -> None:
    if source == ".env":
        (tmp_path / ".env").write_text("".join(f"{name}='{text}'\n" for name, text in environ.items()))
        environ = {}
    loaded = load(tmp_path, **environ)
    assert get_value(loaded, key) == value
    assert loaded.origins[key] == f"{tmp_path / '.env' if source == '.env' else source} {variable}"


@pytest.mark.parametrize("name", NOTED_VARIABLES)
def test_a_variable_without_effect_is_noted(tmp_path: Path, name: str) -> None:
    loaded = load(tmp_path, **{name: "a-secret"})
    (note,) = loaded.notes

    assert note.startswith(f"{name} is no setting here: ")
    assert NOTED_VARIABLES[name] in note
    assert "a-secret" not in note
    loaded_without = load(tmp_path)
    rows_with, rows_without = (
        render_settings(result.settings, result.origins) for result in (loaded, loaded_without)
    )
    assert {row[1] for row in rows_with} == {row[1] for row in rows_without}


@pytest.mark.parametrize(("environ", "message"), REFUSED_VARIABLES)
def test_a_refused_variable_fails_with_its_replacement(
    tmp_path: Path, environ: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        load(tmp_path, **environ)


@pytest.mark.parametrize("kind", ["postgresql", "postgres"])
def test_a_postgresql_url_of_the_environment_is_the_fallback_store(tmp_path: Path, kind: str) -> None:
    loaded = load_settings(tmp_path, {}, {"HOME": str(tmp_path), "DATABASE_URL": f"{kind}://u:p@h/d"})
    assert loaded.settings.store.fallback_url == f"{kind}://u:p@h/d"
    assert loaded.origins["store.fallback_url"] == "environment DATABASE_URL"


def test_a_database_url_of_a_project_or_another_kind_is_ignored(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("DATABASE_URL=postgresql://u:p@h/d\n")
    loaded = load_settings(tmp_path, {}, {"HOME": str(tmp_path)})
    assert (loaded.settings.store.fallback_url, loaded.notes) == (None, ())
    loaded = load_settings(tmp_path, {}, {"HOME": str(tmp_path), "DATABASE_URL": "mysql://u:p@h/d"})
    assert (loaded.settings.store.fallback_url, loaded.notes) == (None, ())


def test_every_variable_of_the_table_is_tested() -> None:
    tested = (
        {name for environ, *_ in WORKING_VARIABLES for name in environ}
        | NOTED_VARIABLES.keys()
        | {"DATABASE_URL"}
    )
    assert {alias.name for alias in VARIABLES} == {name for name in tested if not name.startswith("SUTURE_")}
    assert {alias.name for alias in VARIABLES if not alias.setting} == NOTED_VARIABLES.keys()


@pytest.mark.parametrize(
    ("environ", "key", "variable"),
    [(env, key, variable) for env, key, _, variable in WORKING_VARIABLES if "SUTURE_MODEL" not in env],
)
def test_sutures_own_variable_overrides_an_alias_with_a_note(
    tmp_path: Path, environ: dict[str, str], key: str, variable: str
) -> None:
    own_variable = f"SUTURE_{key}".upper().replace(".", "_")
    values = {"model.name": "ollama:mine", "budget.attempts": "9", "model.quantization": "none"}
    own_value = {**values, "model.base_url": "http://mine.test"}.get(key, "mine")
    # The variable overrides the alias although `.env` ranks below the environment.
    (tmp_path / ".env").write_text(f"{own_variable}={own_value}\n")
    loaded = load(tmp_path, **environ)

    assert str(get_value(loaded, key)) == own_value
    assert f"{variable} has no effect: {tmp_path}/.env {own_variable} decides {key}" in loaded.notes


def test_sutures_own_variable_makes_an_unknown_provider_harmless(tmp_path: Path) -> None:
    loaded = load(tmp_path, LLM_PROVIDER="gpt", SUTURE_MODEL="local:x")
    assert loaded.settings.model.name == "local:x"
    assert loaded.notes == ("LLM_PROVIDER has no effect: environment SUTURE_MODEL decides model.name",)


def test_an_alias_overrides_the_projects_file_and_a_flag_overrides_it(tmp_path: Path) -> None:
    (tmp_path / "suture.toml").write_text('[model]\nname = "local:x"\n')
    environ = {"HOME": str(tmp_path), "LLM_MODEL": "m"}
    assert load_settings(tmp_path, None, environ).settings.model.name == "ollama:m"
    assert load_settings(tmp_path, {"model.name": "local:y"}, environ).settings.model.name == "local:y"


def test_the_environment_overrides_dotenv(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("LLM_MODEL=weak\nMAX_RETRIES=1\n")
    settings = load(tmp_path, LLM_MODEL="strong").settings
    assert (settings.model.name, settings.budget.attempts) == ("ollama:strong", 2)


def test_auto_looks_for_ollama_at_its_configured_address(tmp_path: Path) -> None:
    loaded = load(tmp_path, OLLAMA_BASE_URL="http://h:1")
    assert (loaded.settings.model.name, loaded.settings.model.base_url) == ("auto", "http://h:1")


@pytest.mark.parametrize("name", ["OLLAMA_BASE_URL", "OPENAI_BASE_URL", "USE_4BIT"])
def test_a_variable_of_another_provider_has_no_effect(tmp_path: Path, name: str) -> None:
    loaded = load(tmp_path, SUTURE_MODEL="local:x", **{name: "http://h"})
    assert loaded.settings.model.base_url is None
    assert loaded.notes == (f"{name} has no effect: the model is {loaded.settings.model.name}",)


@pytest.mark.parametrize(
    ("arguments", "flags"),
    [
        (
            {"model_provider": "openai", "model_name": "gpt-4", "max_iterations": 5},
            {"model.name": "openai:gpt-4", "budget.attempts": 5},
        ),
        ({"model_provider": "mock"}, {"model.name": "scripted:example"}),
        ({"model_name": "ollama:llama3.2:3b"}, {"model.name": "ollama:llama3.2:3b"}),
        (
            {"max_retries": 2, "temperature": 0.7, "max_tokens": 99},
            {"budget.attempts": 3, "model.temperature": 0.7, "model.max_tokens": 99},
        ),
        ({"model_provider": None, "model_name": None, "enable_critic": None}, {}),
        (
            {"coder_provider": "qwen", "coder_model": "q", "coder_temperature": 0.2, "critic_max_tokens": 64},
            {"models.coder": "qwen:q", "models.coder_temperature": 0.2, "models.critic_max_tokens": 64},
        ),
    ],
)
def test_constructor_arguments_become_flags(
    tmp_path: Path, arguments: dict[str, object], flags: dict[str, object]
) -> None:
    assert flags_from_arguments(arguments) == flags
    load_settings(tmp_path, flags, {"HOME": str(tmp_path)})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model_provider": "gpt", "model_name": "m"}, "names no known provider"),
        ({"coder_provider": "qwen"}, "needs a model .*coder_model"),
        ({"critic_model": "gpt-4"}, "needs a provider .*critic_provider"),
        ({"model_provider": "openai"}, "needs a model .*model_name"),
        ({"model_name": "gpt-4"}, "needs a provider"),
        ({"max_retries": -1}, "whole number"),
        ({"colour": "blue"}, "no argument 'colour' .*known are model_provider"),
    ],
)
def test_invalid_constructor_arguments_fail(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        flags_from_arguments(arguments)


@pytest.mark.parametrize("name", ANCESTOR_ARGUMENTS)
def test_every_constructor_argument_works_or_fails_with_a_replacement(name: str) -> None:
    if name in {argument.name for argument in ARGUMENTS if argument.setting}:
        return
    with pytest.raises(UsageError, match=f"'{name}' is not available here") as caught:
        flags_from_arguments({name: 1})
    assert caught.value.remedy
