"""Judging a change over HTTP, with a real server, sandbox and repository."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from interfaces.web.real_server import Server
from interfaces.web.uploaded_projects import BROKEN_PROJECT, write_project
from suture.judge.certificates import JudgementCertificate
from suture.judge.certificates.certificate import parse_any_certificate

pytestmark = [pytest.mark.timeout(300), pytest.mark.heavy]
ROUTE = "/v1/judgements"


@pytest.fixture(scope="module")
def project(folder: Path) -> Path:
    """Commit a project with a failing test, and change its code in the working tree.

    Pytest's configuration lies above it, where no server may read: else the tests would have longer ids.
    """
    root = write_project(folder / "projects" / "cart", BROKEN_PROJECT)
    (root.parent / "pytest.ini").write_text("[pytest]\n")
    author = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
    for arguments in (("init", "-q"), ("add", "-A"), (*author, "commit", "-q", "-m", "The cart")):
        subprocess.run(["git", *arguments], cwd=root.parent, check=True)
    (root / "cart.py").write_text(BROKEN_PROJECT["cart.py"].replace(" + 1", ""))
    return root


@pytest.fixture(scope="module")
def server(folder: Path, project: Path) -> Iterator[Server]:
    """Start a server whose root is the folder of the project."""
    with Server(folder, "--model", "none", "--root", str(project.parent)) as started_server:
        yield started_server


def test_a_change_in_a_root_is_judged_and_leaves_no_run(server: Server, project: Path) -> None:
    response = server.post(ROUTE, {"path": str(project), "test": BARE_PYTEST})
    assert response.status_code == 200, response.text
    report = response.json()
    assert report["ok"] is True, report
    assert report["judgement"]["tests"]["fixed"] == ["test_cart.py::test_total"]
    assert report["facts"]["Proof"] == "1 fixed test fails without the change and passes with it"
    assert server.get("/v1/runs").json()["total"] == 0


def test_the_certificate_of_a_judgement_is_returned_on_request(server: Server, project: Path) -> None:
    report = server.post(ROUTE, {"path": str(project), "test": BARE_PYTEST, "certificate": True}).json()
    text = report["certificate"]
    assert report["judgement"]["certificate_sha256"] == hashlib.sha256(text.encode()).hexdigest()
    certificate = parse_any_certificate(text.encode())
    assert isinstance(certificate, JudgementCertificate)
    assert certificate.judgement.outcome == report["outcome"] == "accepted"
    without = server.post(ROUTE, {"path": str(project), "test": BARE_PYTEST}).json()
    assert (without["certificate"], without["judgement"]["certificate_sha256"]) == ("", "")


def test_a_patch_that_breaks_a_test_is_rejected_with_a_sentence(server: Server, project: Path) -> None:
    patch = (
        "--- a/cart.py\n+++ b/cart.py\n@@ -1,2 +1,2 @@\n def total(prices):\n"
        "-    return sum(prices)\n+    return max(prices)\n"
    )
    report = server.post(ROUTE, {"path": str(project), "test": BARE_PYTEST, "patch": patch}).json()
    assert report["outcome"] == "rejected"
    assert report["headline"].startswith("Rejected: test_cart.py::test_total fails with the change")
    assert report["judgement"]["findings"][0]["sentence"] in report["headline"]
    listed = server.get(ROUTE, params={"limit": 1}).json()
    (newest,) = listed["judgements"]
    assert {name: newest[name] for name in ("id", "path", "outcome", "headline")} == {
        name: report[name] for name in ("id", "path", "outcome", "headline")
    }
    assert listed["total"] > 1


def test_requests_that_cannot_be_judged_get_a_problem_with_a_remedy(server: Server, project: Path) -> None:
    for path in (str(project.parent.parent), "/", str(project / ".." / ".." / "home")):
        assert server.post(ROUTE, {"path": path}).status_code == 403
    both = server.post(ROUTE, {"path": str(project), "base": "HEAD", "staged": True})
    assert (both.status_code, "at most one" in both.json()["detail"]) == (400, True)
    unknown = server.post(ROUTE, {"path": str(project), "base": "nowhere", "test": BARE_PYTEST})
    assert (unknown.status_code, unknown.json()["detail"]) == (409, "there is no commit 'nowhere'")
    late = server.post(ROUTE, {"path": str(project), "test": BARE_PYTEST, "seconds": 0.01})
    assert (late.status_code, late.json()["remedy"]) == (409, "raise budget.seconds")
    assert server.post(ROUTE, {"path": str(project), "steps": "/tmp/x"}).status_code == 422
