"""Certificates of judgements: what `verify` confirms, and which forgeries it refutes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from judgement.conftest import CART, RIGHT, TESTS, run_git
from suture.api import JudgeOptions, judge, verify
from suture.core.records import content_hash, decode_record
from suture.core.records.judgement import JudgedState, Judgement
from suture.core.settings import JudgeSettings, Settings
from suture.errors import UsageError
from suture.interfaces.cli.app import app
from suture.judge.certificates import JudgementCertificate, ReplayedClaim
from suture.judge.certificates.certificate import hash_tree, render_certificate, seal_certificate, sha256_hex
from suture.loop.intake.heal_task import build_task_from_snapshot
from suture.loop.judgement import ProposedChange, certify_judgement
from suture.loop.judgement.judgement_evidence import MAX_CONTENT_BYTES
from suture.project.workspace import Snapshot, unified_diff
from suture.sandbox import discover_interpreter

pytestmark = [pytest.mark.timeout(300), pytest.mark.asyncio]
Write = Callable[[Mapping[str, str | None]], Path]
CertificateData = dict[str, Any]
Forgery = Callable[[CertificateData], object]
SETTINGS = Settings(judge=JudgeSettings(mistakes=1))
"""Few deliberate mistakes, because each takes a run of the tests."""
MUGS = "test_cart.py::test_three_mugs_cost_three_times_as_much"
KEY = "AKIA" + "0123456789ABCDEF"
BASE = {"cart.py": CART.encode(), "test_cart.py": TESTS.encode()}
CORRECTION = ProposedChange(BASE, {**BASE, "cart.py": RIGHT.encode()})


def certify_without_running(change: ProposedChange = CORRECTION, **facts: Any) -> JudgementCertificate:
    """Return a certificate whose files and hashes are right, and whose verdict nothing supports."""
    hashes = {path: sha256_hex(content) for path, content in change.after.items()}
    state = JudgedState(tree=hash_tree(hashes), files={p: hashes[p] for p in change.changed if p in hashes})
    task = build_task_from_snapshot(Snapshot(root=Path.cwd(), files=change.before))
    judgement = Judgement(
        outcome="accepted",
        command=task.test_command,
        files=change.changed,
        diff=unified_diff(change.before, change.after),
        state=state,
        **facts,
    )
    return certify_judgement(judgement, change, task, discover_interpreter(None, {}), SETTINGS)


async def replay(
    folder: Path, certificate: JudgementCertificate, forgery: Forgery | None = None, **options: Any
) -> list[ReplayedClaim]:
    """Write a certificate, forged and sealed again, and return what `verify` says about it."""
    data: CertificateData = json.loads(render_certificate(certificate))
    if forgery is not None:
        forgery(data)
    path = folder / "judgement.json"
    path.write_text(render_certificate(seal_certificate(decode_record(JudgementCertificate, data))))
    return [claim async for claim in verify(path, settings=SETTINGS, **options)]


def add_file(data: CertificateData, path: str, *, is_listed: bool) -> None:
    """Add an empty file to a certificate, and to the list of its hashes."""
    data["contents"][path] = ""
    if is_listed:
        data["project"][path] = hashlib.sha256(b"").hexdigest()
        data["project_hash"] = content_hash(data["project"])


@pytest.mark.parametrize(
    ("forgery", "claim", "detail"),
    [
        (lambda data: data["contents"].update({"cart.py": ""}), "project", "differ: cart.py"),
        (lambda data: data["project"].update({"cart.py": "00"}), "project", "certified hash"),
        (lambda data: add_file(data, "conftest.py", is_listed=False), "project", "conftest.py"),
        (lambda data: add_file(data, "cart.pyc", is_listed=True), "project", "cart.pyc"),
        (lambda data: add_file(data, "sitecustomize.so", is_listed=True), "project", "sitecustomize.so"),
        (lambda data: data.update(links={"cart.py": "."}), "project", "no links to folders of the project: cart.py"),
        (lambda data: data["judgement"].update(diff=data["judgement"]["diff"].replace("* q", "+ q")), "diff", ""),
        (lambda data: data["judgement"]["state"]["files"].update({"cart.py": "00"}), "diff", "certified '00'"),
        (lambda data: data["judgement"]["state"].update(tree="00"), "diff", "digest"),
        (lambda data: data["judgement"].update(files=[]), "diff", "other files"),
        (lambda data: data["judgement"].update(command=["true"]), "checks", "the command is"),
        (lambda data: data.update(language="go"), "checks", "tests python"),
        (lambda data: data.update(protect=["*.py"]), "checks", "cannot be judged"),
        (lambda data: data["policy"].pop("judge"), "policy", "cannot be read"),
        (lambda data: data["policy"]["judge"].update(mistakes=-1), "policy", "cannot be read"),
        (lambda data: data["policy"]["safety"].update(off=["*"]), "policy", 'safety.off is ["*"]'),
    ],
)  # fmt: skip
async def test_a_forged_certificate_is_refuted_before_any_test_runs(
    forgery: Forgery, claim: str, detail: str, tmp_path: Path
) -> None:
    (*confirmed, refuted) = await replay(tmp_path, certify_without_running(), forgery)
    assert all(each.ok for each in confirmed)
    assert (refuted.name, refuted.ok) == (claim, False)
    assert detail in refuted.detail


async def test_a_certificate_that_was_edited_or_has_another_key_is_none(tmp_path: Path) -> None:
    text = render_certificate(certify_without_running())
    for edited in (text.replace('"accepted"', '"rejected"'), text.replace("{", '{"note": 1,', 1), "[]"):
        path = tmp_path / "judgement.json"
        path.write_text(edited)
        (claim,) = [claim async for claim in verify(path, settings=SETTINGS)]
        assert (claim.name, claim.ok) == ("certificate", False)


@pytest.mark.heavy
async def test_a_judgement_that_was_never_made_is_refuted(tmp_path: Path) -> None:
    refuted = (await replay(tmp_path, certify_without_running()))[-1]
    assert (refuted.name, refuted.ok) == ("tests", False)
    assert "found, not certified" in refuted.detail


async def test_files_that_may_hold_secrets_are_not_in_the_certificate(tmp_path: Path) -> None:
    files = {**BASE, "settings.ini": f"key = {KEY}\n".encode()}
    certificate = certify_without_running(ProposedChange(files, {**files, "cart.py": RIGHT.encode()}))
    assert KEY not in render_certificate(certificate)
    assert certificate.contents.keys() == BASE.keys()
    with pytest.raises(UsageError, match=r"leaves out the content of 1 file\(s\), such as 'settings.ini'"):
        await replay(tmp_path, certificate)


async def test_a_change_that_shows_a_secret_gets_no_certificate(write: Write, tmp_path: Path) -> None:
    root = write({"settings.py": f"KEY = {KEY!r}\n"})
    with pytest.raises(UsageError, match=r"would show what looks like a secret in 'settings.py'"):
        await judge(root, JudgeOptions(certificate=tmp_path / "judgement.json"))
    assert not (tmp_path / "judgement.json").exists()


async def test_the_certificate_of_a_large_project_holds_hashes_only() -> None:
    files = {**BASE, "data.bin": bytes(MAX_CONTENT_BYTES)}
    certificate = certify_without_running(ProposedChange(files, {**files, "cart.py": RIGHT.encode()}))
    assert certificate.contents == {}
    assert certificate.project.keys() == files.keys()


async def test_a_quick_judgement_gets_no_certificate(shop: Path, tmp_path: Path) -> None:
    options = JudgeOptions(quick=True, certificate=tmp_path / "judgement.json")
    with pytest.raises(UsageError, match="a quick judgement gets no certificate"):
        await judge(shop, options)


async def test_a_judgement_is_confirmed_from_its_certificate_alone(write: Write, tmp_path: Path) -> None:
    path = tmp_path / "judgement.json"
    root = write({"cart.py": RIGHT})
    judgement = await judge(root, JudgeOptions(certificate=path, settings=SETTINGS))
    assert judgement.certificate_sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    run_git(root, "checkout", "-q", "cart.py")
    claims = [claim async for claim in verify(path, settings=SETTINGS)]
    assert all(claim.ok for claim in claims), claims
    details = {claim.name: claim.detail for claim in claims}
    assert details["verdict"] == "accepted"
    assert details["checks"] == "python -m pytest -q (suggested by the project's files)"
    assert "4 pass with the change, 1 of them only with it" in details["tests"]
    assert details["policy"] == "it is yours"


@pytest.mark.heavy
async def test_a_judgement_is_confirmed_with_the_project_before_and_after_the_change(
    write: Write, tmp_path: Path
) -> None:
    path = tmp_path / "judgement.json"
    root = write({"label.py": "X = 1\n", "old.py": "Y = 1\n", "notes.ini": f"key = {KEY}\n"})
    run_git(root, "add", "-A")
    run_git(root, "commit", "-q", "-m", "More")
    write({"cart.py": RIGHT, "old.py": None, "new.py": "Z = 1\n"})
    await judge(root, JudgeOptions(certificate=path, settings=SETTINGS))
    after = [claim async for claim in verify(path, project=root, settings=SETTINGS)]
    assert all(claim.ok for claim in after), after
    run_git(root, "add", "-A")
    run_git(root, "stash", "-q")
    before = [claim async for claim in verify(path, project=root, settings=SETTINGS)]
    assert before == after
    write({"conftest.py": "raise SystemExit\n"})
    (refuted,) = [claim async for claim in verify(path, project=root, settings=SETTINGS)]
    assert (refuted.name, "conftest.py" in refuted.detail) == ("project", True)


@pytest.fixture(scope="module")
def cheat(tmp_path_factory: pytest.TempPathFactory) -> JudgementCertificate:
    """Return the certificate of a change that makes a failing test pass by another expectation."""
    folder = tmp_path_factory.mktemp("cheat")
    patch = unified_diff(BASE, {**BASE, "test_cart.py": TESTS.replace("4090", "1690").encode()})
    root = folder / "shop"
    root.mkdir()
    for path, content in BASE.items():
        (root / path).write_bytes(content)
    options = JudgeOptions(patch=patch, certificate=folder / "judgement.json", settings=SETTINGS)
    assert asyncio.run(judge(root, options)).outcome == "rejected"
    return decode_record(JudgementCertificate, json.loads((folder / "judgement.json").read_text()))


def accept_by_policy(data: CertificateData) -> None:
    """Change the verdict, the severities and the policy, so that each agrees with the others."""
    data["policy"]["judge"]["accept_tests"] = True
    data["judgement"]["outcome"] = "accepted_with_remarks"
    for finding in data["judgement"]["findings"]:
        finding["severity"] = "remark" if finding["severity"] == "reject" else finding["severity"]


def accept_without_findings(data: CertificateData) -> None:
    data["judgement"].update(outcome="accepted", findings=[])


def leave_out_test(data: CertificateData) -> None:
    command = [*data["judgement"]["command"], "--deselect", MUGS]
    data.update(given_command=shlex.join(command))
    data["judgement"].update(command=command)


def call_flaky(data: CertificateData) -> None:
    data["judgement"]["tests"]["flaky"] = [MUGS]


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("forgery", "claim", "detail"),
    [
        (lambda data: data["judgement"].update(outcome="accepted"), "verdict", "the verdict is rejected"),
        (accept_without_findings, "findings", "found, not certified: reject expectation_follows_code"),
        (lambda data: data["judgement"]["findings"].pop(0), "findings", "found, not certified"),
        (lambda data: data["judgement"]["findings"][0].update(line=1), "findings", "certified, not found"),
        (accept_by_policy, "policy", "by your settings the verdict is rejected: judge.accept_tests is true"),
        (lambda data: data["policy"]["judge"].update(accept_tests=True), "findings", "certified, not found"),
        (lambda data: data["judgement"]["runs"]["before"].update({MUGS: "passed"}), "tests",
         f"certified, not found: {MUGS} passed without the change; found, not certified: {MUGS} failed"),
        (lambda data: data["judgement"]["runs"]["after"].pop(MUGS), "tests", f"{MUGS} passed with the change"),
        (lambda data: data["judgement"]["tests"].update(fixed=[MUGS]), "tests", f"{MUGS} is fixed"),
        (call_flaky, "tests", f"{MUGS} is flaky"),
        (leave_out_test, "tests", MUGS),
        (lambda data: data["judgement"]["guards"].update(mistakes=9, noticed=9), "guards", "certified 9"),
        (lambda data: data["judgement"]["scope"].update(total=9), "tests", "tests ran"),
    ],
)  # fmt: skip
async def test_a_forged_judgement_is_refuted(
    forgery: Forgery, claim: str, detail: str, cheat: JudgementCertificate, tmp_path: Path
) -> None:
    (*confirmed, refuted) = await replay(tmp_path, cheat, forgery)
    assert all(each.ok for each in confirmed)
    assert (refuted.name, refuted.ok) == (claim, False), refuted
    assert detail in refuted.detail


@pytest.mark.heavy
async def test_a_rejected_change_on_another_machine_is_confirmed_with_what_differs(
    cheat: JudgementCertificate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the environment of the current folder is the one of the replay
    monkeypatch.delenv("VIRTUAL_ENV")  # as when the certificate was made
    environment = replace(
        cheat.environment, python="3.8.1", packages={**cheat.environment.packages, "gone": "2"}
    )
    claims = await replay(tmp_path, replace(cheat, environment=environment))
    assert all(claim.ok for claim in claims), claims
    details = {claim.name: claim.detail for claim in claims}
    here = cheat.environment.python
    assert details["environment"] == (
        f"it differs: Python {here} here, 3.8.1 certified, gone missing here, 2 certified"
    )
    assert details["verdict"] == "rejected"


@pytest.mark.heavy
async def test_the_commands_judge_and_verify_agree_until_somebody_edits_the_certificate(
    write: Write, tmp_path: Path
) -> None:
    root, path, statement = (
        write({"cart.py": RIGHT}),
        tmp_path / "judgement.json",
        tmp_path / "statement.json",
    )
    environ = {"SUTURE_HOME": str(tmp_path / "home"), "GITHUB_ACTIONS": "", "SUTURE_JUDGE_MISTAKES": "1"}

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, arguments, env=environ)

    judged = run("judge", str(root), "--certificate", str(path), "--attest", str(statement), "--json")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert json.loads(judged.stdout)["certificate_sha256"] == digest
    assert digest in statement.read_text()
    confirmed = run("verify", str(path))
    assert (confirmed.exit_code, confirmed.stdout.splitlines()[-1]) == (0, "confirmed: Accepted.")
    answer = json.loads(run("verify", str(path), "--json").stdout)
    assert (answer["ok"], answer["judged_by"]["verdict"]) == (True, "accepted")
    path.write_text(path.read_text().replace('"failed"', '"passed"'))
    edited = run("verify", str(path))
    assert (edited.exit_code, edited.stdout.splitlines()) == (
        1,
        ["FALSE     certificate: it was changed after it was sealed", "not confirmed"],
    )
