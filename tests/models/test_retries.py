"""Retries: which faults, after which pauses, how often; and the circuit breaker."""

from __future__ import annotations

import asyncio
import gc
from dataclasses import dataclass, field

import pytest

from suture.errors import ContextTooLong, MalformedReply, ModelError, ModelRateLimited, ReplyLost
from suture.models.providers.endpoints import Endpoint, EndpointLimits, call_with_retries, get_endpoint
from suture.models.providers.error_mapping import (
    ModelTarget,
    classify_provider_error,
    map_provider_error,
    read_retry_after_s,
)
from suture.models.providers.error_table import ERROR_TABLE, ProviderErrorKind
from suture.models.tuning import CIRCUIT_BREAKER_FAULTS, CIRCUIT_BREAKER_PAUSE_S, MAX_RETRY_PAUSE_S


def fault(*, passing: bool, retry_after_s: float | None = None) -> ModelError:
    made = ModelRateLimited("slow down", retry_after_s=retry_after_s)
    made.is_transient = passing
    return made


@dataclass
class Script:
    """The result of each try, and the recorded pauses."""

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

    async def run(self, *, retries: int = 2, patience_s: float = 600) -> str:
        return await call_with_retries(self.ask, retries=retries, timeout_s=patience_s, sleep=self.sleep)


async def test_a_transient_fault_is_retried_after_growing_pauses() -> None:
    script = Script([*[fault(passing=True)] * 4, "yes"])
    assert await script.run(retries=4) == "yes"
    bounds = [0.5, 1, 2, 4]
    assert all(0 <= pause <= bound for pause, bound in zip(script.pauses, bounds, strict=True))


async def test_pauses_are_drawn_and_bounded() -> None:
    script = Script([fault(passing=True)])
    with pytest.raises(ModelRateLimited):
        await script.run(retries=40, patience_s=1e9)
    assert max(script.pauses) <= MAX_RETRY_PAUSE_S
    assert len(set(script.pauses)) > 30


async def test_retry_after_takes_the_place_of_the_drawn_pause() -> None:
    script = Script([fault(passing=True, retry_after_s=17), "yes"])
    assert await script.run() == "yes"
    assert script.pauses == [17]


async def test_a_pause_beyond_the_time_limit_is_not_started() -> None:
    script = Script([fault(passing=True, retry_after_s=61)])
    with pytest.raises(ModelRateLimited) as caught:
        await script.run(patience_s=60)
    assert (caught.value.retry_after_s, script.tries, script.pauses) == (61, 1, [])


async def test_the_last_cause_is_raised_when_tries_run_out() -> None:
    last = fault(passing=True)
    script = Script([fault(passing=True), fault(passing=True), last])
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


class Vendor(Exception):
    def __init__(self, said: str, status: int, **headers: str) -> None:
        super().__init__(said)
        self.status_code = status
        self.response = type("Response", (), {"headers": headers})


def test_a_used_up_quota_is_no_matter_of_waiting() -> None:
    kind = classify_provider_error(Vendor("{'code': 'insufficient_quota'}", 429))
    assert (kind, ERROR_TABLE[kind].retry) == ("quota", False)
    error = map_provider_error(Vendor("{'code': 'insufficient_quota'}", 429), ModelTarget(name="openai:m"))
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
def test_retry_after_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert read_retry_after_s(Vendor("slow", 429, **headers), now_s=10) == seconds


class Steps:
    """A clock that advances during sleeps."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def now(self) -> float:
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        self.now_s += seconds


def gate(steps: Steps, **limits: float) -> Endpoint:
    return Endpoint("http://h", EndpointLimits(**limits), now=steps.now, sleep=steps.sleep)  # type: ignore[arg-type]  # floats stand for whole numbers here


async def test_calls_at_once_are_limited() -> None:
    endpoint = gate(Steps(), concurrency=2)
    inside = most = 0

    async def call() -> None:
        nonlocal inside, most
        async with endpoint.slot():
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(call() for _ in range(6)))
    assert most == 2


async def test_calls_a_minute_are_spaced() -> None:
    steps = Steps()
    endpoint = gate(steps, requests_per_minute=30)
    starts = []
    for _ in range(4):
        await endpoint.admit()
        starts.append(steps.now_s)
    assert starts == [0, 2, 4, 6]


async def test_a_cancelled_waiter_releases_its_turn() -> None:
    steps = Steps()
    endpoint = gate(steps, requests_per_minute=1)
    await endpoint.admit()
    asleep = asyncio.Event()
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        await asleep.wait()
        steps.now_s += seconds

    endpoint._sleep = sleep
    callers = [asyncio.create_task(endpoint.admit()) for _ in range(20)]
    await asyncio.sleep(0)
    for caller in callers:
        caller.cancel()
    await asyncio.gather(*callers, return_exceptions=True)
    asleep.set()
    await endpoint.admit()
    assert (waits[-1], steps.now_s) == (60, 60)


async def test_a_password_in_a_url_is_masked() -> None:
    address = "https://user:hunter2@proxy/v1"
    endpoint = Endpoint(address, EndpointLimits())
    fault = map_provider_error(RuntimeError(f"no answer from {address}"), ModelTarget(name="openai:m"))
    for _ in range(CIRCUIT_BREAKER_FAULTS):
        endpoint.record_failure(fault, counts=True)
    with pytest.raises(ModelError, match=r"https://\*\*\*@proxy/v1") as caught:
        await endpoint.admit()
    assert "hunter2" not in f"{fault}{caught.value}"


async def test_too_many_faults_in_a_row_open_the_circuit_until_one_try_works() -> None:
    steps = Steps()
    endpoint = gate(steps)
    for _ in range(CIRCUIT_BREAKER_FAULTS):
        await endpoint.admit()
        endpoint.record_failure(ModelError("boom"), counts=True)
    with pytest.raises(ModelError, match=r"paused for 30 s more after 6 consecutive faults; .* boom"):
        await endpoint.admit()
    await steps.sleep(CIRCUIT_BREAKER_PAUSE_S)
    await endpoint.admit()  # one may try
    with pytest.raises(ModelError, match="are paused"):
        await endpoint.admit()  # and the others wait for what comes of it
    endpoint.record_failure(ModelError("boom"), counts=True)
    with pytest.raises(ModelError, match="are paused"):
        await endpoint.admit()
    await steps.sleep(CIRCUIT_BREAKER_PAUSE_S)
    await endpoint.admit()
    endpoint.record_success()
    await endpoint.admit()
    await endpoint.admit()


async def test_a_refusal_shows_that_somebody_is_there() -> None:
    endpoint = gate(Steps())
    for number in range(3 * CIRCUIT_BREAKER_FAULTS):
        await endpoint.admit()
        endpoint.record_failure(ModelError("boom"), counts=number % 3 > 0)
    await endpoint.admit()


def test_models_at_one_address_share_an_endpoint() -> None:
    limits = EndpointLimits()
    first = get_endpoint("http://shared", limits)
    assert get_endpoint("http://shared", limits) is first
    assert get_endpoint("http://other", limits) is not first
    first.record_failure(ModelError("boom"), counts=True)
    del first
    gc.collect()
    assert get_endpoint("http://shared", limits)._faults == 0
