"""Turn the check of a model into text and JSON values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from suture.models import ModelProfile, Price
from suture.models.model_check import PROFILE_ATTRIBUTES, Feature, FeatureCheck, ModelCheck
from suture.models.profiles import ProfileOrigin

FEATURE_LABELS: Mapping[Feature, str] = {
    "text": "text",
    "streaming": "streaming",
    "thinking": "thinking",
    "tools": "tools",
    "parallel_tools": "parallel calls",
    "structured_output": "JSON by schema",
    "prompt_cache": "prompt cache",
}
ORIGIN_LABELS: Mapping[ProfileOrigin, str] = {
    "default": "default",
    "provider": "the provider",
    "family": "the model's family",
    "size": "the size in its name",
    "langchain": "LangChain's profiles",
    "setting": "a setting",
}
PROFILE_LABELS: Mapping[str, str] = {
    "is_capable": "capable",
    "context_tokens": "context",
    "max_output_tokens": "longest reply",
    "tools": "tools",
    "parallel_tools": "parallel calls",
    "structured_output": "JSON by schema",
    "reasoning": "thinking",
    "reasoning_effort": "reasoning effort",
    "thinking_tokens": "room for thinking",
    "prefill": "begun replies",
    "stop": "stop sequences",
    "prompt_cache": "prompt cache",
    "rejected_parameters": "refused parameters",
}
"""Attribute of a profile -> its name on screen, in the order of the screen."""
TOKEN_VALUES = ("context_tokens", "max_output_tokens", "thinking_tokens")
WORKS = {True: "works", False: "no", None: "not known"}


def feature_rows(check: ModelCheck) -> Iterator[tuple[str, str, str]]:
    """Yield (feature, whether it works, what was observed)."""
    for feature in check.features:
        yield FEATURE_LABELS[feature.feature], WORKS[feature.works], feature.detail


def profile_rows(profile: ModelProfile, max_tokens: int | None) -> Iterator[tuple[str, str, str]]:
    """Yield (ability, value, where the value comes from).

    Args:
        profile: The model's profile.
        max_tokens: The setting `model.max_tokens`.
    """
    for name, label in PROFILE_LABELS.items():
        yield label, _format_value(name, getattr(profile, name)), ORIGIN_LABELS[profile.origins[name]]
    origin = "the limits above" if max_tokens is None else "a setting"
    yield "answer", f"up to {max_tokens or profile.answer_tokens:,} tokens", origin


def _format_value(name: str, value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name in TOKEN_VALUES:
        return f"{value:,} tokens"
    if isinstance(value, frozenset):
        return ", ".join(sorted(value)) or "none"
    return str(value) or "the provider's default"


def mismatch_lines(mismatches: tuple[FeatureCheck, ...]) -> Iterator[str]:
    """Yield what to set where the profile is wrong."""
    for check in mismatches:
        value = str(check.works).lower()
        label = FEATURE_LABELS[check.feature]
        yield (
            f"{label}: {'works' if check.works else 'does not work'}, which the profile does not say; "
            f"set model.profile.{PROFILE_ATTRIBUTES[check.feature]} = {value}"
        )


def price_text(price: Price | None) -> str:
    """Return a price in words."""
    if price is None:
        return "unknown (model.prices sets it)"
    cached = "" if price.cached_input is None else f", ${price.cached_input:g} from the cache"
    return f"${price.input:g} in{cached}, ${price.output:g} out, per million tokens"


def check_as_json(check: ModelCheck, price: Price | None, max_tokens: int | None) -> dict[str, Any]:
    """Return a check as JSON values."""
    profile = check.profile
    values = {each.name: getattr(profile, each.name) for each in fields(profile) if each.name != "origins"}
    values["rejected_parameters"] = sorted(profile.rejected_parameters)
    return {
        "model": check.model,
        "usable": True,
        "features": {
            feature.feature: {"works": feature.works, "detail": feature.detail} for feature in check.features
        },
        "profile": {
            name: {"value": value, "origin": profile.origins[name]} for name, value in values.items()
        },
        "answer_tokens": max_tokens or profile.answer_tokens,
        "price": None
        if price is None
        else {
            "input": price.input,
            "output": price.output,
            "cached_input": price.cached_input,
            "cache_write": price.cache_write,
        },
        "suggestions": list(mismatch_lines(check.mismatches)),
        "calls": len(check.replies),
        "prompt_tokens": sum(reply.prompt_tokens for reply in check.replies),
        "completion_tokens": sum(reply.completion_tokens for reply in check.replies),
        "seconds": round(check.seconds, 2),
    }
