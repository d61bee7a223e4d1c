"""How many threads the embedded model uses, and how that is measured and stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from suture.core.settings.schema import Settings
from suture.models.llama_server.thread_calibration import (
    TokenSpeed,
    calibrate_threads,
    choose_threads,
    list_calibrations,
    measure_speed,
    measure_speeds,
    read_calibration,
    read_threads,
)
from suture.models.weights.weights_cache import model_path

pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
MODEL = Path("weights.gguf")


class FakeMachine:
    """Returns prepared speeds and records which numbers of threads were measured."""

    def __init__(self, rates: dict[int, float]) -> None:
        self.rates = rates
        self.tried: list[int] = []

    def __call__(self, model_path: Path, threads: int) -> TokenSpeed:
        self.tried.append(threads)
        rate = self.rates[threads]
        return TokenSpeed(threads=threads, reply_tokens_per_s=rate, prompt_tokens_per_s=rate)


@pytest.mark.parametrize(
    ("rates", "best"),
    [
        ({1: 8.0, 2: 2.0}, 1),
        ({1: 8.0, 2: 15.0, 4: 28.0}, 4),
        ({1: 8.0, 2: 8.5}, 1),
        ({1: 8.0, 2: 15.0, 4: 15.5}, 2),
        ({1: 8.0}, 1),
    ],
    ids=["slower", "faster", "not worth it", "levels off", "one core"],
)
def test_threads_are_added_only_if_they_pay_off(rates: dict[int, float], best: int) -> None:
    assert choose_threads(rates) == best


@pytest.mark.parametrize(
    ("rates", "cores", "tried"),
    [
        ({1: 8, 2: 2, 4: 1}, 4, [1, 2]),
        ({1: 1, 2: 2, 4: 3, 6: 4}, 6, [1, 2, 4, 6]),
        ({1: 1, 2: 2, 4: 3}, 4, [1, 2, 4]),
        ({1: 1}, 1, [1]),
    ],
)
def test_thread_counts_are_tried_until_the_speed_drops(
    rates: dict[int, float], cores: int, tried: list[int]
) -> None:
    machine = FakeMachine(rates)
    measure_speeds(MODEL, cores, machine)
    assert machine.tried == tried


def test_the_calibration_is_stored(tmp_path: Path) -> None:
    machine = FakeMachine(dict.fromkeys(range(1, 1025), 5.0))
    assert read_calibration(MODEL, tmp_path) is None

    calibration = calibrate_threads(MODEL, tmp_path, measure=machine)
    measurement_count = len(machine.tried)

    assert (
        calibrate_threads(MODEL, tmp_path, measure=machine)
        == calibration
        == read_calibration(MODEL, tmp_path)
    )

    other_calibration = calibrate_threads(Path("other.gguf"), tmp_path, measure=machine)
    assert list_calibrations(tmp_path) == (calibration, other_calibration)
    assert len(machine.tried) == 2 * measurement_count


def test_a_calibration_under_load_is_repeated(tmp_path: Path) -> None:
    busy_machine, idle_machine = FakeMachine({1: 8.0, 2: 2.0}), FakeMachine({1: 8.0, 2: 15.0, 4: 15.0})
    assert calibrate_threads(MODEL, tmp_path, measure=busy_machine, load=3.0).threads == 1
    assert calibrate_threads(MODEL, tmp_path, measure=idle_machine, load=2.0).threads == 1
    assert idle_machine.tried == []

    calibration = calibrate_threads(MODEL, tmp_path, measure=idle_machine, load=0.2)
    assert calibration.load == 0.2
    assert idle_machine.tried != []
    assert calibrate_threads(MODEL, tmp_path, measure=busy_machine, load=0.0) == calibration


def test_a_damaged_calibration_is_measured_again(tmp_path: Path) -> None:
    (tmp_path / "calibration.json").write_text('[{"cpu": 1}]')
    calibration = calibrate_threads(MODEL, tmp_path, measure=FakeMachine(dict.fromkeys(range(1, 1025), 5.0)))
    assert list_calibrations(tmp_path) == (calibration,)


@pytest.mark.live
@pytest.mark.timeout(600)
def test_the_real_model_is_timed(local_settings: Settings) -> None:
    name = local_settings.model.name.removeprefix("local:")
    speed = measure_speed(model_path(name, local_settings.paths.cache), 1)
    assert speed.threads == 1
    assert speed.reply_tokens_per_s > 0
    assert speed.prompt_tokens_per_s > 0


def test_a_run_takes_the_measured_threads_or_half_of_the_cores_and_measures_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("suture.models.llama_server.thread_calibration.usable_cores", lambda: 4)
    assert read_threads(MODEL, tmp_path) == (2, 4)
    assert list_calibrations(tmp_path) == ()

    calibrate_threads(MODEL, tmp_path, measure=FakeMachine({1: 8.0, 2: 15.0, 4: 28.0}))
    assert read_threads(MODEL, tmp_path) == (4, 4)
