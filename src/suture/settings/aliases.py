"""What the variables of Suture's ancestors mean here: a setting, or a word on what to use instead.

The table is the whole truth; `docs/` and the tests are made from it. A variable that merely happens to be set
never breaks a run: it becomes a note. Only where silence would change what was asked for is it an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from suture.errors import UsageError

__all__ = [
    "PROVIDERS",
    "VARIABLES",
    "Alias",
    "AliasReading",
    "is_alias",
    "model_of",
    "read_aliases",
    "scheme_of",
]

PROVIDERS = ("anthropic", "local", "ollama", "openai", "scripted")
"""Schemes of `provider:model` that the aliases know; others reach the model room as they are."""

DEFAULT_OLLAMA_MODEL = "llama3"
"""What an ancestor used where `OLLAMA_MODEL` was not set."""


@dataclass(frozen=True, kw_only=True)
class Alias:
    """One variable of an ancestor.

    Attributes:
        name: The variable.
        setting: The setting it stands for; empty where there is none.
        scheme: The alias counts only while a model of this provider answers; empty for any.
        says: For a variable without a setting, what to do instead; else how its value is read.
    """

    name: str
    setting: str = ""
    scheme: str = ""
    says: str = ""


VARIABLES: tuple[Alias, ...] = (
    Alias(name="LLM_PROVIDER", setting="model.name", says="auto, ollama, mock, openai or anthropic"),
    Alias(name="LLM_MODEL", setting="model.name", says="the model of LLM_PROVIDER; alone, one of Ollama"),
    Alias(name="OLLAMA_GENERATOR_MODEL", setting="model.name", says="a model of Ollama"),
    Alias(name="OLLAMA_MODEL", setting="model.name", says="a model of Ollama"),
    Alias(name="OLLAMA_BASE_URL", setting="model.base_url", scheme="ollama", says="address of Ollama"),
    Alias(name="OPENAI_BASE_URL", setting="model.base_url", scheme="openai", says="address of the server"),
    Alias(name="MAX_RETRIES", setting="budget.attempts", says="retries after the first attempt: N + 1"),
    Alias(name="OPENAI_API_KEY", setting="keys.openai", says="the key"),
    Alias(name="ANTHROPIC_API_KEY", setting="keys.anthropic", says="the key"),
    Alias(name="HF_TOKEN", setting="keys.huggingface", says="the token"),
    Alias(
        name="HF_MODEL",
        says="there is no provider huggingface; set SUTURE_MODEL to a local: or openai: model",
    ),
    Alias(name="USE_4BIT", says="the embedded models are 4-bit already; choose one with SUTURE_MODEL"),
    Alias(
        name="QWEN_API_KEY",
        says="reach Qwen with SUTURE_MODEL=openai:NAME, SUTURE_MODEL_BASE_URL and its key",
    ),
    Alias(name="E2B_API_KEY", says="there is no e2b sandbox yet; sandbox.backend names the ones there are"),
    Alias(name="DB_PASSWORD", says="there is no database server yet; runs are kept under SUTURE_HOME"),
    Alias(
        name="LANGCHAIN_TRACING_V2",
        says="LangChain itself obeys it, and `true` sends prompts to LangSmith",
    ),
    Alias(name="LANGCHAIN_API_KEY", says="only LangChain's own tracing reads it"),
    Alias(name="LANGCHAIN_PROJECT", says="only LangChain's own tracing reads it"),
)
"""Every variable that an ancestor named."""

_BY_NAME = {alias.name: alias for alias in VARIABLES}
_PROVIDER_SUCCESSORS = {
    "huggingface": "set SUTURE_MODEL to local:NAME, or openai:NAME with SUTURE_MODEL_BASE_URL of its server",
    "qwen": "set SUTURE_MODEL to openai:NAME, and SUTURE_MODEL_BASE_URL to Qwen's OpenAI-compatible address",
}


@dataclass(frozen=True, kw_only=True)
class AliasReading:
    """What the aliases say.

    Attributes:
        values: Setting -> the variable it came from and its value.
        notes: One line for each variable that is set and has no effect.
    """

    values: Mapping[str, tuple[str, object]]
    notes: tuple[str, ...] = ()


def is_alias(name: str) -> bool:
    """Whether an ancestor named this variable."""
    return name in _BY_NAME


def scheme_of(model: str) -> str:
    """The provider part of `provider:model`."""
    return model.partition(":")[0]


def read_aliases(variables: Mapping[str, str], *, decided: Mapping[str, str], model: str) -> AliasReading:
    """Turn the ancestors' variables into settings.

    Args:
        variables: Name -> value, without empty ones.
        decided: Settings that something stronger has already decided -> what decided them.
        model: The `provider:model` that holds where no alias names another.

    Raises:
        UsageError: A value cannot be followed, and nothing stronger makes it moot.
    """
    present = {alias.name: variables[alias.name] for alias in VARIABLES if alias.name in variables}
    values: dict[str, tuple[str, object]] = {}
    notes: list[str] = []
    if "model.name" not in decided:
        named = _named_model(present)
        if named is not None:
            values["model.name"] = named
            model = str(named[1])
    for name, value in present.items():
        alias = _BY_NAME[name]
        if not alias.setting:
            notes.append(f"{name} is no setting here: {alias.says}")
        elif alias.setting in decided:
            notes.append(f"{name} has no effect: {decided[alias.setting]} decides {alias.setting}")
        elif alias.scheme and alias.scheme != scheme_of(model):
            notes.append(f"{name} has no effect: the model is {model}")
        elif name == "MAX_RETRIES":
            values[alias.setting] = (name, _attempts(value))
        elif alias.setting != "model.name":
            values[alias.setting] = (name, value)
    return AliasReading(values=values, notes=tuple(notes))


def _attempts(retries: str) -> int:
    if not retries.strip().isdecimal():
        raise UsageError(
            f"MAX_RETRIES={retries!r} is not a whole number of retries",
            remedy="set SUTURE_BUDGET_ATTEMPTS, the number of attempts",
        )
    return int(retries) + 1


def _named_model(present: Mapping[str, str]) -> tuple[str, str] | None:
    """The variable that decides the model, and the model, where one of them is set."""
    name_variable = next(
        (n for n in ("LLM_MODEL", "OLLAMA_GENERATOR_MODEL", "OLLAMA_MODEL") if n in present), None
    )
    provider = present.get("LLM_PROVIDER", "auto").strip().lower()
    if provider in ("auto", "ollama"):
        if name_variable is not None:
            return name_variable, _with_scheme("ollama", present[name_variable])
        return ("LLM_PROVIDER", f"ollama:{DEFAULT_OLLAMA_MODEL}") if provider == "ollama" else None
    model = model_of(provider, present.get("LLM_MODEL"), said=f"LLM_PROVIDER={provider}", name_it="LLM_MODEL")
    return "LLM_PROVIDER", model


def model_of(provider: str, name: str | None, *, said: str, name_it: str) -> str:
    """`provider:model` from the two halves that ancestors kept apart.

    Args:
        provider: A provider as an ancestor called it.
        name: The model's name, where one was given.
        said: What the user wrote, for the error.
        name_it: Where the model's name belongs, for the error.

    Raises:
        UsageError: There is no such provider here, or the model's name is missing.
    """
    if provider == "mock":
        return "scripted:example"
    if provider in _PROVIDER_SUCCESSORS:
        raise UsageError(f"{said} is not available here", remedy=_PROVIDER_SUCCESSORS[provider])
    if provider not in PROVIDERS:
        known = ", ".join(("mock", *PROVIDERS))
        raise UsageError(f"{said} names no known provider", remedy=f"known are {known}")
    if not name:
        raise UsageError(f"{said} needs a model", remedy=f"set {name_it}, or SUTURE_MODEL={provider}:NAME")
    return _with_scheme(provider, name)


def _with_scheme(provider: str, name: str) -> str:
    # An Ollama tag has a colon too (`llama3.2:3b`), so only a known scheme counts as one.
    return name if scheme_of(name) in PROVIDERS and ":" in name else f"{provider}:{name}"
