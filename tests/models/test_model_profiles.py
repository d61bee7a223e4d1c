"""What Suture knows about a model from its name, LangChain's profiles and the settings."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from suture.core.settings import ModelSettings, ProfileSettings, Settings
from suture.models import ModelProfile, find_profile, open_model
from suture.models.profiles.model_profile import SMALL_ANSWER_TOKENS, UNKNOWN_ANSWER_TOKENS

DEFAULTS = Settings()


def profile_with(name: str, **values: Any) -> ModelProfile:
    return find_profile(name, Settings(model=ModelSettings(profile=ProfileSettings(**values))))


@pytest.mark.parametrize(
    ("name", "is_capable"),
    [
        ("openai:gpt-5", True),
        ("anthropic:claude-sonnet-4-5", True),
        ("openai:a-name-that-nobody-knows", True),
        ("openai:Qwen/Qwen2.5-Coder-7B-Instruct", False),
        ("openai:Qwen/Qwen2.5-Coder-32B-Instruct", True),
        ("ollama:qwen3-coder:30b-a3b", True),
        ("ollama:llama3.1:8b", False),
        ("ollama:llama3.1:70b", True),
        ("ollama:mixtral:8x7b", True),
        ("ollama:gemma3", False),
        ("ollama:gpt-oss:20b", True),
        ("ollama:kimi-k2", True),
        ("openai:mistral-large", True),
        ("huggingface:microsoft/phi-4", False),
        ("local:qwen2.5-coder-1.5b", False),
        ("scripted:example", False),
    ],
)
def test_the_size_or_family_in_a_name_decides_whether_a_model_is_capable(name: str, is_capable: bool) -> None:
    assert find_profile(name, DEFAULTS).is_capable is is_capable
    assert profile_with(name, capable=not is_capable).is_capable is not is_capable


@pytest.mark.parametrize(
    ("name", "reasoning"),
    [
        ("ollama:qwq:32b", True),
        ("ollama:deepseek-r1:14b", True),
        ("openai:DeepSeek-R1-Distill-Qwen-32B", True),
        ("ollama:qwen3:8b", True),
        ("ollama:qwen3-coder:30b", False),
        ("openai:Qwen/Qwen3-235B-A22B-Instruct-2507", False),
        ("ollama:llama3.3:70b", False),
        ("openai:gpt-5", True),
        ("openai:gpt-4o", False),
    ],
)
def test_models_that_think_have_room_for_it_besides_the_answer(name: str, reasoning: bool) -> None:
    profile = find_profile(name, DEFAULTS)
    assert profile.reasoning is reasoning
    assert (profile.reply_tokens(1_000) > 1_000) is reasoning


def test_the_room_for_thinking_follows_the_effort_and_the_longest_reply() -> None:
    assert profile_with("openai:gpt-5", reasoning_effort="low").reply_tokens(1_000) == 5_096
    assert profile_with("openai:gpt-5", reasoning_effort="none").reply_tokens(1_000) == 1_000
    assert profile_with("openai:gpt-5", thinking_tokens=500).reply_tokens(1_000) == 1_500
    assert profile_with("openai:gpt-5", max_output_tokens=6_000).reply_tokens(1_000) == 6_000


def test_prompt_and_reply_of_a_thinking_model_share_its_context() -> None:
    profile = profile_with("ollama:qwen3:8b", context_tokens=8_192)
    assert profile.reply_tokens(profile.answer_tokens) == 4_096


@pytest.mark.parametrize(
    ("name", "answer_tokens"),
    [
        ("local:qwen2.5-coder-1.5b", SMALL_ANSWER_TOKENS),
        ("openai:gpt-5", 16_384),
        ("anthropic:claude-3-5-haiku-latest", 8_192),
        ("openai:unknown", UNKNOWN_ANSWER_TOKENS),
        ("ollama:llama3.3:70b", 2_048),
    ],
)
def test_the_default_length_of_an_answer_follows_from_the_profile(name: str, answer_tokens: int) -> None:
    assert find_profile(name, DEFAULTS).answer_tokens == answer_tokens


def test_langchains_profiles_give_limits_and_refused_parameters() -> None:
    profile = find_profile("openai:gpt-5", DEFAULTS)
    assert (profile.context_tokens, profile.max_output_tokens) == (272_000, 128_000)
    assert "temperature" in profile.rejected_parameters
    assert not profile.stop
    assert profile.origins["context_tokens"] == "langchain"


@pytest.mark.parametrize(
    "name",
    [
        "anthropic:claude-sonnet-4-5-20250929",
        "openai:claude-sonnet-4-5",
        "openrouter:anthropic/claude-sonnet-4.5",
        "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    ],
)
def test_a_model_is_known_under_the_names_that_other_providers_give_it(name: str) -> None:
    pytest.importorskip("langchain_anthropic")
    profile = find_profile(name, DEFAULTS)
    assert (profile.context_tokens, profile.max_output_tokens) == (200_000, 64_000)


@pytest.mark.parametrize(
    ("name", "prefill"),
    [
        ("local:qwen2.5-coder-0.5b", True),
        ("ollama:llama3", True),
        ("openai:gpt-4o", False),
        ("qwen:qwen-max", False),
        ("scripted:x", False),
        ("anthropic:claude-3-5-haiku-latest", True),
        ("anthropic:claude-sonnet-4-5", True),
        ("anthropic:claude-opus-4-20250514", True),
        ("anthropic:claude-opus-4-6", False),
        ("anthropic:claude-opus-4-10", False),
        ("anthropic:claude-opus-5", False),
    ],
)
def test_prefill_follows_from_the_name_unless_it_is_set(name: str, prefill: bool) -> None:
    assert find_profile(name, DEFAULTS).prefill is prefill
    assert profile_with(name, prefill=not prefill).prefill is not prefill


@pytest.mark.parametrize(
    ("name", "tools"),
    [
        ("anthropic:claude-opus-5", True),
        ("openai:gpt-5", True),
        ("openai:anything", True),
        ("qwen:qwen-max", True),
        ("deepseek:deepseek-chat", True),
        ("google:gemini-2.5-pro", True),
        ("ollama:llama3.3:70b", True),
        ("ollama:gemma3:27b", False),
        ("ollama:llama3.1:8b", False),
        ("local:qwen2.5-coder-1.5b", False),
        ("scripted:x", False),
        ("plugin:x", False),
    ],
)
def test_native_tools_follow_from_the_name_unless_they_are_set(name: str, tools: bool) -> None:
    own_server = Settings(model=ModelSettings(name=name, base_url="http://127.0.0.1:8000/v1"))
    assert find_profile(name, own_server).tools is tools
    assert profile_with(name, tools=not tools).tools is not tools


def test_a_profile_in_the_settings_describes_the_model_they_name_and_no_other() -> None:
    profile = ProfileSettings(context_tokens=4_096)
    settings = Settings(model=ModelSettings(name="openai:mine", profile=profile))
    assert find_profile("openai:mine", settings).context_tokens == 4_096
    assert find_profile("anthropic:claude-3-5-haiku-latest", settings).context_tokens == 200_000


def test_a_langchain_model_that_is_passed_in_has_the_profile_of_its_model() -> None:
    chat = open_model(DEFAULTS, ChatOpenAI(model="gpt-4o", api_key=SecretStr("none")))
    assert find_profile(chat.name, DEFAULTS).context_tokens == 128_000

    fake = open_model(DEFAULTS, FakeListChatModel(responses=["hi"]))
    assert not find_profile(fake.name, DEFAULTS).is_capable


def test_profiles_are_found_without_importing_a_vendors_package() -> None:
    program = (
        "import sys; from suture.core.settings import Settings\n"
        "from suture.models import find_profile\n"
        "assert find_profile('openai:gpt-5', Settings()).max_output_tokens == 128_000\n"
        "assert not {'openai', 'anthropic', 'langchain_openai', 'langchain_core'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_named_profile_describes_one_model_and_no_other() -> None:
    model = ModelSettings.model_validate(
        {"name": "openai:main", "profiles": {"openai:other": {"tools": False, "context_tokens": 16_384}}}
    )
    settings = Settings(model=model)
    other, main = find_profile("openai:other", settings), find_profile("openai:main", settings)
    assert (other.tools, other.context_tokens, other.origins["tools"]) == (False, 16_384, "setting")
    assert main.tools
    assert main.context_tokens is None
