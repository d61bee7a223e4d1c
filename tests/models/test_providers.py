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


def named(name: str, **knobs: str) -> Settings:
    return Settings(model=ModelSettings.model_validate({"name": name, **knobs}))


def test_a_model_handed_in_is_used_as_it_is() -> None:
    given = ScriptedModel(["one"])
    assert open_model(Settings(), given) is given


async def test_a_langchain_model_handed_in_is_wrapped() -> None:
    model = open_model(Settings(), FakeListChatModel(responses=["one"]))
    reply = await model.complete([Message(role="user", content="hi")], Sampling(max_tokens=5))
    assert (reply.text, reply.finish) == ("one", "stop")
    assert reply.completion_tokens == 3
    await model.close()


def test_a_name_handed_in_beats_the_settings() -> None:
    model = open_model(named("openai:gpt", base_url="http://127.0.0.1:9/v1"), "scripted:example")
    assert model.name == "scripted:example"


@pytest.mark.parametrize("name", ["qwen", "openai:", "nobody:model", "local:unknown-model"])
def test_a_name_that_means_nothing(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_model(named(name))
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("name", "says"),
    [("openai:gpt-4o", "OPENAI_API_KEY"), ("anthropic:claude", "suture\\[anthropic\\]|ANTHROPIC_API_KEY")],
)
def test_a_missing_key_or_extra_is_an_error(name: str, says: str) -> None:
    with pytest.raises(PrerequisiteError, match=says):
        open_model(named(name))


def test_a_server_of_ones_own_needs_no_key() -> None:
    assert open_model(named("openai:any", base_url="http://127.0.0.1:9/v1")).name == "openai:any"


def test_weights_that_are_not_here_name_the_command(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    with pytest.raises(PrerequisiteError, match="suture models pull"):
        open_model(Settings(paths=PathSettings(cache=tmp_path)))


def test_opening_a_model_makes_no_call_and_shows_no_key() -> None:
    settings = Settings(
        model=ModelSettings(name="openai:gpt-4o"), keys=KeySettings(openai=SecretStr("sk-secret"))
    )
    assert "sk-secret" not in repr(open_model(settings))


def test_importing_the_room_imports_no_vendor() -> None:
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
