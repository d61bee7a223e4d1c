"""Environment variables and constructor arguments of Suture's ancestors, and the settings that they stand for.

The ancestors are the older programs that Suture replaces. The tables list every variable and argument of
theirs; the documentation and the tests use the tables, too. A variable without a setting only gives a note,
because it may be set for another program. A variable with a setting and an invalid value is an error, because
ignoring it would change what the user asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from suture.errors import UsageError

PROVIDERS = ("anthropic", "huggingface", "local", "ollama", "openai", "qwen", "scripted")
"""Providers in `provider:model` that the ancestors knew."""
DEFAULT_OLLAMA_MODEL = "llama3"
"""The model that an ancestor used if `OLLAMA_MODEL` was not set."""
POSTGRESQL_PREFIXES = ("postgres://", "postgresql://", "postgresql+")


@dataclass(frozen=True, kw_only=True)
class Alias:
    """An environment variable or a constructor argument of an ancestor.

    Attributes:
        name: The name of the variable or the argument.
        setting: The setting that it stands for; empty if there is none.
        scheme: Provider for whose models the variable counts; empty if it counts for any model.
        says: What the value is; without a setting, what to do instead.
    """

    name: str
    setting: str = ""
    scheme: str = ""
    says: str = ""


VARIABLES: tuple[Alias, ...] = (
    Alias(name="LLM_PROVIDER", setting="model.name", says="auto, mock, or a provider of docs/models.md"),
    Alias(name="LLM_MODEL", setting="model.name", says="the model of LLM_PROVIDER; alone, one of Ollama"),
    Alias(name="OLLAMA_GENERATOR_MODEL", setting="model.name", says="a model of Ollama"),
    Alias(name="OLLAMA_MODEL", setting="model.name", says="a model of Ollama"),
    Alias(name="OLLAMA_BASE_URL", setting="model.base_url", scheme="ollama", says="address of Ollama"),
    Alias(name="OPENAI_BASE_URL", setting="model.base_url", scheme="openai", says="address of the server"),
    Alias(name="MAX_RETRIES", setting="budget.attempts", says="retries after the first attempt: N + 1"),
    Alias(name="OPENAI_API_KEY", setting="keys.openai", says="the key"),
    Alias(name="ANTHROPIC_API_KEY", setting="keys.anthropic", says="the key"),
    Alias(name="HF_TOKEN", setting="keys.huggingface", says="the token"),
    Alias(name="QWEN_API_KEY", setting="keys.qwen", says="the key"),
    Alias(name="DEEPSEEK_API_KEY", setting="keys.deepseek", says="the key"),
    Alias(name="OPENROUTER_API_KEY", setting="keys.openrouter", says="the key"),
    Alias(name="GEMINI_API_KEY", setting="keys.google", says="the key"),
    Alias(name="AWS_BEARER_TOKEN_BEDROCK", setting="keys.bedrock", says="the API key"),
    Alias(name="E2B_API_KEY", setting="keys.e2b", says="the key"),
    Alias(
        name="HF_MODEL",
        setting="model.name",
        says="the model of LLM_PROVIDER=huggingface",
        scheme="huggingface",
    ),
    Alias(name="USE_4BIT", setting="model.quantization", says="true or false", scheme="huggingface"),
    Alias(
        name="DATABASE_URL",
        setting="store.fallback_url",
        says="a PostgreSQL address; read from the environment only, because a project's `.env` names the"
        " project's own database",
    ),
    Alias(name="DB_PASSWORD", says="set SUTURE_DATABASE_URL, including the password"),
    Alias(
        name="LANGCHAIN_TRACING_V2",
        says="LangChain itself reads it, and `true` sends prompts to LangSmith",
    ),
    Alias(name="LANGCHAIN_API_KEY", says="only LangChain's own tracing reads it"),
    Alias(name="LANGCHAIN_PROJECT", says="only LangChain's own tracing reads it"),
)
"""Every environment variable that an ancestor read, and those in which providers document their keys."""

_OTHER_PROVIDER_NAMES = {"ollama": ("auto",)}
"""Provider -> other providers that may choose its models: `auto` may find Ollama on this machine."""
_BY_NAME = {alias.name: alias for alias in VARIABLES}


@dataclass(frozen=True, kw_only=True)
class AliasReading:
    """The settings that the aliases give.

    Attributes:
        values: Setting -> the variable that gives it, and its value.
        notes: One line for each variable that is set and has no effect.
        model_from: The variables that the name of the model was made of, the deciding one first.
    """

    values: Mapping[str, tuple[str, object]]
    notes: tuple[str, ...] = ()
    model_from: tuple[str, ...] = ()


def is_alias(name: str) -> bool:
    """Return whether an ancestor read this variable."""
    return name in _BY_NAME


def provider_of(model: str) -> str:
    """Return the provider of a model: the part of `provider:model` before the first colon."""
    return model.partition(":")[0]


def read_aliases(variables: Mapping[str, str], *, decided: Mapping[str, str], model: str) -> AliasReading:
    """Turn the ancestors' variables into settings.

    Args:
        variables: Name -> value, without variables that are empty.
        decided: Setting -> name of the stronger source that has set it already.
        model: The model to assume if no variable names one, as `provider:model`.

    Raises:
        UsageError: A value cannot be used, and no stronger source makes it irrelevant.
    """
    present = {alias.name: variables[alias.name] for alias in VARIABLES if alias.name in variables}
    values: dict[str, tuple[str, object]] = {}
    notes: list[str] = []
    model_from: tuple[str, ...] = ()
    if "model.name" not in decided:
        named_model = _named_model(present)
        if named_model is not None:
            variable, model, *sources = named_model
            values["model.name"] = variable, model
            model_from = tuple(sources)
    for name, value in present.items():
        alias = _BY_NAME[name]
        if not alias.setting:
            notes.append(f"{name} is no setting here: {alias.says}")
        elif alias.setting in decided:
            notes.append(f"{name} has no effect: {decided[alias.setting]} decides {alias.setting}")
        elif alias.scheme and provider_of(model) not in (
            alias.scheme,
            *_OTHER_PROVIDER_NAMES.get(alias.scheme, ()),
        ):
            notes.append(f"{name} has no effect: the model is {model}")
        elif name == "DATABASE_URL":
            if value.startswith(POSTGRESQL_PREFIXES):  # other programs use the variable for other databases
                values[alias.setting] = (name, value)
        elif name == "MAX_RETRIES":
            values[alias.setting] = (name, _attempts_from_variable(value))
        elif name == "USE_4BIT":
            values[alias.setting] = (name, _quantization(value))
        elif alias.setting != "model.name":
            values[alias.setting] = (name, value)
    return AliasReading(values=values, notes=tuple(notes), model_from=model_from)


def _attempts_from_variable(retries: str) -> int:
    if not retries.strip().isdecimal():
        raise UsageError(
            f"MAX_RETRIES={retries!r} is not a whole number of retries",
            remedy="set SUTURE_BUDGET_ATTEMPTS, the number of attempts",
        )
    return int(retries) + 1


def _quantization(use_4bit: str) -> str:
    settings = {"true": "4bit", "1": "4bit", "yes": "4bit", "false": "none", "0": "none", "no": "none"}
    if use_4bit.strip().lower() not in settings:
        raise UsageError(
            f"USE_4BIT={use_4bit!r} is neither true nor false", remedy="set SUTURE_MODEL_QUANTIZATION"
        )
    return settings[use_4bit.strip().lower()]


def _named_model(present: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return (variable that decides the model, the model, all variables that it was made of...).

    Return `None` if no variable names a model.
    """
    name_variable = next(
        (n for n in ("LLM_MODEL", "OLLAMA_GENERATOR_MODEL", "OLLAMA_MODEL") if n in present), None
    )
    provider = present.get("LLM_PROVIDER", "auto").strip().lower()
    if provider in ("auto", "ollama"):
        if name_variable is not None:
            sources = (name_variable, "LLM_PROVIDER") if "LLM_PROVIDER" in present else (name_variable,)
            return name_variable, _with_provider("ollama", present[name_variable]), *sources
        if provider == "ollama":
            return "LLM_PROVIDER", f"ollama:{DEFAULT_OLLAMA_MODEL}", "LLM_PROVIDER"
        return None
    usual_variable = "HF_MODEL" if provider == "huggingface" else "LLM_MODEL"
    name_variable = "LLM_MODEL" if present.get("LLM_MODEL") else usual_variable
    model = build_model_name(
        provider, present.get(name_variable), given=f"LLM_PROVIDER={provider}", name_source=usual_variable
    )
    return "LLM_PROVIDER", model, "LLM_PROVIDER", *((name_variable,) if name_variable in present else ())


