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
)
from suture.models.weights.weights_cache import model_path

pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
MODEL = Path("weights.gguf")


class Machine:
    """A fake measurement."""

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
def test_the_fastest_count_that_is_worth_its_threads(rates: dict[int, float], best: int) -> None:
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
def test_which_counts_are_tried(rates: dict[int, float], cores: int, tried: list[int]) -> None:
    machine = Machine(rates)
    measure_speeds(MODEL, cores, machine)
    assert machine.tried == tried


def test_the_calibration_is_stored(tmp_path: Path) -> None:
    machine = Machine(dict.fromkeys(range(1, 1025), 5.0))
    assert read_calibration(MODEL, tmp_path) is None
    found = calibrate_threads(MODEL, tmp_path, measure=machine)
    tried = len(machine.tried)
    assert calibrate_threads(MODEL, tmp_path, measure=machine) == found == read_calibration(MODEL, tmp_path)
    other = calibrate_threads(Path("other.gguf"), tmp_path, measure=machine)
    assert list_calibrations(tmp_path) == (found, other)
    assert len(machine.tried) == 2 * tried


def test_a_calibration_under_load_is_repeated(tmp_path: Path) -> None:
    loaded, idle = Machine({1: 8.0, 2: 2.0}), Machine({1: 8.0, 2: 15.0, 4: 15.0})
    assert calibrate_threads(MODEL, tmp_path, measure=loaded, load=3.0).threads == 1
    assert calibrate_threads(MODEL, tmp_path, measure=idle, load=2.0).threads == 1
    assert idle.tried == []
    found = calibrate_threads(MODEL, tmp_path, measure=idle, load=0.2)
    assert found.load == 0.2
    assert idle.tried != []
    assert calibrate_threads(MODEL, tmp_path, measure=loaded, load=0.0) == found


def test_a_damaged_calibration_is_measured_again(tmp_path: Path) -> None:
    (tmp_path / "calibration.json").write_text('[{"cpu": 1}]')
    found = calibrate_threads(MODEL, tmp_path, measure=Machine(dict.fromkeys(range(1, 1025), 5.0)))
    assert list_calibrations(tmp_path) == (found,)


@pytest.mark.live
@pytest.mark.timeout(600)
def test_the_real_model_is_timed(local_settings: Settings) -> None:
    name = local_settings.model.name.removeprefix("local:")
    speed = measure_speed(model_path(name, local_settings.paths.cache), 1)
    assert speed.threads == 1
    assert speed.reply_tokens_per_s > 0
    assert speed.prompt_tokens_per_s > 0
