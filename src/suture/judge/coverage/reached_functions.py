"""Which functions of the project each test runs, as a run on the task's own files recorded it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

Place = tuple[str, int]
"""(path, line): a function by its file and the line on which its definition begins, with its decorators."""


@dataclass
class TestReach:
    """What each test ran.

    Attributes:
        tests_by_place: Function -> ids of the tests that ran it.
        importing: Functions that ran while the tests were imported.
        known: Ids of the tests about which something was recorded.
        starting_processes: Ids of the tests that started a process, in which nothing is recorded.
    """

    __test__ = False  # keeps pytest from collecting this class

    tests_by_place: dict[Place, set[str]] = field(default_factory=dict)
    importing: set[Place] = field(default_factory=set)
    known: set[str] = field(default_factory=set)
    starting_processes: set[str] = field(default_factory=set)

    def find_tests(self, places: Iterable[Place]) -> frozenset[str]:
        """Return the ids of the tests that ran one of some functions."""
        return frozenset().union(*(self.tests_by_place.get(place, frozenset()) for place in places))

    def list_places(self, path: str) -> list[Place]:
        """Return the functions of a file that a test ran."""
        return [place for place in self.tests_by_place if place[0] == path]


def read_reach(content: bytes) -> TestReach:
    """Return what a run recorded (see `report_plugin/reach.py`); lines that the recorder did not write are left out."""
    reach = TestReach()
    places: dict[tuple[int, int], Place] = {}
    for process, kind, values in _iter_lines(content):
        match kind, values:
            case "function", [int(number), str(path), int(line)]:
                places[process, number] = (path, line)
            case "import", [[*numbers]]:
                reach.importing |= _look_up(places, process, numbers)
            case "test", [str(test), [*numbers], bool(starts_process)]:
                ran = _look_up(places, process, numbers)
                for place in ran:
                    reach.tests_by_place.setdefault(place, set()).add(test)
                if ran:
                    reach.known.add(test)
                if starts_process:
                    reach.starting_processes.add(test)
    return reach


def _look_up(places: dict[tuple[int, int], Place], process: int, numbers: list[object]) -> set[Place]:
    keys = [(process, number) for number in numbers if isinstance(number, int)]
    return {places[key] for key in keys if key in places}


def _iter_lines(content: bytes) -> Iterator[tuple[int, str, list[object]]]:
    for line in content.splitlines():
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, list) and len(value) >= 2 and type(value[0]) is int:
            yield value[0], str(value[1]), value[2:]