def build_model_name(provider: str, name: str | None, *, given: str, name_source: str) -> str:
    """Return `provider:model`, from a provider and a model that ancestors took separately.

    Args:
        given: What the user wrote, for error messages, such as `LLM_PROVIDER=openai`.
        name_source: The variable or argument for the name of the model, for error messages.

    Raises:
        UsageError: The provider is unknown, or the name of the model is missing.
    """
    if provider == "mock":
        return "scripted:example"
    if provider not in PROVIDERS:
        valid_providers = ", ".join(("mock", *PROVIDERS))
        raise UsageError(f"{given} names no known provider", remedy=f"known are {valid_providers}")
    if not name:
        raise UsageError(
            f"{given} needs a model", remedy=f"set {name_source}, or SUTURE_MODEL={provider}:NAME"
        )
    return _with_provider(provider, name)


def _with_provider(provider: str, name: str) -> str:
    # A tag of Ollama contains a colon too (`llama3.2:3b`), so only known providers count as a prefix.
    return name if provider_of(name) in PROVIDERS and ":" in name else f"{provider}:{name}"


_CRITIC = "use a recipe with a critic, such as `critic` (docs/recipes.md); trusted checks decide"
_CHECKPOINTS = "every run is checkpointed; there is nothing to switch on"

ARGUMENTS: tuple[Alias, ...] = (
    Alias(name="model_provider", setting="model.name"),
    Alias(name="model_name", setting="model.name"),
    Alias(name="max_iterations", setting="budget.attempts"),
    Alias(name="max_retries", setting="budget.attempts"),
    Alias(name="temperature", setting="model.temperature"),
    Alias(name="max_tokens", setting="model.max_tokens"),
    Alias(name="coder_provider", setting="models.coder"),
    Alias(name="coder_model", setting="models.coder"),
    Alias(name="coder_max_tokens", setting="models.coder_max_tokens"),
    Alias(name="coder_temperature", setting="models.coder_temperature"),
    Alias(name="critic_provider", setting="models.critic"),
    Alias(name="critic_model", setting="models.critic"),
    Alias(name="critic_max_tokens", setting="models.critic_max_tokens"),
    Alias(name="critic_temperature", setting="models.critic_temperature"),
    Alias(name="approval_threshold", says=_CRITIC),
    Alias(name="enable_critic", says=_CRITIC),
    Alias(name="critic_confidence_threshold", says=_CRITIC),
    Alias(name="stuck_threshold", says="a run that repeats itself ends as `stuck`; see loop.repair_rounds"),
    Alias(name="patience", says="use `patience` in a recipe of your own (docs/recipes.md)"),
    Alias(
        name="min_delta", says="a candidate is better when it passes more trusted checks; there is no score"
    ),
    Alias(name="early_termination", says="a run stops as soon as every trusted check passes"),
    Alias(name="schema_retries", says="a malformed reply is a spent attempt; use budget.attempts"),
    Alias(name="autonomy", setting="loop.autonomy"),
    Alias(name="autonomy_level", setting="loop.autonomy"),
    Alias(name="enable_cross_session_memory", says="set memory.use (docs/runs.md)"),
    Alias(
        name="parallel_strategies", says="use the recipe `dual_oracle`, or `strategies` in one of your own"
    ),
    Alias(
        name="enable_spec_tests", says="use a recipe with testers, such as `dual_oracle` (docs/recipes.md)"
    ),
    Alias(name="enable_checkpointing", says=_CHECKPOINTS),
    Alias(name="persist_checkpoints", says=_CHECKPOINTS),
    Alias(name="model_overrides", says="name the model of a role in the settings models.*"),
)
"""Every constructor argument that an ancestor took."""

