"""Reports: their contents, their order, and the escaping of hostile rows."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from bench.made_rows import make_arm_rows, make_benchmark_rows, make_row, make_step
from suture.bench.grading.hidden_checks import Grade
from suture.bench.reports import (
    build_report,
    compare_runs,
    render_arm_comparison,
    render_json_report,
    render_markdown_report,
    write_report,
)
from suture.bench.reports.report_summary import compare_caps
from suture.bench.reports.report_tables import budget_tables, build_tables
from suture.bench.rows import BenchmarkRow
from suture.errors import StorageError, UsageError


def make_baseline_rows(tasks: int = 4) -> list[BenchmarkRow]:
    """Make the rows of both baselines, all right."""
    return [*make_arm_rows("greedy", [True] * tasks), *make_arm_rows("best_of_k", [True] * tasks)]


def test_a_report_without_baselines_warns_in_its_first_lines() -> None:
    for arms, missing in (("greedy",), "best_of_k"), (("adaptive",), "greedy or best_of_k"):
        report = build_report([row for arm in arms for row in make_arm_rows(arm, [True, False])])
        assert f"no rows of {missing} in set" in report.warnings[0]
        lines = render_markdown_report(report).splitlines()[:4]
        assert any("NO EQUAL-BUDGET BASELINE" in line for line in lines)


def test_a_report_with_both_baselines_has_no_warning() -> None:
    assert build_report(make_baseline_rows()).warnings == ()


def test_a_baseline_with_another_token_cap_does_not_count() -> None:
    rows = [*make_arm_rows("adaptive", [True]), *(replace(row, cap=500) for row in make_baseline_rows(1))]
    assert "no rows of greedy or best_of_k in set" in build_report(rows).warnings[0]


def test_rows_of_different_settings_are_not_pooled() -> None:
    rows = make_baseline_rows()
    other_rows = [
        *(replace(row, regime="oracle") for row in rows),
        *(replace(row, model="local:other") for row in rows),
        *(replace(row, dataset="other") for row in rows),
        *(replace(row, cap=1000) for row in rows),
    ]
    report = build_report([*rows, *other_rows])
    assert len(report.sections) == 5
    assert all(arm.runs == 4 for section in report.sections for arm in section.arms)
    assert report.regimes.keys() == {"visible", "oracle"}
    assert [section.regime for section in report.sections] == ["visible"] * 4 + ["oracle"]

    text = render_markdown_report(report)
    assert "Regime oracle: the loop was shown the hidden checks" in text
    assert "Regime visible" in text


def test_token_caps_are_compared_side_by_side() -> None:
    small = [replace(row, cap=250, run="small") for row in make_arm_rows("greedy", [True, False])]
    report = build_report([*make_baseline_rows(2), *small, *(replace(row, dataset="other") for row in small)])
    one_cap, two_caps = compare_caps(report.sections)
    assert (two_caps.caps, one_cap.caps) == ((250, 2000), (250,))

    counts = {
        arm: [solved and solved.runs.count for solved in solved_by_cap]
        for arm, solved_by_cap in two_caps.arms.items()
    }
    assert counts == {"greedy": [1, 2], "best_of_k": [None, 2]}

    solved, prompts = budget_tables(two_caps)
    assert solved.head == ("arm", "250 tokens", "2,000 tokens")
    assert [line[1:] for line in prompts.rows] == [("300", "300"), ("-", "300")]

    text = render_markdown_report(report)
    assert "## set, regime visible, local:tiny\n" in text
    assert "## other, regime visible, local:tiny\n" not in text

    assert text.count("Prompt tokens beside them") == 1
    assert [section.cap for section in report.sections if section.dataset == "set"] == [2000, 250]


def test_a_task_that_changed_between_runs_is_excluded_and_named() -> None:
    rows = [*make_baseline_rows(), make_row("adaptive", 0), make_row("adaptive", 1, problem_hash="another")]
    section = build_report(rows).sections[0]
    assert "Left out, because their content differs between the runs: Set/1." in section.warnings
    assert [arm.tasks for arm in section.arms] == [3, 3, 1]


def test_a_report_warns_about_excluded_runs() -> None:
    rows = [
        *make_baseline_rows(),
        make_row("adaptive", 0, fault="no sandbox"),
        make_row("adaptive", 1, make_step(Grade(status="timeout"))),
        make_row("adaptive", 2, make_step(None), prompts={"coder": "y"}),
        make_row("adaptive", 3, make_step(Grade(status="right", evidence="nonce")), prompts={"coder": "x"}),
        make_row("adaptive", 4, make_step(True, completion_tokens=2500)),
    ]
    warning_text = " ".join(build_report(rows).sections[0].warnings)

    assert "adaptive: 1 of 5 runs left out: the machinery failed" in warning_text
    assert "adaptive: 1 of 5 runs left out: their result is not graded" in warning_text
    assert (
        "adaptive: were all of its runs without a number wrong, it would have solved 1 of 5 (20.0%)"
        in warning_text
    )
    assert "its grading ran out of time: Set/1." in warning_text
    assert "1 by nonce" in warning_text
    assert "1 runs generated more than the cap" in warning_text
    assert "different versions of the prompts" in warning_text


def test_every_table_of_arms_counts_excluded_runs() -> None:
    rows = [
        *make_benchmark_rows(4, seeds=2),
        make_row("greedy", 9, fault="no sandbox"),
        make_row("greedy", 8, make_step(None)),
    ]
    (section,) = build_report(rows).sections

    tables = [table for table in build_tables(section) if table.caption != "Paired tests"]

    assert len(tables) == 6
    for table in tables:
        assert table.head[-1] == "no number"
        assert {line[0]: line[-1] for line in table.rows}["greedy"] == "2 of 10"


def test_a_report_warns_when_visible_checks_are_the_hidden_ones() -> None:
    visible_rows = [replace(row, hidden_checks_visible=True) for row in make_baseline_rows()]
    (first_warning, *_) = build_report(visible_rows).sections[0].warnings
    assert first_warning.startswith(
        "In all 4 tasks the visible checks are the hidden ones: the loop was shown what"
    )
    assert "claimed minus solved is 0 by construction, and this is no headline." in first_warning

    (some_visible_warning, *_) = (
        build_report([*visible_rows[:1], *make_baseline_rows()[1:4]]).sections[0].warnings
    )
    assert some_visible_warning.startswith("In 1 of 4 tasks the visible checks are the hidden ones")

    for rows in (make_baseline_rows(), [replace(row, regime="oracle") for row in visible_rows]):
        warnings = build_report(rows).sections[0].warnings
        assert not any("visible checks" in warning for warning in warnings)


def test_a_report_names_code_that_breaks_the_sandbox() -> None:
    rows = [*make_baseline_rows(), make_row("adaptive", 0, sandbox_failure="SandboxBroken: it lives")]
    warning_text = " ".join(build_report(rows).sections[0].warnings)
    assert (
        "broke the sandbox twice, which harmless code in between and afterwards did not: Set/0."
        in warning_text
    )


def test_every_timeout_of_the_grading_is_listed() -> None:
    """The list includes replaced candidates and runs without a result."""
    timeout_grade = Grade(status="timeout")
    rows = [
        *(make_row("adaptive", n, make_step(timeout_grade)) for n in range(30)),
        make_row("adaptive", 30, make_step(timeout_grade), make_step(True, completion_tokens=200, round=1)),
        make_row("adaptive", 31, make_step(timeout_grade), fault="no sandbox"),
    ]
    warnings = build_report(rows).sections[0].warnings

    (warning,) = (warning for warning in warnings if "ran out of time" in warning)

    assert warning.count("Set/") == 32
    assert "more" not in warning


def test_the_regime_self_still_shows_examples_of_the_statement() -> None:
    report = build_report([replace(row, regime="self") for row in make_baseline_rows()])
    assert "examples of the statement were still to be read" in report.regimes["self"]


def test_an_unused_role_does_not_count_as_another_prompt_version() -> None:
    rows = [
        make_row("adaptive", 0, prompts={"coder": "x", "debugger": "y"}),
        make_row("adaptive", 1, prompts={"coder": "x"}),
        make_row("adaptive", 2),
    ]
    warning_text = " ".join(build_report([*make_baseline_rows(), *rows]).sections[0].warnings)

    assert "versions of the prompts" not in warning_text


def test_every_arm_is_compared_with_each_baseline_once() -> None:
    section = build_report(make_benchmark_rows(12)).sections[0]
    pairs = [(comparison.first, comparison.second) for comparison in section.comparisons]
    assert pairs[0] == ("greedy", "best_of_k")
    assert len(pairs) == len(set(pairs)) == 4 + 3
    assert "7 comparisons" in section.resolution


def test_the_resolution_says_that_a_sample_is_too_small() -> None:
    assert "too small" in build_report(make_baseline_rows(3)).sections[0].resolution
    assert "points is found four times in five" in build_report(make_baseline_rows(80)).sections[0].resolution


def test_a_report_without_rows_says_so() -> None:
    report = build_report([])
    assert report.warnings == ("There are no rows, so there are no numbers.",)
    assert "There are no rows" in render_markdown_report(report)


@pytest.mark.parametrize(
    "rows",
    [
        [make_row("greedy", n, fault="no sandbox") for n in range(3)],
        [make_row("greedy")],
        [replace(make_row("greedy"), steps=())],
        make_arm_rows("greedy", [False] * 5),
        make_benchmark_rows(5, seeds=3),
        [make_row(f"arm {n}", task) for n in range(14) for task in range(2)],
    ],
    ids=["faults alone", "one task", "no candidate", "nothing solved", "seeds", "many arms"],
)
def test_reports_of_unusual_rows_can_be_written_in_every_format(
    rows: list[BenchmarkRow], tmp_path: Path
) -> None:
    paths = write_report(build_report(rows), tmp_path / "report")
    assert [path.name for path in paths] == ["report.md", "report.json"]
    assert json.loads(paths[1].read_text())["sections"][0]["arms"]
    for table in re.findall(r"(?:^\|.*\n)+", paths[0].read_text(), re.MULTILINE):
        assert len({line.count("|") - line.count("\\|") for line in table.splitlines()}) == 1


def test_names_in_rows_are_escaped() -> None:
    hostile_text = "<script>alert(1)</script>|x|\n# y `z`"
    rows = [
        make_row(
            hostile_text,
            hostile_text,
            make_step(False),
            dataset=hostile_text,
            model=hostile_text,
        ),
        make_row(
            hostile_text,
            1,
            make_step(Grade(status="timeout", reason=hostile_text)),
            dataset=hostile_text,
            model=hostile_text,
        ),
    ]

    report = build_report(rows)

    assert not re.search(r"(?<!\\)<script|^# y", render_markdown_report(report), re.MULTILINE)
    assert json.loads(render_json_report(report))["sections"][0]["arms"][0]["arm"] == hostile_text


def test_a_report_lists_the_environment_of_each_session() -> None:
    report = build_report([make_row()], {"one": [{"cpu": "<EPYC>", "cores": "2"}, {"cores": "4"}], "two": []})
    text = render_markdown_report(report)
    assert "Benchmark one, session 1: cpu \\<EPYC\\>; cores 2." in text
    assert "Benchmark one, session 2: cores 4." in text
    assert "Benchmark two: environment not known." in text


def test_the_json_report_contains_the_data_of_the_tables() -> None:
    content = json.loads(render_json_report(build_report(make_benchmark_rows(12))))
    arm = content["sections"][0]["arms"][0]
    assert arm["arm"] == "greedy"
    assert arm["solved"]["runs"]["of"] == 12
    assert content["sections"][0]["comparisons"][0]["p_value"] <= 1


def test_a_report_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be written"):
        write_report(build_report([]), tmp_path / "file")


def test_a_real_difference_between_two_runs_is_described() -> None:
    before, after = (
        make_arm_rows("adaptive", [False] * 10 + [True] * 20),
        make_arm_rows("adaptive", [True] * 30),
    )
    (comparison_section,) = compare_runs(before, after, names=("old", "new"))
    sentence = render_arm_comparison(comparison_section.comparisons[0])
    assert sentence.startswith("adaptive in new solves more tasks than adaptive in old: of 30 tasks 10 go to")
    assert "p = 0.0020" in sentence
    assert len(comparison_section.warnings) == 2

    (reversed_comparison,) = compare_runs(after, before, names=("new", "old"))
    assert render_arm_comparison(reversed_comparison.comparisons[0]).startswith(
        "adaptive in new solves more tasks"
    )


def test_a_comparison_without_difference_says_what_it_could_have_missed() -> None:
    rows = make_arm_rows("adaptive", [True, False] * 20)
    sentence = render_arm_comparison(compare_runs(rows, rows)[0].comparisons[0])
    assert "cannot be distinguished" in sentence
    assert re.search(r"A true difference of less than \d+\.\d points would be missed", sentence)

    some_visible_warning = make_arm_rows("adaptive", [True, False])
    assert "So few tasks could not show any difference." in render_arm_comparison(
        compare_runs(some_visible_warning, some_visible_warning)[0].comparisons[0]
    )


def test_arms_to_compare_are_chosen_by_name() -> None:
    rows = make_benchmark_rows(10)
    all_comparisons = compare_runs(rows, rows)[0].comparisons
    assert [comparison.first for comparison in all_comparisons][:2] == ["greedy in A", "best_of_k in A"]
    assert len(all_comparisons) == 5

    (comparison,) = compare_runs(rows, rows, ["adaptive"])[0].comparisons
    assert (comparison.first, comparison.second) == ("adaptive in A", "adaptive in B")

    (comparison,) = compare_runs(rows, rows, ["best_of_k", "adaptive"])[0].comparisons
    assert (comparison.first, comparison.second) == ("best_of_k in A", "adaptive in B")
    with pytest.raises(UsageError, match="two arms are compared, not 3"):
        compare_runs(rows, rows, ["a", "b", "c"])


def test_runs_of_different_settings_are_not_compared() -> None:
    rows = make_arm_rows("adaptive", [True])
    with pytest.raises(UsageError, match="nothing to compare"):
        compare_runs(rows, [replace(row, regime="oracle") for row in rows])
    with pytest.raises(UsageError, match="nothing to compare"):
        compare_runs(rows, [])

    (comparison_of_changed_tasks,) = compare_runs(rows, [replace(row, problem_hash="new") for row in rows])
    assert "cannot be compared" in render_arm_comparison(comparison_of_changed_tasks.comparisons[0])
    assert "differs between the runs: 1 tasks" in comparison_of_changed_tasks.warnings[-1]
