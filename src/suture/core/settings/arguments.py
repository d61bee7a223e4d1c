"""What ancestors took as constructor arguments, and what to use instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from suture.core.settings.aliases import PROVIDERS, model_of, scheme_of
from suture.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Argument:
    """One constructor argument of an ancestor.

    Attributes:
        name: The ancestor's argument.
        setting: The setting it stands for; empty where there is none.
        says: For an argument without a setting, what to do instead.
    """

    name: str
    setting: str = ""
    says: str = ""


_CRITIC = "use a recipe with a critic, such as `critic` (docs/recipes); trusted checks decide"
_CHECKPOINTS = "every run is checkpointed; there is nothing to switch on"

ARGUMENTS: tuple[Argument, ...] = (
    Argument(name="model_provider", setting="model.name"),
    Argument(name="model_name", setting="model.name"),
    Argument(name="max_iterations", setting="budget.attempts"),
    Argument(name="max_retries", setting="budget.attempts"),
    Argument(name="temperature", setting="model.temperature"),
    Argument(name="max_tokens", setting="model.max_tokens"),
    Argument(name="coder_provider", setting="models.coder"),
    Argument(name="coder_model", setting="models.coder"),
    Argument(name="coder_max_tokens", setting="models.coder_max_tokens"),
    Argument(name="coder_temperature", setting="models.coder_temperature"),
    Argument(name="critic_provider", setting="models.critic"),
    Argument(name="critic_model", setting="models.critic"),
    Argument(name="critic_max_tokens", setting="models.critic_max_tokens"),
    Argument(name="critic_temperature", setting="models.critic_temperature"),
    Argument(name="approval_threshold", says=_CRITIC),
    Argument(name="enable_critic", says=_CRITIC),
    Argument(name="critic_confidence_threshold", says=_CRITIC),
    Argument(
        name="stuck_threshold", says="a run that repeats itself ends as `stuck`; see loop.repair_rounds"
    ),
    Argument(name="patience", says="use `patience` in a recipe of your own (docs/recipes)"),
    Argument(
        name="min_delta", says="a candidate is better when it passes more trusted checks; there is no score"
    ),
    Argument(name="early_termination", says="a run stops as soon as every trusted check passes"),
    Argument(name="schema_retries", says="a malformed reply is a spent attempt; use budget.attempts"),
    Argument(name="autonomy", setting="loop.autonomy"),
    Argument(name="autonomy_level", setting="loop.autonomy"),
    Argument(name="enable_cross_session_memory", says="there is no memory across runs yet"),
    Argument(
        name="parallel_strategies", says="use the recipe `dual_oracle`, or `strategies` in one of your own"
    ),
    Argument(
        name="enable_spec_tests", says="use a recipe with testers, such as `dual_oracle` (docs/recipes)"
    ),
    Argument(name="enable_checkpointing", says=_CHECKPOINTS),
    Argument(name="persist_checkpoints", says=_CHECKPOINTS),
    Argument(name="model_overrides", says="name the model of a role in the settings models.*"),
)
"""Every constructor argument that an ancestor named."""

MODEL_PAIRS: Mapping[str, tuple[str, str]] = {
    "model.name": ("model_provider", "model_name"),
    "models.coder": ("coder_provider", "coder_model"),
    "models.critic": ("critic_provider", "critic_model"),
}
"""Settings that ancestors gave in two halves: the provider's argument, the model's."""

_BY_NAME = {argument.name: argument for argument in ARGUMENTS}


def flags_from_arguments(arguments: Mapping[str, object]) -> dict[str, object]:
    """Turn an ancestor's constructor arguments into settings for `load_settings(flags=...)`.

    Args:
        arguments: Name -> value; `None` counts as not given.

    Raises:
        UsageError: An argument has no setting here; the message names what to use instead.
    """
    given = {name: value for name, value in arguments.items() if value is not None}
    flags: dict[str, object] = {}
    for name, value in given.items():
        argument = _BY_NAME.get(name)
        if argument is None:
            taken = ", ".join(one.name for one in ARGUMENTS if one.setting)
            raise UsageError(f"there is no argument {name!r}", remedy=f"known are {taken}")
        if not argument.setting:
            raise UsageError(f"the argument {name!r} is not available here", remedy=argument.says)
        if argument.setting not in MODEL_PAIRS:
            flags[argument.setting] = _attempts(value) if name == "max_retries" else value
    for setting, (provider, model) in MODEL_PAIRS.items():
        named = _model(given, provider, model)
        if named is not None:
            flags[setting] = named
    return flags


def _attempts(retries: object) -> int:
    if not isinstance(retries, int) or isinstance(retries, bool) or retries < 0:
        raise UsageError(f"max_retries={retries!r} is not a whole number of retries")
    return retries + 1


def _model(given: Mapping[str, object], provider: str, name: str) -> str | None:
    """`provider:model` from the two arguments of these names, where one of them is given."""
    model = None if given.get(name) is None else str(given[name])
    if provider in given:
        return model_of(
            str(given[provider]).lower(), model, said=f"{provider}={given[provider]!r}", name_it=name
        )
    if model is not None and (":" not in model or scheme_of(model) not in PROVIDERS):
        raise UsageError(f"{name}={model!r} needs a provider", remedy=f"give {provider} too")
    return model
