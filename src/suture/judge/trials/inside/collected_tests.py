"""The process that has collected the tests: it runs them in forks, on the code as it is and on candidates."""

from __future__ import annotations

import gc
import json
import os
import resource
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from .child_processes import HERE, ROOT, Files, Forks, Leftovers, Line, limit_cpu, now_s, take_away
from .code_swap import Swapper
from .line_tracer import Tracer
from .pytest_items import Items, Outcomes, way_of, words_of

LETTERS = {"passed": b"P", "failed": b"f", "skipped": b"s"}
ENDLESS_S = 3600.0
"""As good as no limit, for tests of which nobody has said one."""
Write = Callable[[bytes], None]


class TestLimits:
    """What tests may take.

    Attributes:
        by_test: Id -> CPU seconds where the test before it is of the same file, and where it is not: then it
            also makes what the tests of its file share.
    """

    def __init__(self) -> None:
        self.by_test: dict[str, list[float]] = {}

    def of(self, test: str, before: str, patience: float) -> float:
        """CPU seconds of one test."""
        near, far = self.by_test.get(test, (ENDLESS_S, ENDLESS_S))
        shared = before.partition("::")[0] == test.partition("::")[0]
        return (near if shared else far) + patience


class CollectedTests:
    """Runs the collected tests in forks.

    Args:
        items: They.
        outcomes: Listens to pytest.
        files: What candidates change.
        limits: What tests may take.
        forks: Makes the children.
    """

    def __init__(
        self, items: Items, outcomes: Outcomes, files: Files, limits: TestLimits, tracer: Tracer, forks: Forks
    ) -> None:
        self._items, self._outcomes, self._files, self._forks = items, outcomes, files, forks
        self._limits, self._tracer = limits, tracer
        self._leftovers = Leftovers()
        self._known: dict[Any, dict[str, Any]] = {}
        self._know(files.texts)

    def serve(self, asked: Line, answers: Line) -> None:
        """Do what is asked for, until nobody asks."""
        while True:
            command = asked.read()
            if command is None:
                return
            if command["op"] == "walk":
                self._walk(command, answers)
            elif command["op"] == "limits":
                self._limits.by_test = command["limits"]
                answers.write({})
            elif command["op"] == "know":
                self._files, self._tracer = Files(command["texts"]), Tracer(command["files"])
                self._know(command["texts"])
                answers.write({})
            else:
                answers.write(self._try(command))
            asked.write({})  # what waits there passes the next one on

    def _know(self, texts: dict[str, str]) -> None:
        """Find the functions of files that will change, and leave what lives here alone from then on."""
        gc.unfreeze()  # frozen, they would not be found
        self._swapper = Swapper(texts)
        gc.collect()
        gc.freeze()

    def _walk(self, command: dict[str, Any], answers: Line) -> None:
        """Each test once on the code as it is; after one that ends the process, go on in a new one."""
        end_s = now_s() + command["seconds"]
        named = command["tests"]
        waiting = self._items.in_order if named is None else self._items.named(named)
        while waiting and now_s() < end_s:
            seen = [0]
            rest, last = [b""], [b""]

            def heard(
                part: bytes, seen: list[int] = seen, rest: list[bytes] = rest, last: list[bytes] = last
            ) -> None:
                whole, newline, rest[0] = (rest[0] + part).rpartition(b"\n")
                if newline:
                    seen[0] += whole.count(b"\n") + 1
                    last[0] = whole.rpartition(b"\n")[2]
                    answers.write_raw(whole)

            walk = partial(self._walk_on, waiting, command)
            _, ended = self._forks.run(walk, command["quiet_s"], end_s=end_s, heard=heard)
            if ended and seen[0] >= len(waiting):
                break
            said_so = last[0] and json.loads(last[0])["outcome"] == "timeout"  # and ended itself for that
            if not ended and not said_so and seen[0] < len(waiting) and now_s() < end_s:
                lost = {"test": waiting[seen[0]][0], "outcome": "timeout", "seconds": 0.0}
                answers.write({**lost, "wall_s": 0.0, "frames": [], "lines": {}, "calls": []})
                seen[0] += 1
            waiting = waiting[seen[0] :]
        answers.write({"done": True, "left": len(waiting) if now_s() >= end_s else 0})

    def _walk_on(self, waiting: list[Any], command: dict[str, Any], write: Write) -> None:
        slow = command["slow"]
        frames: list[tuple[str, int]] = []
        faults: list[dict[str, Any]] = []
        left: list[str] = []
        tracer, traced = self._tracer, command["trace"]

        def report(test: str, outcome: str) -> None:
            used_s = _cpu_s() - before_s
            outcome_line = {
                "test": test,
                "outcome": outcome,
                "seconds": used_s,
                "wall_s": now_s() - began_s,
                "frames": frames,
            }
            outcome_line |= faults[0] if faults else {}
            write(json.dumps({**outcome_line, **tracer.take()}).encode("ascii") + b"\n")

        def note(fault: BaseException) -> None:
            tracer.stop()
            frames.extend(tracer.frames_of(fault))
            faults.append(mark_of(fault))

        def late(signal: int, frame: Any) -> None:
            tracer.stop()
            frames[:0] = tracer.stack_of(frame)
            report(test, "timeout")
            take_away([*left, *self._leftovers.since(there)])
            os._exit(3)

        self._outcomes.faults = note
        for number, (test, item) in enumerate(waiting):
            following = waiting[number + 1][1] if number + 1 < len(waiting) else None
            del frames[:], faults[:]
            there = self._leftovers.look()
            before_s, began_s = _cpu_s(), now_s()
            limit_cpu(slow.get(test, command["limit_s"]), late)
            if traced:
                tracer.start(sparing=test not in slow)
            outcome = self._outcomes.run(item, following)
            tracer.stop()
            report(test, outcome)
            if outcome == "failed":  # tests behind it meet that, as in the user's run; candidates must not
                left += self._leftovers.since(there)
        take_away(left)

    def _try(self, command: dict[str, Any]) -> dict[str, Any]:
        """Run tests on a candidate; equal code is run once."""
        pairs: list[Any] = []
        key: Any = None
        changed = ""
        path = command.get("path")
        if path is not None:
            changed = self._files.changed(command)
            try:
                key, pairs = self._swapper.plan(path, changed, command["edits"])
            except (SyntaxError, ValueError, RecursionError):
                return {"words": "", "ended": True, "unsupported": True}
            if key is None:
                return {"words": "f", "ended": True, "unsupported": False}
            key = (key, json.dumps(command["tests"]), command["patience"], command["trace"])
            if key in self._known:
                return self._known[key]
        tried = self._tried(command, path, changed, pairs)
        if key is not None:
            self._known[key] = tried
        return tried

    def _tried(self, command: dict[str, Any], path: Any, changed: str, pairs: list[Any]) -> dict[str, Any]:
        tests = command["tests"]
        items = self._items
        chosen = items.sorted(self._limits.by_test) if tests is None else items.named(tests)

        def act(write: Write) -> None:
            for function, code in pairs:
                function.__code__ = code
            tracer = self._tracer if command["trace"] else None
            run_on(chosen, self._outcomes, self._limits, command, write, tracer)

        there = self._leftovers.look()
        if path is not None:
            self._files.change(path, changed, command["number"])
        words, ended = self._forks.run(act, command["quiet_s"], end_s=now_s() + command["seconds"])
        take_away(self._leftovers.since(there))
        if path is not None:
            self._files.restore(path)
        return {**read_words(words), "ended": ended, "unsupported": False}