MODEL_PAIRS: Mapping[str, tuple[str, str]] = {
    "model.name": ("model_provider", "model_name"),
    "models.coder": ("coder_provider", "coder_model"),
    "models.critic": ("critic_provider", "critic_model"),
}
"""Setting that ancestors took in two arguments -> (argument for the provider, argument for the model)."""

_ARGUMENTS_BY_NAME = {argument.name: argument for argument in ARGUMENTS}


def flags_from_arguments(arguments: Mapping[str, object]) -> dict[str, object]:
    """Turn an ancestor's constructor arguments into settings for `load_settings(flags=...)`.

    Raises:
        UsageError: There is no setting for an argument. The message says what to use instead.
    """
    given_arguments = {name: value for name, value in arguments.items() if value is not None}
    flags: dict[str, object] = {}
    for name, value in given_arguments.items():
        argument = _ARGUMENTS_BY_NAME.get(name)
        if argument is None:
            valid_names = ", ".join(argument.name for argument in ARGUMENTS if argument.setting)
            raise UsageError(f"there is no argument {name!r}", remedy=f"known are {valid_names}")
        if not argument.setting:
            raise UsageError(f"the argument {name!r} is not available here", remedy=argument.says)
        if argument.setting not in MODEL_PAIRS:
            flags[argument.setting] = _attempts_from_argument(value) if name == "max_retries" else value
    for setting, (provider_argument, model_argument) in MODEL_PAIRS.items():
        model = _model_from_arguments(given_arguments, provider_argument, model_argument)
        if model is not None:
            flags[setting] = model
    return flags


def _attempts_from_argument(retries: object) -> int:
    if not isinstance(retries, int) or isinstance(retries, bool) or retries < 0:
        raise UsageError(f"max_retries={retries!r} is not a whole number of retries")
    return retries + 1


def _model_from_arguments(
    arguments: Mapping[str, object], provider_argument: str, model_argument: str
) -> str | None:
    """Return `provider:model` from two arguments, or `None` if neither is given."""
    model = None if arguments.get(model_argument) is None else str(arguments[model_argument])
    if provider_argument in arguments:
        provider = arguments[provider_argument]
        return build_model_name(
            str(provider).lower(),
            model,
            given=f"{provider_argument}={provider!r}",
            name_source=model_argument,
        )
    if model is not None and (":" not in model or provider_of(model) not in PROVIDERS):
        raise UsageError(
            f"{model_argument}={model!r} needs a provider", remedy=f"give {provider_argument} too"
        )
    return model
