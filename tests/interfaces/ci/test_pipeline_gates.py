"""Reading the pipeline, the gates on a delivery, and untrusted text in reports."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from interfaces.ci.failing_pipelines import ADA, FAILING_PIPELINES, commit, git, make_repository
from suture.core.ledger.run_folder import RunFolder
from suture.core.records import Candidate, CheckOutcome, Counterexample, Reason, Result, Verdict
from suture.core.settings import Settings, load_settings
from suture.errors import UsageError
from suture.interfaces.ci import REFUSAL_TEXTS, HealReport, Refusal, pipeline_heal, read_pipeline
from suture.interfaces.ci.ci_checkout import base_files, read_checkout
from suture.interfaces.ci.ci_pipeline import Pipeline
from suture.interfaces.ci.delivery_gates import (
    check_change_gates,
    check_pipeline_gates,
    forbidden_paths,
)
from suture.interfaces.ci.heal_report import CERTIFICATE, write_report_folder
from suture.interfaces.ci.line_edits import line_edits_between, widen_to_replacement
from suture.interfaces.ci.markdown_summary import code_block, code_span, is_shown_whole, render_job_summary
from suture.interfaces.ci.pipeline_heal import (
    HealRequest,
    deselect_tests,
    load_heal_task,
    plan_heal,
    split_deselected,
)
from suture.interfaces.ci.report_formats import render_junit, render_sarif
from suture.interfaces.cli.app import app

HOSTILE_TEXT = "a`b``c|d\n```\n<script>@everyone</script>\x1b[31m\u202e::error::##[x]"
ROOT = Path(__file__).parents[3]


def make_settings(**ci: Any) -> Settings:
    """Return settings with values of the group `ci`."""
    return Settings.model_validate({"ci": ci})


def check_change(**properties: Any) -> Refusal | None:
    """Check the gates for an acceptable change with some other properties."""
    change = {"files": ("a.py",), "lines": 2, "confidence": 0.9, "evidence": "nonce", **properties}
    return check_change_gates(make_settings(), **change)


@pytest.fixture
def repository(tmp_path: Path) -> tuple[Path, str, str]:
    """Make a repository, and return its folder and the hashes of its two commits."""
    folder = tmp_path / "repository"
    return folder, *make_repository(FAILING_PIPELINES[0], folder)


@pytest.mark.parametrize(
    ("properties", "reason"),
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
def test_each_gate_refuses_with_its_own_reason(properties: dict[str, Any], reason: str) -> None:
    refusal = check_change(**properties)
    assert refusal is not None
    assert refusal.reason == reason


def test_a_change_that_passes_every_gate_is_not_refused() -> None:
    assert check_change() is None
    assert forbidden_paths(["migrations/a.py"], ()) == []


def test_every_refusal_is_documented() -> None:
    page = (ROOT / "docs" / "ci.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \|", page.partition("## Gates")[2], re.MULTILINE)
    assert rows == list(REFUSAL_TEXTS)


@pytest.mark.asyncio
@pytest.mark.parametrize(("has_certificate", "name"), [(True, "healed"), (False, "refused: no_certificate")])
async def test_a_heal_without_a_certificate_is_refused(
    has_certificate: bool,
    name: str,
    repository: tuple[Path, str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = RunFolder(tmp_path / "runs" / "one")
    run.path.mkdir(parents=True)
    run.ledger_path.touch()
    if has_certificate:
        (run.path / CERTIFICATE).write_text("{}")
    result = Result(
        run_id=run.id,
        outcome="healed",
        reason=Reason(code="checks_pass"),
        candidate=Candidate(files={"shop.py": ""}, origin="mutation"),
        evidence="nonce",
        confidence=0.9,
    )

    async def heal(*_: object) -> Result:
        return result

    monkeypatch.setattr(pipeline_heal, "heal", heal)
    settings = Settings.model_validate({"paths": {"home": tmp_path}})
    task = load_heal_task(HealRequest(root=repository[0], test="python -m pytest -q"), settings)
    report = await pipeline_heal._heal_and_gate(HealReport(outcome=""), task, repository[0], None, settings)  # type: ignore[arg-type] # no sandbox is used

    assert report.name == name
    assert (report.certificate is not None) == has_certificate


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
def test_commits_of_bots_and_of_suture_are_refused(
    repository: tuple[Path, str, str], author: tuple[str, str], message: str, reason: str | None
) -> None:
    folder, base, _ = repository
    (folder / "more.txt").write_text("more")
    commit(folder, author, message)

    refusal = check_pipeline_gates(
        Pipeline(base=base), read_checkout(folder, Pipeline(base=base)), make_settings()
    )

    assert (refusal.reason if refusal else None) == reason


def test_heals_of_a_branch_are_counted(repository: tuple[Path, str, str]) -> None:
    folder, base, _ = repository
    for number in range(3):
        (folder / "more.txt").write_text(str(number))
        commit(folder, ADA, f"Heal {number}\n\nHealed-by: suture 1 (run {number})")
    (folder / "more.txt").write_text("by hand")
    commit(folder, ADA, "By hand")
    pull_pipeline = Pipeline(base=base, pull=7)
    checkout = read_checkout(folder, pull_pipeline)
    assert checkout.heals == 3

    refusal = check_pipeline_gates(pull_pipeline, checkout, make_settings())
    assert refusal is not None
    assert refusal.reason == "too_many_heals"
    assert check_pipeline_gates(pull_pipeline, checkout, make_settings(max_heals=4)) is None


def test_a_fork_is_healed_only_without_model_keys(repository: tuple[Path, str, str]) -> None:
    fork = Pipeline(is_fork=True)
    checkout = read_checkout(repository[0], fork)
    assert check_pipeline_gates(fork, checkout, make_settings()) is None

    settings_with_key = make_settings().model_copy(
        update={"keys": Settings().keys.model_copy(update={"ci": SecretStr("x")})}
    )
    refusal = check_pipeline_gates(fork, checkout, settings_with_key)
    assert refusal is not None
    assert (refusal.reason, "x" in refusal.detail.split()) == ("fork_with_secrets", False)


def test_a_shallow_clone_has_no_known_base(repository: tuple[Path, str, str], tmp_path: Path) -> None:
    folder, base, _ = repository
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{folder}", str(tmp_path / "shallow"))
    checkout = read_checkout(tmp_path / "shallow", Pipeline(base=base))

    refusal = check_pipeline_gates(Pipeline(base=base), checkout, make_settings())

    assert refusal is not None
    assert refusal.reason == "base_unknown"
    with pytest.raises(UsageError, match="no commit"):
        read_checkout(folder, Pipeline(), "--upload-pack=touch")


def test_a_checkout_of_another_commit_is_refused(repository: tuple[Path, str, str]) -> None:
    with pytest.raises(UsageError, match="checked out"):
        read_checkout(repository[0], Pipeline(commit="a" * 40))


def test_a_pipeline_delivers_no_change_of_a_proposer(repository: tuple[Path, str, str]) -> None:
    settings = Settings.model_validate({"proposer": {"command": "true"}})
    with pytest.raises(UsageError, match="judged, not certified"):
        plan_heal(HealRequest(root=repository[0]), Pipeline(), settings)


def test_base_files_include_current_files_that_git_does_not_track(repository: tuple[Path, str, str]) -> None:
    folder, base, _ = repository
    current_files = {"shop.py": b"x", "built.py": b"made"}
    files = base_files(read_checkout(folder, Pipeline(base=base)), current_files)
    assert files == {"README.md": b"A shop.\n", "built.py": b"made"}


def test_a_plan_names_the_commit_and_a_known_branch(
    repository: tuple[Path, str, str],
) -> None:
    folder, _, failing_commit = repository
    request = HealRequest(root=folder, test="python -m pytest -q")
    for pipeline, expected in (
        (Pipeline(), failing_commit[:12]),
        (Pipeline(branch="topic"), f"{failing_commit[:12]} of topic"),
    ):
        refusal, choices = plan_heal(request, pipeline, make_settings())
        assert refusal is None
        assert choices["commit"] == expected


def read_github_pipeline(
    tmp_path: Path, event: object, name: str = "push", **variables_to_add: str
) -> Pipeline:
    """Write an event file, and read the pipeline from GitHub's variables."""
    path = tmp_path / "event.json"
    path.write_text(json.dumps(event))
    variables = {"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "a/b", "GITHUB_EVENT_PATH": str(path)}
    return read_pipeline({**variables, "GITHUB_EVENT_NAME": name, **variables_to_add})


def test_github_variables_name_the_source_of_the_code(tmp_path: Path) -> None:
    head = {"sha": "1" * 40, "ref": "x", "repo": None}
    pull = {"number": 3, "head": head, "base": {"sha": "2" * 40}, "user": {"login": "tool", "type": "Bot"}}
    pipeline_source = read_github_pipeline(tmp_path, {"pull_request": pull}, "pull_request")
    assert (pipeline_source.is_fork, pipeline_source.pull, pipeline_source.base, pipeline_source.actors) == (
        True,
        3,
        "2" * 40,
        ("tool[bot]",),
    )

    workflow_run = {"head_sha": "3" * 40, "head_branch": "y", "head_repository": {"full_name": "eve/b"}}
    assert read_github_pipeline(tmp_path, {"workflow_run": workflow_run}, "workflow_run").is_fork

    push_pipeline = read_github_pipeline(
        tmp_path, {"before": "0" * 40}, GITHUB_REF_TYPE="branch", GITHUB_REF_NAME="main"
    )
    assert (push_pipeline.branch, push_pipeline.base, push_pipeline.is_fork) == ("main", "", False)


@pytest.mark.parametrize(
    ("event", "name", "variables_to_add"),
    [
        ([], "push", {}),
        ({}, "pull_request", {}),
        ({}, "push", {"GITHUB_REPOSITORY": "a b/../c"}),
        ({"pull_request": {"head": {"ref": "a\nb"}}}, "pull_request", {}),
        ({}, "push", {"GITHUB_EVENT_PATH": "/nowhere"}),
    ],
)
def test_an_invalid_event_is_an_error(
    tmp_path: Path, event: object, name: str, variables_to_add: dict[str, str]
) -> None:
    with pytest.raises(UsageError):
        read_github_pipeline(tmp_path, event, name, **variables_to_add)


def test_gitlab_variables_name_the_source_of_the_code() -> None:
    variables = {
        "GITLAB_CI": "true",
        "CI_PROJECT_ID": "42",
        "CI_COMMIT_SHA": "1" * 40,
        "CI_COMMIT_BRANCH": "main",
    }

    assert not read_pipeline(variables).is_fork
    assert read_pipeline({**variables, "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "43"}).is_fork
    with pytest.raises(UsageError):
        read_pipeline({**variables, "CI_PROJECT_ID": "../43"})


def test_a_project_can_only_make_gates_stricter(tmp_path: Path) -> None:
    (tmp_path / "suture.toml").write_text("[ci]\nmax_lines = 10\nconfidence = 0.9\n")
    loaded = load_settings(tmp_path, {}, {"HOME": str(tmp_path)})
    assert (loaded.settings.ci.max_lines, loaded.settings.ci.confidence) == (10, 0.9)

    for looser_setting in (
        "max_lines = 400",
        "forbidden = []",
        "new_only = false",
        'bots = ""',
        "max_heals = 9",
    ):
        (tmp_path / "suture.toml").write_text(f"[ci]\n{looser_setting}\n")
        with pytest.raises(UsageError):
            load_settings(tmp_path, {}, {"HOME": str(tmp_path)})


def test_untrusted_text_is_escaped_in_markdown() -> None:
    fenced_lines = code_block(HOSTILE_TEXT, "diff").splitlines()

    assert fenced_lines[0] == "````diff"
    assert fenced_lines[-1] == "````"
    assert "````" not in "\n".join(fenced_lines[1:-1])
    assert "\x1b" not in code_block(HOSTILE_TEXT)
    assert code_span(HOSTILE_TEXT).startswith("````")
    assert "\n" not in code_span(HOSTILE_TEXT)
    assert len(code_span("x" * 10_000)) < 300
    assert len(code_block("y" * 1_000_000)) < 21_000
    assert code_span("") == "`  `"


def test_text_that_a_suggestion_would_alter_is_not_shown_whole() -> None:
    assert is_shown_whole("    goods += price\n\n    return goods")
    for text in ("", "a = 1\n", "a = 1 ", "a = '\x0c'", "a = '\u202e'", "a" * 30_000):
        assert not is_shown_whole(text)


def test_a_report_replaces_files_of_the_checkout(hostile_report: HealReport, tmp_path: Path) -> None:
    linked_file, folder = tmp_path / "other", tmp_path / "delivered"
    linked_file.write_text("as it was")
    folder.mkdir()
    (folder / "report.json").hardlink_to(linked_file)
    (folder / "certificate.json").write_text("{}")
    texts = {"summary.md": render_job_summary(hostile_report)}

    write_report_folder(hostile_report, texts, folder, checkout=tmp_path)

    assert linked_file.read_text() == "as it was"
    assert sorted(entry.name for entry in folder.iterdir()) == ["fix.patch", "report.json", "summary.md"]


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
def test_a_report_does_not_follow_a_link_of_the_checkout(
    link: str, folder: str, hostile_report: HealReport, tmp_path: Path
) -> None:
    checkout, outside = tmp_path / "checkout", tmp_path / "outside"
    outside.mkdir()
    (checkout / link).parent.mkdir(parents=True)

    (checkout / link).symlink_to(outside)

    with pytest.raises(UsageError, match="is a symbolic link") as refusal_error:
        write_report_folder(hostile_report, {}, checkout / folder, checkout=checkout)
    assert "--out" in refusal_error.value.remedy
    assert not list(outside.iterdir())


def test_a_report_follows_a_link_above_the_checkout(hostile_report: HealReport, tmp_path: Path) -> None:
    checkout = tmp_path / "disk" / "checkout"
    checkout.mkdir(parents=True)
    (tmp_path / "work").symlink_to(tmp_path / "disk")
    write_report_folder(hostile_report, {}, tmp_path / "work" / "checkout" / "out", checkout=checkout)
    assert (checkout / "out" / "report.json").is_file()


def test_a_heal_with_a_linked_report_folder_is_refused_before_it_starts(
    repository: tuple[Path, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout, outside = repository[0], tmp_path / "outside"
    outside.mkdir()
    (checkout / "suture-heal").symlink_to(outside)
    monkeypatch.chdir(checkout)

    command_result = CliRunner().invoke(app, ["ci", "heal", "--test", "python -m pytest -q"])

    assert command_result.exit_code == 2
    assert "is a symbolic link" in command_result.output
    assert not list(outside.iterdir())


@pytest.fixture
def hostile_report() -> HealReport:
    """Return a report in which all texts are hostile."""
    fact = Counterexample(
        check_id=HOSTILE_TEXT, exception=f"Error: {HOSTILE_TEXT}\x00\ud800", file="a b.py", line=3
    )
    outcome = CheckOutcome(check_id=HOSTILE_TEXT, status="failed", counterexample=fact)
    verdict = Verdict(candidate="", outcomes=(outcome,), evidence="nonce")
    files = {"a b.py": b"one\ntwo\n"}, {"a b.py": b"one\nand\ntwo\n"}
    return HealReport(
        outcome="healed",
        detail=HOSTILE_TEXT,
        commit="1" * 40,
        failing=(HOSTILE_TEXT,),
        verdict=verdict,
        diff=f"+{HOSTILE_TEXT}\n",
        edits=line_edits_between(*files),
        evidence="nonce",
    )


def test_reports_with_hostile_names_can_be_parsed(hostile_report: HealReport) -> None:
    root = ElementTree.fromstring(render_junit(hostile_report).encode())
    assert [case.find("failure") is not None for case in root.iter("testcase")] == [True, False]
    summary = render_job_summary(hostile_report)
    assert "\x1b" not in summary
    assert not re.search(r"^::", summary, re.MULTILINE)


def test_a_report_removes_the_certificate_of_an_earlier_heal(tmp_path: Path) -> None:
    (tmp_path / "made.json").write_text("{}")
    write_report_folder(
        HealReport(outcome="healed", certificate=tmp_path / "made.json"),
        {},
        tmp_path / "out",
        checkout=tmp_path,
    )
    assert (tmp_path / "out" / CERTIFICATE).is_file()

    write_report_folder(
        HealReport(outcome="refused", reason="not_new"), {}, tmp_path / "out", checkout=tmp_path
    )
    assert not (tmp_path / "out" / CERTIFICATE).exists()


REQUIRED_SARIF_FIELDS = {
    "sarifLog": ("version", "runs"),
    "run": ("tool",),
    "toolComponent": ("name",),
    "reportingDescriptor": ("id",),
    "result": ("message",),
    "fix": ("artifactChanges",),
    "artifactChange": ("artifactLocation", "replacements"),
    "replacement": ("deletedRegion",),
}
"""Type of object -> the fields that the schema of SARIF 2.1.0 requires."""


def test_sarif_contains_the_required_fields(hostile_report: HealReport) -> None:
    log = json.loads(render_sarif(hostile_report))
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    fixes = [fix for result in run["results"] for fix in result.get("fixes", ())]
    changes = [entry for fix in fixes for entry in fix["artifactChanges"]]
    replacements = [entry for change in changes for entry in change["replacements"]]
    objects = {
        "sarifLog": [log],
        "run": [run],
        "toolComponent": [driver],
        "reportingDescriptor": driver["rules"],
        "result": run["results"],
        "fix": fixes,
        "artifactChange": changes,
        "replacement": replacements,
    }
    for kind, keys in REQUIRED_SARIF_FIELDS.items():
        assert objects[kind]
        assert all(key in item for item in objects[kind] for key in keys), kind
    assert log["version"] == "2.1.0"
    assert {result["ruleId"] for result in run["results"]} <= {rule["id"] for rule in driver["rules"]}
    assert all(result["level"] in ("error", "note") for result in run["results"])

    (location,) = run["results"][0]["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "a%20b.py"

    region = replacements[0]["deletedRegion"]
    assert region == {"startLine": 2, "startColumn": 1, "endLine": 2, "endColumn": 1}


def test_an_insertion_is_widened_to_a_replacement() -> None:
    before, after = {"a.py": b"one\ntwo\n"}, {"a.py": b"zero\none\nand\ntwo\n"}
    edits = [widen_to_replacement(edit, before, "in/") for edit in line_edits_between(before, after)]
    assert [(edit.path, edit.start, edit.end, edit.new) for edit in edits] == [
        ("in/a.py", 1, 1, ("zero", "one")),
        ("in/a.py", 1, 1, ("one", "and")),
    ]


def test_deselected_tests_can_be_split_from_a_command() -> None:
    command = ("python", "-m", "pytest")
    tests = frozenset({"a.py::test[x y]", "b.py::test"})
    assert split_deselected(deselect_tests(command, tests)) == (command, tuple(sorted(tests)))
