"""Changed certificates are rejected, even if they are sealed again."""

from __future__ import annotations

import codecs
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from judge.certificates.conftest import CODE, FIXED, NOISY, TESTS, RunHeal, SandboxWrapper
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

OTHER_PROJECTS: tuple[dict[str, bytes], ...] = (
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

CertificateData = dict[str, Any]
Tampering = Callable[[CertificateData], object]


def set_change(data: CertificateData, after: Mapping[str, bytes]) -> None:
    """Replace the change by another one, with matching hashes and without measurements."""
    data["diff"] = unified_diff(BASE, after)
    data["result"] = {p: hashlib.sha256(c).hexdigest() for p, c in after.items() if BASE.get(p) != c}
    data["coverage"] = {"unmeasured": "no_time", "changed": {}, "covered": {}}
    data["mutation"] = {"unmeasured": "no_time", "generated": 0, "selected": None, "mutants": []}


def set_project_hash(data: CertificateData, path: str, file_hash: str | None) -> None:
    """Replace or remove the hash of one project file, with a matching hash of the project."""
    data["project"] = (
        {**data["project"], path: file_hash}
        if file_hash
        else {key: value for key, value in data["project"].items() if key != path}
    )
    data["project_hash"] = content_hash(data["project"])


def change_tests(data: CertificateData) -> None:
    set_change(
        data, {**BASE, TEST_FILE: TESTS.replace("== 90", "== 100").replace("== 1\n", "== 3\n").encode()}
    )
    data["task"]["protected"] = []


def claim_new_test(data: CertificateData) -> None:
    set_change(data, {**BASE, FILE: FIXED.encode(), "shop/more.py": b"x = 1\n"})
    data["after"]["shop/more.py::test_x"] = "passed"


def claim_new_code(data: CertificateData, path: str) -> None:
    """Add a file that decides the tests, as if it were the module that the task asks for."""
    before = {key: text for key, text in BASE.items() if key != path}
    set_project_hash(data, path, None) if path in BASE else None
    set_change(data, {**BASE, path: b"import builtins\n"})
    data["diff"] = unified_diff(before, {**before, path: b"import builtins\n"})
    data["task"].update(kind="write", module=path)
    data.update(before={}, fixed=sorted(data["after"]))


def flip_mutant(data: CertificateData) -> None:
    run = next(run for run in data["mutation"]["mutants"])
    run["killed"] = not run["killed"]


def invent_mutants(data: CertificateData) -> None:
    """Replace the mutants by ones that any test kills, as if another version had drawn them."""
    after = apply_diff(BASE, data["diff"])
    for number, run in enumerate(data["mutation"]["mutants"]):
        broken = {FILE: f"raise SystemExit({number})\n".encode()}
        run.update(diff=unified_diff({FILE: after[FILE]}, broken), killed=True)
    data["claims"]["suture"] = "999.0"
    data["confidence"] = compute_confidence(data, 1.0)


def compute_confidence(data: CertificateData, min_score: float | None) -> float:
    """Return the confidence that matches the claimed test results and a mutation score."""
    verdicts = [
        Verdict(
            candidate="",
            outcomes=tuple(
                CheckOutcome(check_id=key, status=status, evidence="nonce") for key, status in ids.items()
            ),
            evidence="nonce",
        )
        for ids in (data["before"], data["after"])
    ]
    threshold = Settings().loop.trust_threshold
    return estimate_confidence(verdicts[1], threshold, before=verdicts[0], mutation_score=min_score)


def keep_best_prefix(data: CertificateData) -> None:
    """Keep only the first mutants, as many as give the best kill rate."""
    runs = data["mutation"]["mutants"]
    rates = {length: sum(run["killed"] for run in runs[:length]) / length for length in range(1, len(runs))}
    best = max(rates, key=lambda length: rates[length])
    data["mutation"]["mutants"] = runs[:best]
    data["confidence"] = compute_confidence(data, rates[best])


def claim_prefix_is_complete(data: CertificateData) -> None:
    """Keep only the first mutants, and claim that no others were selected."""
    keep_best_prefix(data)
    data["mutation"].update(selected=len(data["mutation"]["mutants"]), unmeasured=None)


def hide_mutant_limit(data: CertificateData) -> None:
    keep_best_prefix(data)
    data["mutation"]["unmeasured"] = None


def claim_no_mutants(data: CertificateData) -> None:
    """Claim that the change has no mutants."""
    data["mutation"] = {"unmeasured": "no_mutants", "generated": 0, "selected": 0, "mutants": []}
    data["confidence"] = compute_confidence(data, None)


def claim_no_time(data: CertificateData) -> None:
    data["mutation"] = {"unmeasured": "no_time", "generated": 0, "selected": None, "mutants": []}
    data["confidence"] = compute_confidence(data, None)


TAMPERINGS: dict[str, tuple[str, Tampering]] = {
    "another diff": ("diff", lambda data: data.update(diff=data["diff"].replace("min(", "sum("))),
    "no diff": ("diff", lambda data: data.update(diff="", result={})),
    "an invalid diff": ("diff", lambda data: data.update(diff="mended it")),
    "a diff outside the project": (
        "diff",
        lambda data: data.update(diff=data["diff"].replace(FILE, "../" + FILE)),
    ),
    "a new file and a test that it does not contain": ("after", claim_new_test),
    "half of the diff": (
        "after",
        lambda data: set_change(data, {**BASE, FILE: CODE.replace("max(", "min(").encode()}),
    ),
    "a diff that does nothing": (
        "after",
        lambda data: set_change(data, {**BASE, FILE: (CODE + "# x\n").encode()}),
    ),
    "a diff of the tests": ("files", change_tests),
    "a diff with a conftest.py": (
        "files",
        lambda data: set_change(data, {**BASE, "tests/conftest.py": b"", FILE: FIXED.encode()}),
    ),
    "a new module in place of the standard library's": (
        "files",
        lambda data: set_change(data, {**BASE, "decimal.py": b"", FILE: FIXED.encode()}),
    ),
    "a new package in place of the repaired module": (
        "files",
        lambda data: set_change(data, {**BASE, "shop/prices/__init__.py": FIXED.encode()}),
    ),
    "another result": ("diff", lambda data: data["result"].update({FILE: "0" * 64})),
    "another file in the result": (
        "diff",
        lambda data: data["result"].update({"shop/__init__.py": "0" * 64}),
    ),
    "another hash of the code": ("project", lambda data: set_project_hash(data, FILE, "0" * 64)),
    "another hash of the tests": ("project", lambda data: set_project_hash(data, TEST_FILE, "0" * 64)),
    "a file that does not exist": (
        "project",
        lambda data: set_project_hash(data, "shop/secret.py", "0" * 64),
    ),
    "no tests in the project": ("project", lambda data: set_project_hash(data, TEST_FILE, None)),
    "another hash of the project": ("project", lambda data: data.update(project_hash="0" * 64)),
    "swapped ids before": (
        "before",
        lambda data: data["before"].update({ADDS: data["before"][CHEAPEST], CHEAPEST: data["before"][ADDS]}),
    ),
    "one failure more before": ("before", lambda data: data["before"].update({ADDS: "failed"})),
    "one failure less before": ("before", lambda data: data["before"].update({CHEAPEST: "passed"})),
    "one test less before": ("before", lambda data: data["before"].pop(DISCOUNT)),
    "nothing before": ("before", lambda data: data.update(before={})),
    "another test after": ("after", lambda data: data["after"].update({"tests/test_x.py::test_x": "passed"})),
    "one test less after": ("after", lambda data: data["after"].pop(ADDS)),
    "a skipped test after": ("after", lambda data: data["after"].update({ADDS: "skipped"})),
    "swapped ids of fixed tests": ("after", lambda data: data.update(fixed=[ADDS, CHEAPEST])),
    "fewer fixed tests": ("after", lambda data: data["fixed"].pop()),
    "more fixed tests": ("after", lambda data: data["fixed"].insert(0, ADDS)),
    "a new failure": ("after", lambda data: data["newly_failing"].append(ADDS)),
    "better evidence": ("after", lambda data: data.update(evidence="split")),
    "a weaker command": ("before", lambda data: data["task"]["test_command"].extend(["-k", "cheapest"])),
    "no command": ("checks", lambda data: data["task"].update(test_command=[])),
    "a command that always passes": ("before", lambda data: data["task"].update(test_command=["true"])),
    "a hidden check": (
        "checks",
        lambda data: data["task"]["checks"].append(
            {"id": "x", "provenance": "oracle", "source": "", "trust": 1.0}
        ),
    ),
    "new code instead of a repair": ("files", lambda data: data["task"].update(kind="write")),
    "new code that is a conftest.py": ("project", lambda data: claim_new_code(data, "conftest.py")),
    "new code among the tests": ("files", lambda data: claim_new_code(data, "tests/conftest.py")),
    "new code that looks installed": (
        "files",
        lambda data: claim_new_code(data, "x.egg-info/entry_points.txt"),
    ),
    "another writable folder": ("files", lambda data: data["task"].update(writable=["tests/"])),
    "fewer changed statements": ("coverage", lambda data: data["coverage"]["changed"].update({FILE: [9]})),
    "fewer covered statements": ("coverage", lambda data: data["coverage"]["covered"].update({FILE: [9]})),
    "more covered statements": (
        "coverage",
        lambda data: data["coverage"]["covered"].update({FILE: [9, 10, 15]}),
    ),
    "coverage that is not measured": ("coverage", lambda data: data["coverage"].update(unmeasured="no_time")),
    "other changed statements without measurement": (
        "coverage",
        lambda data: data.update(coverage={"unmeasured": "no_time", "changed": {FILE: [1]}, "covered": {}}),
    ),
    "another result of a mutant": ("mutation", flip_mutant),
    "mutants that were not drawn": ("mutation", lambda data: data["mutation"]["mutants"].pop(0)),
    "another number of mutants": ("mutation", lambda data: data["mutation"].update(generated=1)),
    "another mutant": ("mutation", lambda data: data["mutation"]["mutants"][0].update(diff="")),
    "more confidence": ("confidence", lambda data: data.update(confidence=0.99)),
    "agreement without measurement": (
        "confidence",
        lambda data: (
            data["claims"].update(agreement=1.0),
            data.update(confidence=0.2 + 0.8 * data["confidence"]),
        ),
    ),
    "rivals that do not lower the confidence": ("confidence", lambda data: data["claims"].update(rivals=3)),
    "a share that does not lower the confidence": (
        "confidence",
        lambda data: data["claims"].update(share=0.1),
    ),
    "a negative number of rivals": (
        "confidence",
        lambda data: (data["claims"].update(rivals=-1), data.update(confidence=0.95)),
    ),
    "invented mutants": ("mutation", invent_mutants),
    "the best first mutants": ("confidence", keep_best_prefix),
    "the first mutants, called all": ("mutation", claim_prefix_is_complete),
    "the first mutants, without the limit": ("mutation", hide_mutant_limit),
    "no mutants, as if there were none": ("mutation", claim_no_mutants),
    "no mutants, for lack of time": ("confidence", claim_no_time),
}


class CachingSandbox(SandboxWrapper):
    """A sandbox that runs no program twice: replays of one certificate have most runs in common."""

    name = "caching"

    def __init__(self, sandbox: BubblewrapSandbox) -> None:
        super().__init__(sandbox)
        self._results: dict[str, RunResult] = {}

    async def run(self, request: RunRequest) -> RunResult:
        key = repr(request)
        if key not in self._results:
            self._results[key] = await super().run(request)
        return self._results[key]


async def replay(
    certificate: Certificate, files: Mapping[str, bytes], sandbox: Sandbox, settings: Settings
) -> list[ReplayedClaim]:
    interpreter = discover_interpreter(None, {"PATH": "/usr/bin"})
    return [f async for f in replay_certificate(certificate, files, sandbox, settings, interpreter)]


@pytest.mark.heavy
@pytest.mark.timeout(300)
async def test_every_tampering_is_rejected_by_the_matching_claim(
    run_heal: RunHeal, sandbox: BubblewrapSandbox, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One key for all reports: with random keys no run of pytest could be cached.
    monkeypatch.setattr("suture.judge.runners.pytest_runner.secrets.token_bytes", lambda size: b"k" * size)
    caching_sandbox = CachingSandbox(sandbox)
    result = await run_heal(text=FIXED)
    path = find_run(settings.paths.home, result.run_id).path / "certificate.json"
    certificate = parse_certificate(path.read_bytes())
    accepted = await replay(certificate, BASE, caching_sandbox, settings)
    assert all(finding.ok for finding in accepted), accepted
    assert len(TAMPERINGS) >= 20

    for name, (claim_name, tamper) in TAMPERINGS.items():
        data = deepcopy(encode_record(certificate))
        tamper(data)
        assert data != encode_record(certificate), name
        with pytest.raises(InvalidCertificate):
            parse_certificate(json.dumps(data).encode())
        forged = seal_certificate(decode_record(Certificate, data))
        assert parse_certificate(json.dumps(encode_record(forged)).encode()) == forged
        last = (await replay(forged, BASE, caching_sandbox, settings))[-1]
        assert (last.ok, last.name) == (False, claim_name), (name, last)
    for files in OTHER_PROJECTS:
        (last,) = await replay(certificate, files, caching_sandbox, settings)
        assert (last.ok, last.name) == (False, "project")
    claims = replace(certificate.claims, agreement=1.0, suture="999.0")
    claimed = seal_certificate(replace(certificate, claims=claims))
    for replayed_certificate in (certificate, claimed):
        replayed = await replay(
            replayed_certificate, {**BASE, "README.md": b"new\n"}, caching_sandbox, settings
        )
        assert replayed == accepted  # claims decide nothing
    strict_settings = settings.model_copy(update={"loop": LoopSettings(abstain_below=0.99)})
    last = (await replay(certificate, BASE, caching_sandbox, strict_settings))[-1]
    assert (last.ok, last.name) == (False, "confidence")


def generate_invalid_files(data: CertificateData) -> Iterator[bytes]:
    yield from (
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"format": "suture-certificate/1"}',
    )
    yield json.dumps({**data, "seal": ""}).encode()
    changes: tuple[CertificateData, ...] = (
        {"format": "suture-certificate/2"},
        {"blessed": True},
        {"fixed": "all"},
        {"project": []},
        {"confidence": False},
        {"confidence": 0},
        {"confidence": float("nan")},
    )
    for change in changes:
        changed = {**data, **change}
        seal = content_hash({key: value for key, value in changed.items() if key != "seal"})
        yield json.dumps({**changed, "seal": seal}).encode()
    text = json.dumps(data)
    yield codecs.BOM_UTF8 + text.encode()
    yield text.encode("utf-16")
    yield text.encode("utf-32-le")
    # Duplicate keys: one JSON reader takes the first value, another the last.
    yield text.replace('"diff": ""', '"diff": "something else", "diff": ""').encode()
    yield text.replace('"diff": ""', '"diff": "", "diff": ""').encode()
    yield text.replace('"kind": "heal"', '"kind": "write", "kind": "heal"').encode()


def test_an_invalid_certificate_file_is_refused() -> None:
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
    data = encode_record(certificate)

    assert parse_certificate(json.dumps(data).encode()) == certificate
    for content in generate_invalid_files(data):
        with pytest.raises(InvalidCertificate):
            parse_certificate(content)
