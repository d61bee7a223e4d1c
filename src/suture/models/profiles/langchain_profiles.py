"""Read the model profiles that come with LangChain's partner packages.

Each package keeps them as plain data in `data/_profiles.py`. That file is executed by its path: importing it by
name would import the package, and with it the vendor's SDK, which takes seconds.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

PACKAGES_BY_PROVIDER: Mapping[str, str] = {
    "openai": "langchain_openai",
    "anthropic": "langchain_anthropic",
    "google": "langchain_google_genai",
    "bedrock": "langchain_aws",
    "openrouter": "langchain_openrouter",
}
"""Provider -> the package with the profiles of its models. Only those that are installed are read."""
SNAPSHOT_SUFFIX = re.compile(r"(-latest|-\d{4}-\d{2}-\d{2}|-\d{8})?(-v\d+)?(:\w+)?$")
"""The suffix that pins a version of a model; it also matches Bedrock's `-v1:0` and OpenRouter's `:free`."""
VENDOR_PREFIX = re.compile(r"^(?:[\w-]+/|(?:[a-z]{2,6}\.)?(?:anthropic|amazon|meta|mistral)\.)+")
"""The vendor before a model's name: `openai/gpt-5` with OpenRouter, `us.anthropic.claude-...` with Bedrock."""


def find_langchain_profile(provider: str, model: str) -> Mapping[str, Any]:
    """Return LangChain's profile of a model; empty if no installed package knows it.

    The provider's own package counts first. A proxy may serve another vendor's model under its usual name.
    """
    own = PACKAGES_BY_PROVIDER.get(provider)
    packages = sorted(PACKAGES_BY_PROVIDER.values(), key=lambda package: package != own)
    for name in _spellings(model):
        for package in packages:
            profile = _read_profiles(package).get(name)
            if isinstance(profile, Mapping):
                return profile
    return {}


def _spellings(model: str) -> Iterator[str]:
    """Yield the names under which a model may be listed, the most exact one first."""
    base = VENDOR_PREFIX.sub("", model.lower())
    yield model
    yield base
    pinned = SNAPSHOT_SUFFIX.sub("", base)
    yield pinned
    if pinned.startswith("claude"):  # OpenRouter writes `claude-sonnet-4.5`
        yield pinned.replace(".", "-")


@lru_cache
def _read_profiles(package: str) -> Mapping[str, Any]:
    """Return a package's profiles by model; empty if it is not installed or keeps them elsewhere."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        return {}
    path = Path(found.origin).parent / "data" / "_profiles.py"
    spec = importlib.util.spec_from_file_location(f"{package}_profile_data", path)
    if spec is None or spec.loader is None or not path.is_file():
        return {}
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    profiles = getattr(module, "_PROFILES", None)
    return profiles if isinstance(profiles, Mapping) else {}
