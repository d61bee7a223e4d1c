"""Fixtures for model tests: the real small model, and a stub of an OpenAI server."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from models.openai_stub import OpenAIStub
from suture.core.settings.schema import ModelSettings, Settings
from suture.errors import SutureError
from suture.models import pull_model
from suture.models.llama_server.shared_servers import stop_shared_servers
from suture.models.providers.error_table import forget_refusals

SMALL_MODEL = "qwen2.5-coder-0.5b"


@pytest.fixture(scope="session")
def local_settings(require: Callable[[str, bool, str], None]) -> Settings:
    """Settings of the real 0.5B model, which is downloaded if missing; all tests share its server."""
    # Beside other tests, the threads of a server wait for each other in busy loops: with two of them, the tests of
    # `test_local_model.py` took 100 s of CPU time instead of 50.
    threads = int(os.environ.get("SUTURE_MODEL_THREADS", "1"))
    model = ModelSettings(name=f"local:{SMALL_MODEL}", context_tokens=1024, threads=threads)
    settings = Settings(model=model)
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    try:
        pull_model(SMALL_MODEL, settings.paths.cache)
    except SutureError as fault:
        require("local-model", False, str(fault))
    return settings


@pytest.fixture(autouse=True)
def no_refusals() -> None:
    """Forget what other tests have learnt about servers at the same address."""
    forget_refusals()


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIStub]:
    """A running server with prepared answers."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with OpenAIStub() as server:
        yield server


@pytest.fixture(scope="module", autouse=True)
def no_other_servers() -> None:
    """End the servers that other tests have left in this process."""
    stop_shared_servers()
