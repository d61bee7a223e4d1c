"""Reading the pipeline, the gates, and untrusted text in what Suture writes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from interfaces.ci.failing_pipelines import ADA, RED, commit, git, make_repository
from suture.core.records import CheckOutcome, Counterexample, Verdict
from suture.core.settings import Settings, load_settings
from suture.errors import UsageError
from suture.interfaces.ci import REFUSAL_TEXTS, HealReport, Refusal, read_pipeline
from suture.interfaces.ci.ci_checkout import base_files, read_checkout
from suture.interfaces.ci.ci_pipeline import Pipeline
from suture.interfaces.ci.delivery_gates import (
    check_change_gates,
    check_pipeline_gates,
    forbidden_paths,
)
from suture.interfaces.ci.heal_report import CERTIFICATE, write_report_folder
from suture.interfaces.ci.line_edits import line_edits_between, widen_to_replacement
from suture.interfaces.ci.markdown_report import code_block, code_span, is_shown_whole, render_job_summary
from suture.interfaces.ci.pipeline_heal import HealRequest, deselect_tests, plan_heal, split_deselected
from suture.interfaces.ci.report_formats import render_junit, render_sarif
from suture.interfaces.cli.app import app

HOSTILE = "a`b``c|d\n```\n<script>@everyone</script>\x1b[31m\u202e::error::##[x]"
ROOT = Path(__file__).parents[3]


def settings(**ci: Any) -> Settings:
    return Settings.model_validate({"ci": ci})


def check_change(**given: Any) -> Refusal | None:
    change = {"files": ("a.py",), "lines": 2, "confidence": 0.9, "evidence": "nonce", **given}
    return check_change_gates(settings(), **change)


@pytest.fixture
def repository(tmp_path: Path) -> tuple[Path, str, str]:
    folder = tmp_path / "repository"
    return folder, *make_repository(RED[0], folder)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"evidence": "exit_status"}, "weak_evidence"),
        ({"evidence": None}, "weak_evidence"),
        ({"confidence": 0.69}, "low_confidence"),
        ({"files": ("a", "b", "c", "d")}, "too_many_files"),
        ({"lines": 41}, "too_many_lines"),
        ({"files": ("uv.lock",)}, "forbidden_path"),
        ({"files": ("app/migrations/0001.py",)}, "forbidden_path"),
        ({"files": (".github/workflows/x.yml",)}, "forbidden_path"),
        ({"files": ("conf/.env.local",)}, "forbidden_path"),
        ({"files": ("client_secrets.py",)}, "forbidden_path"),
    ],
)
def test_each_gate_refuses_by_its_name(given: dict[str, Any], reason: str) -> None:
    refusal = check_change(**given)
    assert refusal is not None
    assert refusal.reason == reason


def test_what_passes_every_gate_is_not_refused() -> None:
    assert check_change() is None
    assert forbidden_paths(["migrations/a.py"], ()) == []


def test_every_refusal_is_documented() -> None:
    page = (ROOT / "docs" / "ci.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \|", page.partition("## Gates")[2], re.MULTILINE)
    assert rows == list(REFUSAL_TEXTS)


@pytest.mark.parametrize(
    ("author", "message", "reason"),
    [
        (ADA, "Fix", None),
        (("renovate[bot]", "x@y.z"), "Fix", "bot_commit"),
        (("R", "1+dependabot[bot]@users.noreply.example"), "Fix", "bot_commit"),
        (ADA, "Heal a.py\n\nHealed-by: suture 1 (run 2)", "bot_commit"),
        (ADA, "Say what a line `Healed-by: suture` means", None),
    ],
)
def test_whose_commit_it_is(
    repository: tuple[Path, str, str], author: tuple[str, str], message: str, reason: str | None
) -> None:
    folder, base, _ = repository
    (folder / "more.txt").write_text("more")
    commit(folder, author, message)
    refusal = check_pipeline_gates(
        Pipeline(base=base), read_checkout(folder, Pipeline(base=base)), settings()
    )
    assert (refusal.reason if refusal else None) == reason


def test_heals_of_a_branch_are_counted(repository: tuple[Path, str, str]) -> None:
    folder, base, _ = repository
    for number in range(3):
        (folder / "more.txt").write_text(str(number))
        commit(folder, ADA, f"Heal {number}\n\nHealed-by: suture 1 (run {number})")
    (folder / "more.txt").write_text("by hand")
    commit(folder, ADA, "By hand")
    of_pull = Pipeline(base=base, pull=7)
    checkout = read_checkout(folder, of_pull)
    assert checkout.heals == 3
    refusal = check_pipeline_gates(of_pull, checkout, settings())
    assert refusal is not None
    assert refusal.reason == "too_many_heals"
    assert check_pipeline_gates(of_pull, checkout, settings(max_heals=4)) is None


def test_a_fork_is_healed_only_where_no_key_is_there(repository: tuple[Path, str, str]) -> None:
    fork = Pipeline(is_fork=True)
    checkout = read_checkout(repository[0], fork)
    assert check_pipeline_gates(fork, checkout, settings()) is None
    with_key = settings().model_copy(
        update={"keys": Settings().keys.model_copy(update={"ci": SecretStr("x")})}
    )
    refusal = check_pipeline_gates(fork, checkout, with_key)
    assert refusal is not None
    assert (refusal.reason, "x" in refusal.detail.split()) == ("fork_with_secrets", False)


def test_a_clone_without_its_history_has_nothing_to_compare_with(
    repository: tuple[Path, str, str], tmp_path: Path
) -> None:
    folder, base, _ = repository
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{folder}", str(tmp_path / "shallow"))
    checkout = read_checkout(tmp_path / "shallow", Pipeline(base=base))
    refusal = check_pipeline_gates(Pipeline(base=base), checkout, settings())
    assert refusal is not None
    assert refusal.reason == "base_unknown"
    with pytest.raises(UsageError, match="no commit"):
        read_checkout(folder, Pipeline(), "--upload-pack=touch")


def test_another_commit_than_the_services_is_refused(repository: tuple[Path, str, str]) -> None:
    with pytest.raises(UsageError, match="checked out"):
        read_checkout(repository[0], Pipeline(commit="a" * 40))


def test_the_base_has_its_own_files_beside_what_git_does_not_keep(repository: tuple[Path, str, str]) -> None:
    folder, base, _ = repository
    now = {"shop.py": b"x", "built.py": b"made"}
    files = base_files(read_checkout(folder, Pipeline(base=base)), now)
    assert files == {"README.md": b"A shop.\n", "built.py": b"made"}


def test_a_plan_names_the_commit_and_a_branch_only_where_a_service_says_one(
    repository: tuple[Path, str, str],
) -> None:
    folder, _, red = repository
    asked = HealRequest(root=folder, test="python -m pytest -q")
    for pipeline, expected in ((Pipeline(), red[:12]), (Pipeline(branch="topic"), f"{red[:12]} of topic")):
        refusal, choices = plan_heal(asked, pipeline, settings())
        assert refusal is None
        assert choices["commit"] == expected


def github(tmp_path: Path, event: object, name: str = "push", **more: str) -> Pipeline:
    path = tmp_path / "event.json"
    path.write_text(json.dumps(event))
    known = {"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "a/b", "GITHUB_EVENT_PATH": str(path)}
    return read_pipeline({**known, "GITHUB_EVENT_NAME": name, **more})


def test_github_says_where_code_comes_from(tmp_path: Path) -> None:
    head = {"sha": "1" * 40, "ref": "x", "repo": None}
    pull = {"number": 3, "head": head, "base": {"sha": "2" * 40}, "user": {"login": "tool", "type": "Bot"}}
    found = github(tmp_path, {"pull_request": pull}, "pull_request")
    assert (found.is_fork, found.pull, found.base, found.actors) == (True, 3, "2" * 40, ("tool[bot]",))
    later = {"head_sha": "3" * 40, "head_branch": "y", "head_repository": {"full_name": "eve/b"}}
    assert github(tmp_path, {"workflow_run": later}, "workflow_run").is_fork
    pushed = github(tmp_path, {"before": "0" * 40}, GITHUB_REF_TYPE="branch", GITHUB_REF_NAME="main")
    assert (pushed.branch, pushed.base, pushed.is_fork) == ("main", "", False)


@pytest.mark.parametrize(
    ("event", "name", "more"),
    [
        ([], "push", {}),
        ({}, "pull_request", {}),
        ({}, "push", {"GITHUB_REPOSITORY": "a b/../c"}),
        ({"pull_request": {"head": {"ref": "a\nb"}}}, "pull_request", {}),
        ({}, "push", {"GITHUB_EVENT_PATH": "/nowhere"}),
    ],
)
def test_an_event_that_makes_no_sense_is_an_error(
    tmp_path: Path, event: object, name: str, more: dict[str, str]
) -> None:
    with pytest.raises(UsageError):
        github(tmp_path, event, name, **more)


def test_gitlab_says_where_code_comes_from() -> None:
    known = {
        "GITLAB_CI": "true",
        "CI_PROJECT_ID": "42",
        "CI_COMMIT_SHA": "1" * 40,
        "CI_COMMIT_BRANCH": "main",
    }
    assert not read_pipeline(known).is_fork
    assert read_pipeline({**known, "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "43"}).is_fork
    with pytest.raises(UsageError):
        read_pipeline({**known, "CI_PROJECT_ID": "../43"})


def test_a_project_may_only_make_gates_stricter(tmp_path: Path) -> None:
    (tmp_path / "suture.toml").write_text("[ci]\nmax_lines = 10\nconfidence = 0.9\n")
    loaded = load_settings(tmp_path, {}, {"HOME": str(tmp_path)})
    assert (loaded.settings.ci.max_lines, loaded.settings.ci.confidence) == (10, 0.9)
    for looser in ("max_lines = 400", "forbidden = []", "new_only = false", 'bots = ""', "max_heals = 9"):
        (tmp_path / "suture.toml").write_text(f"[ci]\n{looser}\n")
        with pytest.raises(UsageError):
            load_settings(tmp_path, {}, {"HOME": str(tmp_path)})


def test_text_of_others_stays_text() -> None:
    fence_python = code_block(HOSTILE, "diff").splitlines()
    assert fence_python[0] == "````diff"
    assert fence_python[-1] == "````"
    assert "````" not in "\n".join(fence_python[1:-1])
    assert "\x1b" not in code_block(HOSTILE)
    assert code_span(HOSTILE).startswith("````")
    assert "\n" not in code_span(HOSTILE)
    assert len(code_span("x" * 10_000)) < 300
    assert len(code_block("y" * 1_000_000)) < 21_000
    assert code_span("") == "`  `"


def test_what_a_suggestion_would_alter_is_none() -> None:
    assert is_shown_whole("    goods += price\n\n    return goods")
    for text in ("", "a = 1\n", "a = 1 ", "a = '\x0c'", "a = '\u202e'", "a" * 30_000):
        assert not is_shown_whole(text)


def test_a_report_replaces_files_that_the_checkout_brought_along(
    hostile_report: HealReport, tmp_path: Path
) -> None:
    other, folder = tmp_path / "other", tmp_path / "delivered"
    other.write_text("as it was")
    folder.mkdir()
    (folder / "report.json").hardlink_to(other)
    (folder / "certificate.json").write_text("{}")
    texts = {"summary.md": render_job_summary(hostile_report)}
    write_report_folder(hostile_report, texts, folder, checkout=tmp_path)
    assert other.read_text() == "as it was"
    assert sorted(one.name for one in folder.iterdir()) == ["fix.patch", "report.json", "summary.md"]


@pytest.mark.parametrize(
    ("link", "folder"),
    [
        ("suture-heal", "suture-heal"),
        ("suture-heal", "suture-heal/reports"),
        ("reports", "reports/suture-heal"),
        ("reports", "reports/../suture-heal"),
        ("suture-heal/summary.md", "suture-heal"),
        ("suture-heal/other", "suture-heal"),
    ],
)
def test_a_link_of_the_checkout_redirects_no_report(
    link: str, folder: str, hostile_report: HealReport, tmp_path: Path
) -> None:
    checkout, outside = tmp_path / "checkout", tmp_path / "outside"
    outside.mkdir()
    (checkout / link).parent.mkdir(parents=True)
    (checkout / link).symlink_to(outside)
    with pytest.raises(UsageError, match="is a symbolic link") as refused:
        write_report_folder(hostile_report, {}, checkout / folder, checkout=checkout)
    assert "--out" in refused.value.remedy
    assert not list(outside.iterdir())


def test_a_link_above_the_checkout_is_the_users_own(hostile_report: HealReport, tmp_path: Path) -> None:
    checkout = tmp_path / "disk" / "checkout"
    checkout.mkdir(parents=True)
    (tmp_path / "work").symlink_to(tmp_path / "disk")
    write_report_folder(hostile_report, {}, tmp_path / "work" / "checkout" / "out", checkout=checkout)
    assert (checkout / "out" / "report.json").is_file()


def test_a_heal_is_refused_before_it_starts_if_a_link_would_take_its_reports(
    repository: tuple[Path, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout, outside = repository[0], tmp_path / "outside"
    outside.mkdir()
    (checkout / "suture-heal").symlink_to(outside)
    monkeypatch.chdir(checkout)
    ended = CliRunner().invoke(app, ["ci", "heal", "--test", "python -m pytest -q"])
    assert ended.exit_code == 2
    assert "is a symbolic link" in ended.output
    assert not list(outside.iterdir())


@pytest.fixture
def hostile_report() -> HealReport:
    fact = Counterexample(check_id=HOSTILE, exception=f"Error: {HOSTILE}\x00\ud800", file="a b.py", line=3)
    outcome = CheckOutcome(check_id=HOSTILE, status="failed", counterexample=fact)
    verdict = Verdict(candidate="", outcomes=(outcome,), evidence="nonce")
    files = {"a b.py": b"one\ntwo\n"}, {"a b.py": b"one\nand\ntwo\n"}
    return HealReport(
        outcome="healed",
        detail=HOSTILE,
        commit="1" * 40,
        failing=(HOSTILE,),
        verdict=verdict,
        diff=f"+{HOSTILE}\n",
        edits=line_edits_between(*files),
        evidence="nonce",
    )


def test_hostile_names_end_in_files_that_can_be_read(hostile_report: HealReport) -> None:
    root = ElementTree.fromstring(render_junit(hostile_report).encode())
    assert [case.find("failure") is not None for case in root.iter("testcase")] == [True, False]
    summary = render_job_summary(hostile_report)
    assert "\x1b" not in summary
    assert not re.search(r"^::", summary, re.MULTILINE)


def test_a_folder_keeps_no_certificate_of_an_earlier_heal(tmp_path: Path) -> None:
    (tmp_path / "made.json").write_text("{}")
    write_report_folder(
        HealReport(outcome="healed", certificate=tmp_path / "made.json"),
        {},
        tmp_path / "out",
        checkout=tmp_path,
    )
    assert (tmp_path / "out" / CERTIFICATE).is_file()
    write_report_folder(HealReport(outcome="refused", reason="not_new"), {}, tmp_path / "out", checkout=tmp_path)
    assert not (tmp_path / "out" / CERTIFICATE).exists()


REQUIRED = {
    "sarifLog": ("version", "runs"),
    "run": ("tool",),
    "toolComponent": ("name",),
    "reportingDescriptor": ("id",),
    "result": ("message",),
    "fix": ("artifactChanges",),
    "artifactChange": ("artifactLocation", "replacements"),
    "replacement": ("deletedRegion",),
}
"""What SARIF 2.1.0's schema requires of the objects that we write."""