def mark_of(fault: BaseException) -> dict[str, Any]:
    """How far a test got: what it failed with, and where."""
    return {"fault": words_of(fault), "reached": way_of(fault, ROOT + os.sep, HERE)}


def read_words(words: bytes) -> dict[str, Any]:
    """What `run_on` wrote: its letters, and how far the failing tests got."""
    lines = words.decode("ascii", "replace").split("\n")
    letters = "".join(line for line in lines if line[:1] != "{")
    marks = []
    for line in lines:
        with suppress(ValueError):  # where a fork was killed, the line may be cut
            marks += [json.loads(line)] if line[:1] == "{" else []
    return {"marks": marks, "words": letters}


def run_on(
    chosen: list[Any],
    outcomes: Outcomes,
    limits: TestLimits,
    command: dict[str, Any],
    write: Write,
    tracer: Tracer | None = None,
) -> None:
    """Run tests, and write a letter for each; leave off after as many failures as the command says.

    Where one has passed it says another number: how many do tells a change that did a part from chance.
    With a tracer the lines that each runs are told too.
    """
    failed, before = 0, ""
    enough, once_passed = command["fails"]
    marks: list[dict[str, Any]] = []

    def note(fault: BaseException) -> None:
        if tracer is not None:
            tracer.stop()
        marks.extend([] if marks else [mark_of(fault)])

    outcomes.faults = note
    for number, (test, item) in enumerate(chosen):
        limit_cpu(limits.of(test, before, command["patience"]))
        following = chosen[number + 1][1] if number + 1 < len(chosen) else None
        if tracer is not None:
            tracer.start(sparing=True)
        outcome = outcomes.run(item, following)
        told: dict[str, Any] = {}
        if tracer is not None:
            tracer.stop()
            told = {"fault": "", "reached": [], "lines": tracer.take()["lines"]}
        write(LETTERS[outcome])
        before = test
        failed += outcome == "failed"
        if outcome == "passed":
            enough = once_passed
        if outcome == "failed" and marks:
            told |= marks[0]
        if told:
            write(b"\n" + json.dumps({"test": test, **told}).encode("ascii") + b"\n")
        marks.clear()
        if failed >= enough:
            return


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
