"""A certificate that was changed is rejected, also where whoever changed it sealed it anew."""

from __future__ import annotations

import codecs
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from judge.certificates.conftest import CODE, FIXED, NOISY, TESTS, Healed
from suture.core.ledger import find_run
from suture.core.records import CheckOutcome, Task, Verdict, content_hash, decode_record, encode_record
from suture.core.settings import LoopSettings, Settings
from suture.judge.certificates import ReplayedClaim
from suture.judge.certificates.certificate import (
    Certificate,
    InvalidCertificate,
    parse_certificate,
    seal_certificate,
)
from suture.judge.certificates.certificate_replay import replay_certificate
from suture.judge.confidence import estimate_confidence
from suture.project.workspace import apply_diff, unified_diff
from suture.sandbox import (
    BubblewrapSandbox,
    Capabilities,
    Channel,
    RunRequest,
    RunResult,
    Sandbox,
    discover_interpreter,
)

ADDS, CHEAPEST, DISCOUNT = (f"tests/test_prices.py::test_{name}" for name in ("adds", "cheapest", "discount"))
FILE, TEST_FILE = "shop/prices.py", "tests/test_prices.py"
BASE = {
    "shop/__init__.py": b"",
    FILE: CODE.encode(),
    TEST_FILE: TESTS.encode(),
    "conftest.py": b"",
}

HALF = CODE.replace("max(", "min(")
FOREIGN: tuple[dict[str, bytes], ...] = (
    {},
    {"a.py": b"x = 1\n"},
    {**BASE, FILE: NOISY.encode()},
    {**BASE, "conftest.py": b"x = 1\n"},
    {**BASE, "tests/test_more.py": b"def test_more():\n    assert False\n"},
    {**BASE, "shop/shadow.py": b""},
    {**BASE, "pytest.ini": b"[pytest]\n"},
    {**BASE, "shop/prices.cpython-311-x86_64-linux-gnu.so": b"\x7fELF"},
    {**BASE, "evil.egg-info/entry_points.txt": b"[pytest11]\nx = x\n"},
)

Plain = dict[str, Any]
Tampering = Callable[[Plain], object]


def change_to(said: Plain, after: Mapping[str, bytes]) -> None:
    """A diff to other files, with all the hashes that belong to it, and without measurements."""
    said["diff"] = unified_diff(BASE, after)
    said["result"] = {p: hashlib.sha256(c).hexdigest() for p, c in after.items() if BASE.get(p) != c}
    said["coverage"] = {"unmeasured": "no_time", "changed": {}, "covered": {}}
    said["mutation"] = {"unmeasured": "no_time", "generated": 0, "selected": None, "mutants": []}


def other_project(said: Plain, path: str, hash_: str | None) -> None:
    """Another list of files, with the hash that belongs to it."""
    said["project"] = (
        {**said["project"], path: hash_}
        if hash_
        else {key: value for key, value in said["project"].items() if key != path}
    )
    said["project_hash"] = content_hash(said["project"])


def skip_the_tests(said: Plain) -> None:
    change_to(
        said, {**BASE, TEST_FILE: TESTS.replace("== 90", "== 100").replace("== 1\n", "== 3\n").encode()}
    )
    said["task"]["protected"] = []


def add_a_test(said: Plain) -> None:
    change_to(said, {**BASE, FILE: FIXED.encode(), "shop/more.py": b"x = 1\n"})
    said["after"]["shop/more.py::test_x"] = "passed"


def called_new_code(said: Plain, path: str) -> None:
    """A new file that decides, called the module that the task asks for."""
    without = {key: text for key, text in BASE.items() if key != path}
    other_project(said, path, None) if path in BASE else None
    change_to(said, {**BASE, path: b"import builtins\n"})
    said["diff"] = unified_diff(without, {**without, path: b"import builtins\n"})
    said["task"].update(kind="write", module=path)
    said.update(before={}, fixed=sorted(said["after"]))


def flip(said: Plain) -> None:
    run = next(run for run in said["mutation"]["mutants"])
    run["killed"] = not run["killed"]


