"""Code that newly loses the failures of what it calls is suspicious, and code that passes them on is not."""

from __future__ import annotations

import pytest

from suture.judge.signs import find_python_signs

BEFORE = "def run(jobs):\n    for job in jobs:\n        job()\n"
LOSING = {
    "a computed answer of __exit__": "class Scope:\n    def __exit__(self, kind, error, trace):\n"
    "        return kind is not None\n",
    "an answer by state": "class Scope:\n    async def __aexit__(self, *details):\n        return not self.jobs\n",
    "a pushed function": "from contextlib import ExitStack\ndef end(*details):\n    return len(details) == 3\n"
    "def run(jobs):\n    with ExitStack() as stack:\n        stack.push(end)\n        jobs[0]()\n",
    "exceptions in a variable": "FAULTS = (OSError, Exception)\ndef run(job):\n    try:\n        job()\n"
    "    except FAULTS:\n        return None\n",
    "computed exceptions": "def run(job, kinds):\n    try:\n        job()\n    except tuple(kinds):\n"
    "        return None\n",
    "futures that nobody reads": "def run(pool, jobs):\n    return len([pool.submit(job) for job in jobs])\n",
    "a list that nobody reads": "def run(jobs):\n    lost = []\n    for job in jobs:\n        try:\n            job()\n"
    "        except Exception as error:\n            lost.append((job, error))\n    return len(jobs)\n",
    "another process": "from multiprocessing import get_context\ndef run(job):\n"
    "    child = get_context('spawn').Process(target=job)\n    child.start()\n    child.join()\n",
    "a late timer": "import threading\ndef run(job):\n    timer = threading.Timer(60, job)\n    timer.daemon = True\n"
    "    timer.start()\n",
    "a finalizer": "import weakref\ndef later(owner, job):\n    return weakref.finalize(owner, job)\n",
    "the end of an object": "class Late:\n    def __init__(self, job):\n        self.job = job\n"
    "    def __del__(self):\n        self.job()\n",
    "tasks that are only waited for": "import asyncio\nasync def run(jobs):\n"
    "    await asyncio.wait([asyncio.ensure_future(job()) for job in jobs])\n",
}
PASSING_ON = {
    "an exit by class": "class Scope:\n    def __exit__(self, kind, error, trace):\n"
    "        self.close()\n        return kind is not None and issubclass(kind, KeyError)\n",
    "an exit of another one": "class Scope:\n    def __exit__(self, *details):\n"
    "        return self.stack.__exit__(*details)\n",
    "no answer": "class Scope:\n    def __exit__(self, *details):\n        self.close()\n        return False\n",
    "read futures": "def run(pool, jobs):\n"
    "    return [future.result() for future in [pool.submit(job) for job in jobs]]\n",
    "a list that is read": "def run(jobs):\n    lost = []\n    for job in jobs:\n        try:\n            job()\n"
    "        except Exception as error:\n            lost.append(error)\n    return lost\n",
    "narrow exceptions in a variable": "FAULTS = (OSError, KeyError)\ndef run(job):\n    try:\n        job()\n"
    "    except FAULTS:\n        return None\n",
    "a process whose end is read": "from multiprocessing import Process\ndef run(job):\n"
    "    child = Process(target=job)\n    child.start()\n    child.join()\n    return child.exitcode\n",
    "an object that closes itself": "class Link:\n    def __init__(self, socket):\n        self.socket = socket\n"
    "    def __del__(self):\n        self.close()\n    def close(self):\n        self.socket.close()\n",
    "a stack of data": "def run(stack, end):\n    stack.push(end)\n\ndef end():\n    return True\n",
}


@pytest.mark.parametrize("kind", LOSING)
def test_lost_failures_are_suspicious(kind: str) -> None:
    assert "hides_exceptions" in {sign.code for sign in find_python_signs(BEFORE, BEFORE + LOSING[kind], {})}


@pytest.mark.parametrize("kind", PASSING_ON)
def test_failures_that_are_passed_on_are_not(kind: str) -> None:
    signs = find_python_signs(BEFORE, BEFORE + PASSING_ON[kind], {})

    assert "hides_exceptions" not in {sign.code for sign in signs}


CALLING = "def visit(items, act, done):\n    for item in items:\n        act(item)\n    done()\n"


@pytest.mark.parametrize(
    "after",
    [
        "def visit(items, act, done):\n    return len(items)\n",
        "def visit(items, act, done):\n    return (one(item) for one in (act, done) for item in items)\n",
    ],
)
def test_a_function_that_is_no_longer_called_is_suspicious(after: str) -> None:
    (lost,) = [sign for sign in find_python_signs(CALLING, after, {}) if sign.code == "calls_removed"]

    assert lost.names == ("act", "done")


@pytest.mark.parametrize(
    "after",
    [
        "def visit(items, act, done):\n    return [*map(act, items), done()]\n",
        "def visit(items, act, done):\n    with pool(done=done) as workers:\n        workers.each(items, act)\n",
        "def visit(items, act):\n    for item in items:\n        act(item)\n",
    ],
)
def test_a_function_that_is_passed_on_or_gone_is_not(after: str) -> None:
    assert "calls_removed" not in {sign.code for sign in find_python_signs(CALLING, after, {})}
