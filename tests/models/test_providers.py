"""Opening a model by name, or using a given one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from langchain_core.language_models import FakeListChatModel
from pydantic import SecretStr

from suture.core.settings.schema import KeySettings, ModelSettings, PathSettings, Settings
from suture.errors import PrerequisiteError, UsageError
from suture.models import Message, Sampling, open_model
from suture.testing import ScriptedModel


def make_settings(name: str, **knobs: str) -> Settings:
    """Return settings with this model name."""
    return Settings(model=ModelSettings.model_validate({"name": name, **knobs}))


def test_a_given_model_is_used_unchanged() -> None:
    given = ScriptedModel(["one"])
    assert open_model(Settings(), given) is given


async def test_a_given_langchain_model_is_wrapped() -> None:
    model = open_model(Settings(), FakeListChatModel(responses=["one"]))
    reply = await model.complete([Message(role="user", content="hi")], Sampling(max_tokens=5))
    assert (reply.text, reply.finish) == ("one", "stop")
    assert reply.completion_tokens == 3
    await model.close()


def test_a_given_name_overrides_the_settings() -> None:
    model = open_model(make_settings("openai:gpt", base_url="http://127.0.0.1:9/v1"), "scripted:example")
    assert model.name == "scripted:example"


@pytest.mark.parametrize("name", ["qwen", "openai:", "nobody:model", "local:unknown-model"])
def test_an_invalid_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_model(make_settings(name))
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("name", "expected"),
    [("openai:gpt-4o", "OPENAI_API_KEY"), ("anthropic:claude", "suture\\[anthropic\\]|ANTHROPIC_API_KEY")],
)
def test_a_missing_key_or_extra_is_an_error(name: str, expected: str) -> None:
    with pytest.raises(PrerequisiteError, match=expected):
        open_model(make_settings(name))


def test_an_own_server_needs_no_key() -> None:
    assert open_model(make_settings("openai:any", base_url="http://127.0.0.1:9/v1")).name == "openai:any"


def test_missing_weights_name_the_download_command(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    with pytest.raises(PrerequisiteError, match="suture models pull"):
        open_model(Settings(paths=PathSettings(cache=tmp_path)))


def test_opening_a_model_makes_no_call_and_shows_no_key() -> None:
    settings = Settings(
        model=ModelSettings(name="openai:gpt-4o"), keys=KeySettings(openai=SecretStr("sk-secret"))
    )
    assert "sk-secret" not in repr(open_model(settings))


def test_importing_the_models_package_imports_no_vendor_library() -> None:
    vendors = (
        "langchain",
        "langchain_core",
        "openai",
        "xllamacpp",
        "huggingface_hub",
        "httpx",
        "psutil",
        "tenacity",
    )
    program = f"import sys, suture.models, suture.testing; print([v for v in {vendors} if v in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