def mutants_of_ones_own(said: Plain) -> None:
    """Mutants that no test can miss, called those of another version, and what they would be worth."""
    after = apply_diff(BASE, said["diff"])
    for number, run in enumerate(said["mutation"]["mutants"]):
        broken = {FILE: f"raise SystemExit({number})\n".encode()}
        run.update(diff=unified_diff({FILE: after[FILE]}, broken), killed=True)
    said["claims"]["suture"] = "999.0"
    said["confidence"] = worth(said, 1.0)


def worth(said: Plain, min_score: float | None) -> float:
    """The confidence that belongs to what is said of the tests, with a score of the mutants."""
    verdicts = [
        Verdict(
            candidate="",
            outcomes=tuple(
                CheckOutcome(check_id=key, status=status, evidence="nonce") for key, status in ids.items()
            ),
            evidence="nonce",
        )
        for ids in (said["before"], said["after"])
    ]
    threshold = Settings().loop.trust_threshold
    return estimate_confidence(verdicts[1], threshold, before=verdicts[0], mutation_score=min_score)


def only_the_first(said: Plain) -> None:
    """A truthful beginning of the drawn mutants, of the length that looks best, and its own rate."""
    runs = said["mutation"]["mutants"]
    rates = {length: sum(run["killed"] for run in runs[:length]) / length for length in range(1, len(runs))}
    best = max(rates, key=lambda length: rates[length])
    said["mutation"]["mutants"] = runs[:best]
    said["confidence"] = worth(said, rates[best])


def called_all(said: Plain) -> None:
    """The same, and it is said that there were no more to run."""
    only_the_first(said)
    said["mutation"].update(selected=len(said["mutation"]["mutants"]), unmeasured=None)


def not_called_cut(said: Plain) -> None:
    only_the_first(said)
    said["mutation"]["unmeasured"] = None


def left_out(said: Plain) -> None:
    """No mutants at all, and nothing held against it."""
    said["mutation"] = {"unmeasured": "no_mutants", "generated": 0, "selected": 0, "mutants": []}
    said["confidence"] = worth(said, None)


def no_time(said: Plain) -> None:
    said["mutation"] = {"unmeasured": "no_time", "generated": 0, "selected": None, "mutants": []}
    said["confidence"] = worth(said, None)


