"""Roles whose models are served at addresses of their own, with keys of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from models.openai_stub import OpenAIStub
from suture.core.settings import ModelSettings, Settings
from suture.core.settings.schema import KeySettings, RoleSettings
from suture.core.settings.setting_changes import encode_settings, restore_settings
from suture.errors import UsageError
from suture.models import Message, Role, Sampling, open_role_models

PROMPT = (Message(role="user", content="hi"),)


@pytest.fixture
def two_stubs() -> Iterator[tuple[OpenAIStub, OpenAIStub]]:
    with OpenAIStub() as first, OpenAIStub() as second:
        yield first, second


def make_settings(first: OpenAIStub, **roles: object) -> Settings:
    return Settings(
        model=ModelSettings(name="openai:common", base_url=first.base_url),
        models=RoleSettings.model_validate(roles),
        keys=KeySettings(openai=SecretStr("common-key")),
    )


async def ask_roles(settings: Settings, *roles: Role) -> None:
    models = open_role_models(settings, in_use=roles)
    for role in roles:
        await models.for_role(role).model.complete(PROMPT, Sampling())
    await models.close()


async def test_two_servers_of_one_protocol_serve_two_roles(two_stubs: tuple[OpenAIStub, OpenAIStub]) -> None:
    first, second = two_stubs
    settings = make_settings(
        first, coder="openai:coder", coder_base_url=second.base_url, coder_key=SecretStr("coder-key")
    )
    await ask_roles(settings, "critic", "coder", "optimiser")

    assert [(request["model"], key) for request, key in zip(first.requests, first.keys, strict=True)] == [
        ("common", "Bearer common-key")
    ]
    assert [(request["model"], key) for request, key in zip(second.requests, second.keys, strict=True)] == [
        ("coder", "Bearer coder-key"),
        ("coder", "Bearer coder-key"),  # the optimiser uses the coder's settings
    ]


async def test_a_role_may_use_the_common_model_at_another_server(
    two_stubs: tuple[OpenAIStub, OpenAIStub],
) -> None:
    first, second = two_stubs
    await ask_roles(make_settings(first, tester_base_url=second.base_url), "coder", "tester")
    assert [request["model"] for request in (*first.requests, *second.requests)] == ["common", "common"]
    assert second.keys == ["Bearer common-key"]


async def test_a_role_with_a_model_of_its_own_ignores_the_server_of_its_default_role(
    two_stubs: tuple[OpenAIStub, OpenAIStub],
) -> None:
    first, second = two_stubs
    settings = make_settings(first, coder_base_url=second.base_url, optimiser="openai:optimiser")
    await ask_roles(settings, "optimiser")
    assert (len(first.requests), len(second.requests)) == (1, 0)


def test_published_prices_do_not_apply_at_a_roles_own_server(
    two_stubs: tuple[OpenAIStub, OpenAIStub],
) -> None:
    settings = Settings(
        model=ModelSettings(name="openai:gpt-4o"),
        models=RoleSettings(critic="openai:gpt-4.1", critic_base_url=two_stubs[1].base_url),
        keys=KeySettings(openai=SecretStr("k")),
    )
    models = open_role_models(settings, in_use=("coder", "critic"))
    assert models.unpriced_models == ("openai:gpt-4.1",)


def test_a_key_for_a_provider_that_takes_none_is_an_error(two_stubs: tuple[OpenAIStub, OpenAIStub]) -> None:
    settings = make_settings(two_stubs[0], coder="scripted:example", coder_key=SecretStr("k"))
    with pytest.raises(UsageError, match="takes no key"):
        open_role_models(settings)


def test_a_run_records_no_key_and_a_strangers_record_chooses_no_address() -> None:
    settings = Settings(
        models=RoleSettings(critic_base_url="http://user:pw@there:1/v1", critic_key=SecretStr("hidden-key"))
    )
    recorded = encode_settings(settings)
    assert "hidden-key" not in repr(recorded)
    assert "pw" not in repr(recorded)
    assert restore_settings(recorded, settings).models == settings.models
    assert restore_settings(recorded, Settings(), is_own=False).models.critic_base_url is None