def test_sarif_has_what_its_schema_requires(hostile_report: HealReport) -> None:
    log = json.loads(render_sarif(hostile_report))
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    fixes = [fix for result in run["results"] for fix in result.get("fixes", ())]
    changes = [one for fix in fixes for one in fix["artifactChanges"]]
    replacements = [one for change in changes for one in change["replacements"]]
    found = {
        "sarifLog": [log],
        "run": [run],
        "toolComponent": [driver],
        "reportingDescriptor": driver["rules"],
        "result": run["results"],
        "fix": fixes,
        "artifactChange": changes,
        "replacement": replacements,
    }
    for kind, keys in REQUIRED.items():
        assert found[kind]
        assert all(key in one for one in found[kind] for key in keys), kind
    assert log["version"] == "2.1.0"
    assert {result["ruleId"] for result in run["results"]} <= {rule["id"] for rule in driver["rules"]}
    assert all(result["level"] in ("error", "note") for result in run["results"])
    (location,) = run["results"][0]["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "a%20b.py"
    region = replacements[0]["deletedRegion"]
    assert region == {"startLine": 2, "startColumn": 1, "endLine": 2, "endColumn": 1}


def test_an_edit_that_only_adds_takes_a_line_along() -> None:
    before, after = {"a.py": b"one\ntwo\n"}, {"a.py": b"zero\none\nand\ntwo\n"}
    found = [widen_to_replacement(edit, before, "in/") for edit in line_edits_between(before, after)]
    assert [(edit.path, edit.start, edit.end, edit.new) for edit in found] == [
        ("in/a.py", 1, 1, ("zero", "one")),
        ("in/a.py", 1, 1, ("one", "and")),
    ]


def test_a_command_that_leaves_tests_out_is_known_again() -> None:
    command = ("python", "-m", "pytest")
    tests = frozenset({"a.py::test[x y]", "b.py::test"})
    assert split_deselected(deselect_tests(command, tests)) == (command, tuple(sorted(tests)))