TAMPERINGS: dict[str, tuple[str, Tampering]] = {
    "another diff": ("diff", lambda s: s.update(diff=s["diff"].replace("min(", "sum("))),
    "no diff": ("diff", lambda s: s.update(diff="", result={})),
    "a diff that is none": ("diff", lambda s: s.update(diff="mended it")),
    "a diff out of the project": ("diff", lambda s: s.update(diff=s["diff"].replace(FILE, "../" + FILE))),
    "a diff and a test that it does not add": ("after", add_a_test),
    "half of the diff": (
        "after",
        lambda s: change_to(s, {**BASE, FILE: CODE.replace("max(", "min(").encode()}),
    ),
    "a diff that does nothing": ("after", lambda s: change_to(s, {**BASE, FILE: (CODE + "# x\n").encode()})),
    "a diff of the tests": ("files", skip_the_tests),
    "a diff with a conftest.py": (
        "files",
        lambda s: change_to(s, {**BASE, "tests/conftest.py": b"", FILE: FIXED.encode()}),
    ),
    "another result": ("diff", lambda s: s["result"].update({FILE: "0" * 64})),
    "another file in the result": ("diff", lambda s: s["result"].update({"shop/__init__.py": "0" * 64})),
    "another hash of the code": ("project", lambda s: other_project(s, FILE, "0" * 64)),
    "another hash of the tests": ("project", lambda s: other_project(s, TEST_FILE, "0" * 64)),
    "a file that is not there": ("project", lambda s: other_project(s, "shop/secret.py", "0" * 64)),
    "without the tests": ("project", lambda s: other_project(s, TEST_FILE, None)),
    "another hash of the project": ("project", lambda s: s.update(project_hash="0" * 64)),
    "swapped ids before": (
        "before",
        lambda s: s["before"].update({ADDS: s["before"][CHEAPEST], CHEAPEST: s["before"][ADDS]}),
    ),
    "a failure more before": ("before", lambda s: s["before"].update({ADDS: "failed"})),
    "a failure less before": ("before", lambda s: s["before"].update({CHEAPEST: "passed"})),
    "a test less before": ("before", lambda s: s["before"].pop(DISCOUNT)),
    "nothing before": ("before", lambda s: s.update(before={})),
    "another test after": ("after", lambda s: s["after"].update({"tests/test_x.py::test_x": "passed"})),
    "a test less after": ("after", lambda s: s["after"].pop(ADDS)),
    "a skipped test after": ("after", lambda s: s["after"].update({ADDS: "skipped"})),
    "swapped ids of the fixed": ("after", lambda s: s.update(fixed=[ADDS, CHEAPEST])),
    "fewer fixed": ("after", lambda s: s["fixed"].pop()),
    "more fixed": ("after", lambda s: s["fixed"].insert(0, ADDS)),
    "a new failure": ("after", lambda s: s["newly_failing"].append(ADDS)),
    "better evidence": ("after", lambda s: s.update(evidence="split")),
    "a weaker command": ("before", lambda s: s["task"]["test_command"].extend(["-k", "cheapest"])),
    "no command": ("checks", lambda s: s["task"].update(test_command=[])),
    "a command that always passes": ("before", lambda s: s["task"].update(test_command=["true"])),
    "a hidden check": (
        "checks",
        lambda s: s["task"]["checks"].append({"id": "x", "provenance": "oracle", "source": "", "trust": 1.0}),
    ),
    "new code instead of a repair": ("files", lambda s: s["task"].update(kind="write")),
    "new code that is a conftest.py": ("files", lambda s: called_new_code(s, "conftest.py")),
    "new code among the tests": ("files", lambda s: called_new_code(s, "tests/conftest.py")),
    "new code that looks installed": ("files", lambda s: called_new_code(s, "x.egg-info/entry_points.txt")),
    "another place for the change": ("files", lambda s: s["task"].update(writable=["tests/"])),
    "fewer changed statements": ("coverage", lambda s: s["coverage"]["changed"].update({FILE: [9]})),
    "fewer covered statements": ("coverage", lambda s: s["coverage"]["covered"].update({FILE: [9]})),
    "more covered statements": ("coverage", lambda s: s["coverage"]["covered"].update({FILE: [9, 10, 15]})),
    "coverage that is not measured": ("coverage", lambda s: s["coverage"].update(unmeasured="no_time")),
    "other changed statements that nobody measured": (
        "coverage",
        lambda s: s.update(coverage={"unmeasured": "no_time", "changed": {FILE: [1]}, "covered": {}}),
    ),
    "another mutant's fate": ("mutation", flip),
    "mutants that were not drawn": ("mutation", lambda s: s["mutation"]["mutants"].pop(0)),
    "another number of mutants": ("mutation", lambda s: s["mutation"].update(generated=1)),
    "another mutant": ("mutation", lambda s: s["mutation"]["mutants"][0].update(diff="")),
    "more confidence": ("confidence", lambda s: s.update(confidence=0.99)),
    "agreement that nobody measured": (
        "confidence",
        lambda s: (s["claims"].update(agreement=1.0), s.update(confidence=0.2 + 0.8 * s["confidence"])),
    ),
    "rivals that lower nothing": ("confidence", lambda s: s["claims"].update(rivals=3)),
    "a share that lowers nothing": ("confidence", lambda s: s["claims"].update(share=0.1)),
    "fewer rivals than none": (
        "confidence",
        lambda s: (s["claims"].update(rivals=-1), s.update(confidence=0.95)),
    ),
    "mutants of one's own": ("mutation", mutants_of_ones_own),
    "a beginning that looks best": ("confidence", only_the_first),
    "a beginning that is called all": ("mutation", called_all),
    "a beginning that is not called one": ("mutation", not_called_cut),
    "mutants left out as if there were none": ("mutation", left_out),
    "mutants left out for want of time": ("confidence", no_time),
}


class RememberingSandbox:
    """A real wall that runs no program twice: replays of one certificate have most runs in common."""

    name = "remembering"

    def __init__(self, sandbox_requirement: BubblewrapSandbox) -> None:
        self._wall = sandbox_requirement
        self._known: dict[str, RunResult] = {}

    async def run(self, request: RunRequest) -> RunResult:
        key = repr(request)
        if key not in self._known:
            self._known[key] = await self._wall.run(request)
        return self._known[key]

    def open(self, request: RunRequest) -> AbstractAsyncContextManager[Channel]:
        return self._wall.open(request)

    async def capabilities(self) -> Capabilities:
        return await self._wall.capabilities()

    async def close(self) -> None:
        await self._wall.close()


