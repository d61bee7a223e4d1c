"""Which models `auto` detects, and which model each role uses."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import Any, get_args

import pytest
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from pydantic import SecretStr

from models.openai_stub import OpenAIStub
from models.raw_server import RawServer
from suture.core.settings.schema import KeySettings, ModelSettings, PathSettings, RoleSettings, Settings
from suture.errors import PrerequisiteError, UsageError
from suture.models import (
    Model,
    Role,
    RoleModels,
    choose_model,
    detect_models,
    list_catalogue_models,
    open_role_models,
)
from suture.models.weights.weights_cache import write_stamp
from suture.testing import ScriptedModel

NOWHERE = "http://127.0.0.1:9"


def make_settings(cache: Path, **knobs: object) -> Settings:
    """Return settings with a cache of their own."""
    return Settings(model=ModelSettings.model_validate(knobs), paths=PathSettings(cache=cache))


def write_weights(cache: Path, name: str) -> None:
    """Write an empty file of the right size that is marked as verified weights."""
    entry = next(cached.entry for cached in list_catalogue_models(cache) if cached.entry.name == name)
    path = cache / "models" / entry.filename
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(entry.size_bytes)
    write_stamp(path, entry.sha256)


def test_a_named_model_is_used_without_detection(tmp_path: Path) -> None:
    assert choose_model(make_settings(tmp_path, name="openai:m")) == ("openai:m", "as set")


def test_downloaded_embedded_models_are_preferred(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    write_weights(tmp_path, "qwen2.5-coder-0.5b")
    assert choose_model(make_settings(tmp_path, base_url=NOWHERE))[0] == "local:qwen2.5-coder-0.5b"
    write_weights(tmp_path, "qwen2.5-coder-1.5b")
    assert choose_model(make_settings(tmp_path, base_url=NOWHERE))[0] == "local:qwen2.5-coder-1.5b"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["llama3:8b", "qwen2.5-coder:7b"], "ollama:qwen2.5-coder:7b"),
        (["llama3:8b"], "ollama:llama3:8b"),
        ([], "local:qwen2.5-coder-1.5b"),
    ],
)
def test_an_answering_ollama_is_selected_next(
    tmp_path: Path, stub: OpenAIStub, monkeypatch: pytest.MonkeyPatch, names: list[str], expected: str
) -> None:
    # The machine may be busy.
    monkeypatch.setattr("suture.models.providers.endpoints.OLLAMA_TIMEOUT_S", 60)
    stub.pages["/api/tags"] = {"models": [{"name": name} for name in names]}
    assert choose_model(make_settings(tmp_path, base_url=stub.address))[0] == expected


@pytest.mark.parametrize("page", [None, [], {"models": [{}]}, {"models": 3}])
def test_a_foreign_server_is_not_taken_for_ollama(tmp_path: Path, stub: OpenAIStub, page: object) -> None:
    stub.pages["/api/tags"] = page
    *_, ollama = detect_models(make_settings(tmp_path, base_url=stub.address))
    assert (ollama.label, ollama.model) == ("ollama", "")


def test_the_password_of_a_url_is_masked(tmp_path: Path) -> None:
    pytest.importorskip("langchain_ollama", reason="the extra `ollama` is not installed")
    *_, ollama = detect_models(make_settings(tmp_path, base_url="http://user:hunter2@127.0.0.1:9"))
    assert ollama.detail == "no server answers at http://***@127.0.0.1:9"


def test_a_key_does_not_select_its_provider(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, base_url=NOWHERE).model_copy(
        update={"keys": KeySettings(openai=SecretStr("k"), anthropic=SecretStr("k"))}
    )
    name, reason = choose_model(settings)
    assert (name, reason) == (
        "local:qwen2.5-coder-1.5b",
        "the default, not fetched yet: `suture models pull`",
    )


def role_settings(model: dict[str, object] | None = None, **roles: object) -> Settings:
    """Return settings with a common model and settings of some roles."""
    return Settings(
        model=ModelSettings.model_validate({"name": "ollama:common", **(model or {})}),
        models=RoleSettings.model_validate(roles),
        keys=KeySettings(openai=SecretStr("k")),
    )


def open_used_roles(settings: Settings, given: BaseChatModel | Model | None = None) -> RoleModels:
    """Open the models of all roles except `escalate`."""
    return open_role_models(settings, given, in_use=[role for role in get_args(Role) if role != "escalate"])


def test_an_unused_role_needs_no_key_and_no_price() -> None:
    settings = role_settings(critic="openai:new", planner="qwen:qwen-plus")
    models = open_role_models(settings)
    assert models.unpriced_models == ()
    models.require_prices()
    assert open_role_models(role_settings(coder="openai:new")).unpriced_models == ("openai:new",)


@pytest.mark.parametrize("part", ["head", "body", "nothing"])
def test_a_slow_ollama_answer_is_abandoned(tmp_path: Path, part: str) -> None:
    pytest.importorskip("langchain_ollama", reason="the extra `ollama` is not installed")
    disconnected = threading.Event()

    def send_slowly(peer: socket.socket) -> None:
        peer.sendall(b"HTTP/1.1 200 OK\r\n" + (b"\r\n" if part == "body" else b""))
        try:
            while not server.closing.wait(0.05):
                peer.sendall(b" " if part == "body" else b"X: y\r\n" if part == "head" else b"")
                if part == "nothing" and not peer.recv(1):
                    break
        except OSError:
            pass
        disconnected.set()

    with RawServer(send_slowly) as server:
        *_, ollama = detect_models(make_settings(tmp_path, base_url=server.address))
        assert ollama.detail.startswith("no server answers")
        assert disconnected.wait(60)  # the client disconnects, although the server would send for ever


def test_a_role_without_its_own_model_uses_the_common_one() -> None:
    models = open_used_roles(
        role_settings(critic="openai:gpt-4o", critic_temperature=0.1, coder_max_tokens=64)
    )
    assert models.for_role("coder").model.name == "ollama:common"
    assert models.for_role("planner").model is models.for_role("coder").model

    critic = models.for_role("critic")
    assert (critic.model.name, critic.temperature, critic.max_tokens) == ("openai:gpt-4o", 0.1, 16_384)
    assert (models.for_role("coder").temperature, models.for_role("coder").max_tokens) == (0.8, 64)


def test_a_temperature_of_zero_is_kept() -> None:
    assert open_used_roles(role_settings(coder_temperature=0)).for_role("coder").temperature == 0


def test_escalation_uses_the_settings_of_the_coder() -> None:
    models = open_used_roles(role_settings(coder="openai:small", escalate="openai:big", coder_max_tokens=77))
    escalated = models.for_role("escalate")
    assert (escalated.model.name, escalated.max_tokens) == ("openai:big", 77)
    assert models.escalation is escalated
    assert models.unpriced_models == ("openai:small", "openai:big")


def test_escalation_needs_a_configured_model() -> None:
    assert open_used_roles(role_settings(coder="openai:small", escalate_temperature=0.1)).escalation is None


@pytest.mark.parametrize("role", get_args(Role))
def test_every_role_can_have_its_own_model_and_sampling(role: Role) -> None:
    role_values: dict[str, Any] = {role: "openai:own", f"{role}_temperature": 0.25, f"{role}_max_tokens": 77}
    role_model = open_used_roles(role_settings(**role_values)).for_role(role)
    assert (role_model.model.name, role_model.temperature, role_model.max_tokens) == ("openai:own", 0.25, 77)


@pytest.mark.parametrize(("role", "other"), [("optimiser", "coder"), ("escalate", "coder")])
def test_some_roles_inherit_the_settings_of_another_role(role: Role, other: Role) -> None:
    other_values: dict[str, Any] = {
        other: "openai:other",
        f"{other}_temperature": 0.25,
        f"{other}_max_tokens": 77,
    }
    own_values: dict[str, Any] = {"escalate": "openai:big"} if role == "escalate" else {}
    role_model = open_used_roles(role_settings(**other_values, **own_values)).for_role(role)
    expected = own_values.get(role, "openai:other")

    assert (role_model.model.name, role_model.temperature, role_model.max_tokens) == (expected, 0.25, 77)


def test_every_role_has_the_fallbacks_once() -> None:
    models = open_used_roles(
        role_settings({"fallbacks": ("openai:spare", "ollama:common")}, critic="openai:spare")
    )
    assert [model.name for model in models.for_role("coder").chain] == ["ollama:common", "openai:spare"]
    assert [model.name for model in models.for_role("critic").chain] == ["openai:spare", "ollama:common"]
    assert models.for_role("critic").chain[0] is models.for_role("coder").chain[1]


def test_there_is_no_fallback_by_default() -> None:
    assert len(open_used_roles(role_settings()).for_role("coder").chain) == 1


def test_base_url_applies_only_to_its_provider() -> None:
    settings = role_settings({"name": "openai:own", "base_url": NOWHERE}, critic="qwen:qwen-plus")
    with pytest.raises(PrerequisiteError, match="QWEN_API_KEY"):
        open_used_roles(settings)  # the address of one provider does not replace the key of another


def test_a_given_model_does_not_inherit_the_address_of_another_provider() -> None:
    settings = Settings(model=ModelSettings(name="local:x", base_url=NOWHERE))  # the project may have set it
    with pytest.raises(PrerequisiteError, match="OPENAI_API_KEY"):
        open_role_models(settings, "openai:m")
    settings_with_provider = Settings(model=ModelSettings(name="openai:x", base_url=NOWHERE))
    assert open_role_models(settings_with_provider, "openai:m").for_role("coder").model.name == "openai:m"


def test_a_missing_model_of_a_role_is_reported_at_once() -> None:
    with pytest.raises(UsageError, match="'critical' is not of the form"):
        open_used_roles(role_settings(critic="critical"))


async def test_only_opened_models_are_closed() -> None:
    given = ScriptedModel(["one"])
    models = open_used_roles(role_settings(), given)
    assert models.for_role("coder").model is given

    await models.close()
    assert (
        open_used_roles(role_settings(), FakeListChatModel(responses=["a"]))
        .for_role("coder")
        .model.name.endswith("FakeListChatModel")
    )


def test_models_of_unknown_price_are_listed_once() -> None:
    models = open_used_roles(
        role_settings({"fallbacks": ("openai:new", "openai:gpt-4o")}, critic="openai:new")
    )
    assert models.unpriced_models == ("openai:new",)


def test_wrapping_wraps_each_model_once() -> None:
    models = open_used_roles(role_settings(critic="openai:gpt-4o"))
    wrapped = models.with_wrapped_models(lambda model: ScriptedModel(["x"], name=f"in:{model.name}"))
    assert wrapped.for_role("coder").model is wrapped.for_role("planner").model
    assert wrapped.for_role("critic").model.name == "in:openai:gpt-4o"
