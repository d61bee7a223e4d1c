"""Retries: which faults, after which pauses, how often."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from suture.errors import ContextTooLong, MalformedReply, ModelError, ModelRateLimited, ReplyLost
from suture.models.providers.endpoints import Endpoint, EndpointLimits, call_with_retries, get_endpoint
from suture.models.providers.error_classification import classify_provider_error
from suture.models.providers.error_mapping import ModelTarget, map_provider_error, read_retry_after_s
from suture.models.providers.error_table import ERROR_TABLE, ProviderErrorKind
from suture.models.tuning import MAX_RETRY_PAUSE_S


def make_fault(*, is_transient: bool, retry_after_s: float | None = None) -> ModelError:
    """Return an error that is or is not worth a retry."""
    fault = ModelRateLimited("slow down", retry_after_s=retry_after_s)
    fault.is_transient = is_transient
    return fault


@dataclass
class ScriptedCall:
    """A call with a prepared outcome of each try; it records the pauses between tries."""

    outcomes: list[ModelError | str]
    tries: int = 0
    pauses: list[float] = field(default_factory=list)

    async def ask(self) -> str:
        outcome = self.outcomes[min(self.tries, len(self.outcomes) - 1)]
        self.tries += 1
        if isinstance(outcome, str):
            return outcome
        raise outcome

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    async def run(self, *, retries: int = 2, timeout_s: float = 600) -> str:
        return await call_with_retries(self.ask, retries=retries, timeout_s=timeout_s, sleep=self.sleep)


async def test_a_transient_fault_is_retried_after_growing_pauses() -> None:
    script = ScriptedCall([*[make_fault(is_transient=True)] * 4, "yes"])
    assert await script.run(retries=4) == "yes"
    bounds = [0.5, 1, 2, 4]
    assert all(0 <= pause <= bound for pause, bound in zip(script.pauses, bounds, strict=True))


async def test_pauses_are_random_and_bounded() -> None:
    script = ScriptedCall([make_fault(is_transient=True)])
    with pytest.raises(ModelRateLimited):
        await script.run(retries=40, timeout_s=1e9)
    assert max(script.pauses) <= MAX_RETRY_PAUSE_S
    assert len(set(script.pauses)) > 30


async def test_retry_after_replaces_the_random_pause() -> None:
    script = ScriptedCall([make_fault(is_transient=True, retry_after_s=17), "yes"])
    assert await script.run() == "yes"
    assert script.pauses == [17]


async def test_a_pause_beyond_the_time_limit_is_not_started() -> None:
    script = ScriptedCall([make_fault(is_transient=True, retry_after_s=61)])
    with pytest.raises(ModelRateLimited) as caught:
        await script.run(timeout_s=60)
    assert (caught.value.retry_after_s, script.tries, script.pauses) == (61, 1, [])


async def test_the_last_cause_is_raised_when_tries_run_out() -> None:
    last = make_fault(is_transient=True)
    script = ScriptedCall([make_fault(is_transient=True), make_fault(is_transient=True), last])
    with pytest.raises(ModelRateLimited) as caught:
        await script.run(retries=2)
    assert caught.value is last
    assert script.tries == 3


@pytest.mark.parametrize("kind", ERROR_TABLE)
def test_no_error_rule_retries_a_call_that_may_be_charged(kind: ProviderErrorKind) -> None:
    row = ERROR_TABLE[kind]
    if issubclass(row.error, ReplyLost | MalformedReply | ContextTooLong):
        assert not row.retry
    assert row.sentence
    assert not row.retry or row.error is not MalformedReply


class VendorError(Exception):
    """An exception like those that a vendor's SDK raises."""

    def __init__(self, message: str, status: int, **headers: str) -> None:
        super().__init__(message)
        self.status_code = status
        self.response = type("Response", (), {"headers": headers})


def test_an_exhausted_quota_is_not_retried() -> None:
    kind = classify_provider_error(VendorError("{'code': 'insufficient_quota'}", 429))
    assert (kind, ERROR_TABLE[kind].retry) == ("quota", False)

    error = map_provider_error(
        VendorError("{'code': 'insufficient_quota'}", 429), ModelTarget(name="openai:m")
    )
    assert "has no quota left" in str(error)
    assert not error.is_transient


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7.5"}, 7.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}, 50),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:01 GMT"}, 0),
        ({"retry-after": "-3"}, 0),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_every_form_of_retry_after_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert read_retry_after_s(VendorError("slow", 429, **headers), now_s=10) == seconds


class FakeClock:
    """A clock that advances during sleeps."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def now(self) -> float:
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        self.now_s += seconds


def make_endpoint(clock: FakeClock, **limits: float) -> Endpoint:
    """Return an endpoint that uses a fake clock."""
    return Endpoint(EndpointLimits(**limits), now=clock.now, sleep=clock.sleep)  # type: ignore[arg-type]  # integers are passed as floats


async def test_concurrent_calls_are_limited() -> None:
    endpoint = make_endpoint(FakeClock(), concurrency=2)
    running = max_running = 0

    async def call() -> None:
        nonlocal running, max_running
        async with endpoint.slot():
            running += 1
            max_running = max(max_running, running)
            await asyncio.sleep(0)
            running -= 1

    await asyncio.gather(*(call() for _ in range(6)))

    assert max_running == 2


async def test_calls_per_minute_are_spaced() -> None:
    clock = FakeClock()
    endpoint = make_endpoint(clock, requests_per_minute=30)
    starts = []
    for _ in range(4):
        await endpoint.admit()
        starts.append(clock.now_s)

    assert starts == [0, 2, 4, 6]


async def test_a_cancelled_waiter_releases_its_turn() -> None:
    clock = FakeClock()
    endpoint = make_endpoint(clock, requests_per_minute=1)
    await endpoint.admit()
    may_wake = asyncio.Event()
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        await may_wake.wait()
        clock.now_s += seconds

    endpoint._sleep = sleep
    callers = [asyncio.create_task(endpoint.admit()) for _ in range(20)]
    await asyncio.sleep(0)
    for caller in callers:
        caller.cancel()
    await asyncio.gather(*callers, return_exceptions=True)
    may_wake.set()

    await endpoint.admit()

    assert (waits[-1], clock.now_s) == (60, 60)


def test_a_password_in_a_url_is_masked() -> None:
    cause = RuntimeError("no answer from https://user:hunter2@proxy/v1")
    fault = map_provider_error(cause, ModelTarget(name="openai:m"))
    assert "https://***@proxy/v1" in str(fault)
    assert "hunter2" not in str(fault)


def test_models_at_one_address_share_an_endpoint() -> None:
    limits = EndpointLimits()
    first = get_endpoint("http://shared", limits)
    assert get_endpoint("http://shared", limits) is first
    assert get_endpoint("http://other", limits) is not first