async def replayed(
    certificate: Certificate, files: Mapping[str, bytes], sandbox: Sandbox, settings: Settings
) -> list[ReplayedClaim]:
    interpreter = discover_interpreter(None, {"PATH": "/usr/bin"})
    return [f async for f in replay_certificate(certificate, files, sandbox, settings, interpreter)]


@pytest.mark.heavy
@pytest.mark.timeout(300)
async def test_every_tampering_is_rejected_for_what_it_is(
    healed: Healed, sandbox: BubblewrapSandbox, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One key for all reports, or no two runs of pytest are alike.
    monkeypatch.setattr("suture.judge.runners.pytest_runner.secrets.token_bytes", lambda size: b"k" * size)
    sandbox_requirement = RememberingSandbox(sandbox)
    result = await healed(text=FIXED)
    path = find_run(settings.paths.home, result.run_id).path / "certificate.json"
    certificate = parse_certificate(path.read_bytes())
    accepted = await replayed(certificate, BASE, sandbox_requirement, settings)
    assert all(finding.ok for finding in accepted), accepted
    assert len(TAMPERINGS) >= 20
    for name, (where, tamper) in TAMPERINGS.items():
        plain = deepcopy(encode_record(certificate))
        tamper(plain)
        assert plain != encode_record(certificate), name
        with pytest.raises(InvalidCertificate):
            parse_certificate(json.dumps(plain).encode())
        forged = seal_certificate(decode_record(Certificate, plain))
        assert parse_certificate(json.dumps(encode_record(forged)).encode()) == forged
        last = (await replayed(forged, BASE, sandbox_requirement, settings))[-1]
        assert (last.ok, last.name) == (False, where), (name, last)
    for files in FOREIGN:
        (last,) = await replayed(certificate, files, sandbox_requirement, settings)
        assert (last.ok, last.name) == (False, "project")
    claims = replace(certificate.claims, agreement=1.0, suture="999.0")
    claimed = seal_certificate(replace(certificate, claims=claims))
    for said in (certificate, claimed):
        found = await replayed(said, {**BASE, "README.md": b"new\n"}, sandbox_requirement, settings)
        assert found == accepted  # claims decide nothing
    careful = settings.model_copy(update={"loop": LoopSettings(abstain_below=0.99)})
    last = (await replayed(certificate, BASE, sandbox_requirement, careful))[-1]
    assert (last.ok, last.name) == (False, "confidence")


def files_that_are_no_certificates(plain: Plain) -> Iterator[bytes]:
    yield from (
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"format": "suture-certificate/1"}',
    )
    yield json.dumps({**plain, "seal": ""}).encode()
    changes: tuple[Plain, ...] = (
        {"format": "suture-certificate/2"},
        {"blessed": True},
        {"fixed": "all"},
        {"project": []},
        {"confidence": False},
        {"confidence": 0},
        {"confidence": float("nan")},
    )
    for change in changes:
        changed = {**plain, **change}
        seal = content_hash({key: value for key, value in changed.items() if key != "seal"})
        yield json.dumps({**changed, "seal": seal}).encode()
    text = json.dumps(plain)
    yield codecs.BOM_UTF8 + text.encode()
    yield text.encode("utf-16")
    yield text.encode("utf-32-le")
    # The same key twice: one reader takes the first, another the last.
    yield text.replace('"diff": ""', '"diff": "something else", "diff": ""').encode()
    yield text.replace('"diff": ""', '"diff": "", "diff": ""').encode()
    yield text.replace('"kind": "heal"', '"kind": "write", "kind": "heal"').encode()


def test_what_is_no_certificate_is_refused() -> None:
    certificate = seal_certificate(
        Certificate(
            task=Task(statement="", kind="heal", test_command=("true",)),
            project={},
            project_hash="",
            diff="",
            result={},
            evidence="nonce",
            after={},
        )
    )
    plain = encode_record(certificate)
    assert parse_certificate(json.dumps(plain).encode()) == certificate
    for content in files_that_are_no_certificates(plain):
        with pytest.raises(InvalidCertificate):
            parse_certificate(content)
