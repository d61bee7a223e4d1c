"""Reports: what stands in them, in which order, and that rows of adversaries stay text."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

from bench.made_rows import arm_rows, benchmark_rows, row, step
from suture.bench.grading.hidden_checks import Grade
from suture.bench.reports import (
    build_report,
    compare_runs,
    render_arm_comparison,
    render_json_report,
    render_markdown_report,
    write_report,
)
from suture.bench.reports.html_report import render_html_report
from suture.bench.reports.report_summary import compare_caps
from suture.bench.reports.tables import budget_tables, build_tables
from suture.bench.rows import BenchmarkRow
from suture.errors import StorageError, UsageError


def both_baselines(tasks: int = 4) -> list[BenchmarkRow]:
    return [*arm_rows("greedy", [True] * tasks), *arm_rows("best_of_k", [True] * tasks)]


def test_a_report_without_baselines_says_so_in_its_first_lines() -> None:
    for arms, missing in (("greedy",), "best_of_k"), (("adaptive",), "greedy or best_of_k"):
        report = build_report([one for arm in arms for one in arm_rows(arm, [True, False])])
        assert f"no rows of {missing} in set" in report.warnings[0]
        lines = render_markdown_report(report).splitlines()[:4]
        assert any("NO EQUAL-BUDGET BASELINE" in line for line in lines)
        page = render_html_report(report)
        assert page.index("NO EQUAL-BUDGET BASELINE") < page.index("<h2>")


def test_a_report_with_both_baselines_does_not() -> None:
    assert build_report(both_baselines()).warnings == ()


def test_a_baseline_at_other_tokens_is_none() -> None:
    rows = [*arm_rows("adaptive", [True]), *(replace(one, cap=500) for one in both_baselines(1))]
    assert "no rows of greedy or best_of_k in set" in build_report(rows).warnings[0]


def test_unlike_rows_are_never_pooled() -> None:
    rows = both_baselines()
    other = [
        *(replace(one, regime="oracle") for one in rows),
        *(replace(one, model="local:other") for one in rows),
        *(replace(one, dataset="other") for one in rows),
        *(replace(one, cap=1000) for one in rows),
    ]
    report = build_report([*rows, *other])
    assert len(report.sections) == 5
    assert all(arm.runs == 4 for section in report.sections for arm in section.arms)
    assert report.regimes.keys() == {"visible", "oracle"}
    assert [section.regime for section in report.sections] == ["visible"] * 4 + ["oracle"]
    text = render_markdown_report(report)
    assert "Regime oracle: the loop was shown the hidden checks" in text
    assert "Regime visible" in text


def test_caps_stand_side_by_side_each_with_its_own_runs() -> None:
    small = [replace(one, cap=250, run="small") for one in arm_rows("greedy", [True, False])]
    report = build_report([*both_baselines(2), *small, *(replace(one, dataset="other") for one in small)])
    other, first = compare_caps(report.sections)
    assert (first.caps, other.caps) == ((250, 2000), (250,))
    counts = {arm: [at and at.runs.count for at in found] for arm, found in first.arms.items()}
    assert counts == {"greedy": [1, 2], "best_of_k": [None, 2]}
    solved, prompts = budget_tables(first)
    assert solved.head == ("arm", "250 tokens", "2,000 tokens")
    assert [line[1:] for line in prompts.rows] == [("300", "300"), ("-", "300")]
    text = render_markdown_report(report)
    assert "## set, regime visible, local:tiny\n" in text
    assert "## other, regime visible, local:tiny\n" not in text
    captions = [str(one.text) for one in well_formed(render_html_report(report)).iter("caption")]
    assert captions.count("Prompt tokens beside them") == 1
    assert [section.cap for section in report.sections if section.dataset == "set"] == [2000, 250]


def test_tests_that_nobody_wrote_have_no_table() -> None:
    assert "Generated tests" not in render_markdown_report(build_report(both_baselines()))


def test_a_task_that_changed_between_runs_is_left_out_and_named() -> None:
    rows = [*both_baselines(), row("adaptive", 0), row("adaptive", 1, problem_hash="another")]
    section = build_report(rows).sections[0]
    assert "Left out, because their content differs between the runs: Set/1." in section.warnings
    assert [arm.tasks for arm in section.arms] == [3, 3, 1]


def test_what_is_left_out_is_told() -> None:
    rows = [
        *both_baselines(),
        row("adaptive", 0, fault="no wall"),
        row("adaptive", 1, step(Grade(status="timeout"))),
        row("adaptive", 2, step(None), prompts={"coder": "y"}),
        row("adaptive", 3, step(Grade(status="right", evidence="nonce")), prompts={"coder": "x"}),
        row("adaptive", 4, step(True, completion_tokens=2500)),
    ]
    told = " ".join(build_report(rows).sections[0].warnings)
    assert "adaptive: 1 of 5 runs left out: the machinery failed" in told
    assert "adaptive: 1 of 5 runs left out: their result is not graded" in told
    assert (
        "adaptive: were all of its runs without a number wrong, it would have solved 1 of 5 (20.0%)" in told
    )
    assert "its grading ran out of time: Set/1." in told
    assert "1 by nonce" in told
    assert "1 runs generated more than the cap" in told
    assert "different versions of the prompts" in told


def test_every_table_of_arms_says_what_it_leaves_out() -> None:
    rows = [*benchmark_rows(4, seeds=2), row("greedy", 9, fault="no wall"), row("greedy", 8, step(None))]
    (section,) = build_report(rows).sections
    tables = [table for table in build_tables(section) if table.caption != "Paired tests"]
    assert len(tables) == 7
    for table in tables:
        assert table.head[-1] == "no number"
        assert {line[0]: line[-1] for line in table.rows}["greedy"] == "2 of 10"


def test_a_section_whose_visible_checks_are_the_hidden_ones_is_no_headline() -> None:
    shown = [replace(one, hidden_checks_visible=True) for one in both_baselines()]
    (first, *_) = build_report(shown).sections[0].warnings
    assert first.startswith("In all 4 tasks the visible checks are the hidden ones: the loop was shown what")
    assert "claimed minus solved is 0 by construction, and this is no headline." in first
    (few, *_) = build_report([*shown[:1], *both_baselines()[1:4]]).sections[0].warnings
    assert few.startswith("In 1 of 4 tasks the visible checks are the hidden ones")
    for rows in (both_baselines(), [replace(one, regime="oracle") for one in shown]):
        assert not any("visible checks" in told for told in build_report(rows).sections[0].warnings)


def test_code_that_fells_the_wall_is_named() -> None:
    rows = [*both_baselines(), row("adaptive", 0, sandbox_failure="SandboxBroken: it lives")]
    told = " ".join(build_report(rows).sections[0].warnings)
    assert "broke the sandbox twice, which harmless code in between and afterwards did not: Set/0." in told


def test_every_time_out_of_the_grading_is_listed() -> None:
    """Those of candidates that something better followed too, and those of runs without a number."""
    late = Grade(status="timeout")
    rows = [
        *(row("adaptive", n, step(late)) for n in range(30)),
        row("adaptive", 30, step(late), step(True, completion_tokens=200, round=1)),
        row("adaptive", 31, step(late), fault="no wall"),
    ]
    (told,) = (one for one in build_report(rows).sections[0].warnings if "ran out of time" in one)
    assert told.count("Set/") == 32
    assert "more" not in told


def test_no_check_in_the_loop_is_not_no_example() -> None:
    report = build_report([replace(one, regime="self") for one in both_baselines()])
    assert "examples of the statement were still to be read" in report.regimes["self"]


def test_a_role_that_a_run_did_not_need_is_no_other_version_of_its_prompt() -> None:
    rows = [
        row("adaptive", 0, prompts={"coder": "x", "debugger": "y"}),
        row("adaptive", 1, prompts={"coder": "x"}),
        row("adaptive", 2),
    ]
    told = " ".join(build_report([*both_baselines(), *rows]).sections[0].warnings)
    assert "versions of the prompts" not in told


def test_every_arm_is_held_against_each_baseline_once() -> None:
    section = build_report(benchmark_rows(12)).sections[0]
    pairs = [(one.first, one.second) for one in section.comparisons]
    assert pairs[0] == ("greedy", "best_of_k")
    assert len(pairs) == len(set(pairs)) == 4 + 3
    assert "7 comparisons" in section.resolution


def test_the_resolution_owns_up_to_a_sample_that_is_too_small() -> None:
    assert "too small" in build_report(both_baselines(3)).sections[0].resolution
    assert "points is found four times in five" in build_report(both_baselines(80)).sections[0].resolution


def test_no_rows_make_a_report_that_says_so() -> None:
    report = build_report([])
    assert report.warnings == ("There are no rows, so there are no numbers.",)
    assert "There are no rows" in render_html_report(report)
    assert "There are no rows" in render_markdown_report(report)


@pytest.mark.parametrize(
    "rows",
    [
        [row("greedy", n, fault="no wall") for n in range(3)],
        [row("greedy")],
        [replace(row("greedy"), steps=())],
        arm_rows("greedy", [False] * 5),
        benchmark_rows(5, seeds=3),
        [row(f"arm {n}", task) for n in range(14) for task in range(2)],
    ],
    ids=["faults alone", "one task", "no candidate", "nothing solved", "seeds", "many arms"],
)
def test_every_form_can_be_written_of_odd_rows(rows: list[BenchmarkRow], tmp_path: Path) -> None:
    paths = write_report(build_report(rows), tmp_path / "report")
    assert [path.name for path in paths] == ["report.md", "report.json", "report.html"]
    assert json.loads(paths[1].read_text())["sections"][0]["arms"]
    for table in re.findall(r"(?:^\|.*\n)+", paths[0].read_text(), re.MULTILINE):
        assert len({line.count("|") - line.count("\\|") for line in table.splitlines()}) == 1
    well_formed(paths[2].read_text())


def well_formed(page: str) -> ElementTree.Element:
    """The page as a tree; it is written so that an XML parser can read it too."""
    return ElementTree.fromstring(page.removeprefix("<!doctype html>\n"))


def test_the_page_needs_nothing_from_elsewhere() -> None:
    page = render_html_report(build_report(benchmark_rows(12)))
    assert not re.findall(r"(?:src|href|url|@import|<script|<link|https?:)", page)
    tree = well_formed(page)
    plots = list(tree.iter("svg"))
    assert len(plots) == 1 + 5 + 5 + 5
    assert all(plot.get("role") == "img" and plot.get("aria-label") for plot in plots)
    for table in tree.iter("table"):
        assert table.find("caption") is not None
        assert all(cell.get("scope") == "col" for cell in table.findall("thead/tr/th"))
        assert all(line.find("th[@scope='row']") is not None for line in table.findall("tbody/tr"))


def test_plots_stay_inside_their_frame() -> None:
    for plot in well_formed(render_html_report(build_report(benchmark_rows(12)))).iter("svg"):
        _, _, width, height = map(float, (plot.get("viewBox") or "").split())
        for one in plot.iter():
            for name, most in (("x", width), ("x1", width), ("cx", width), ("y", height), ("y1", height)):
                assert 0 <= float(one.get(name, 0)) <= most


def test_names_from_rows_never_act_as_markup() -> None:
    evil = "<script>alert(1)</script>|x|\n# y `z`"
    rows = [
        row(evil, evil, step(False, error=evil), dataset=evil, model=evil),
        row(evil, 1, step(Grade(status="timeout", reason=evil)), dataset=evil, model=evil),
    ]
    report = build_report(rows)
    assert "<script" not in render_html_report(report)
    assert not re.search(r"(?<!\\)<script|^# y", render_markdown_report(report), re.MULTILINE)
    assert json.loads(render_json_report(report))["sections"][0]["arms"][0]["arm"] == evil


def test_circumstances_are_told() -> None:
    report = build_report([row()], {"one": [{"cpu": "<EPYC>", "cores": "2"}, {"cores": "4"}], "two": []})
    text = render_markdown_report(report)
    assert "Benchmark one, session 1: cpu \\<EPYC\\>; cores 2." in text
    assert "Benchmark one, session 2: cores 4." in text
    assert "Benchmark two: environment not known." in text
    assert "Benchmark one, session 1: cpu &lt;EPYC&gt;; cores 2." in render_html_report(report)


def test_the_json_holds_what_the_tables_are_made_of() -> None:
    plain = json.loads(render_json_report(build_report(benchmark_rows(12))))
    arm = plain["sections"][0]["arms"][0]
    assert arm["arm"] == "greedy"
    assert arm["solved"]["runs"]["of"] == 12
    assert plain["sections"][0]["comparisons"][0]["p_value"] <= 1


def test_a_report_that_cannot_be_written_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be written"):
        write_report(build_report([]), tmp_path / "file")


def test_a_real_difference_of_two_runs_in_words() -> None:
    before, after = arm_rows("adaptive", [False] * 10 + [True] * 20), arm_rows("adaptive", [True] * 30)
    (found,) = compare_runs(before, after, names=("old", "new"))
    said = render_arm_comparison(found.comparisons[0])
    assert said.startswith("adaptive in new solves more tasks than adaptive in old: of 30 tasks 10 go to")
    assert "p = 0.0020" in said
    assert len(found.warnings) == 2
    (turned,) = compare_runs(after, before, names=("new", "old"))
    assert render_arm_comparison(turned.comparisons[0]).startswith("adaptive in new solves more tasks")


def test_no_difference_says_what_would_have_been_missed() -> None:
    rows = arm_rows("adaptive", [True, False] * 20)
    said = render_arm_comparison(compare_runs(rows, rows)[0].comparisons[0])
    assert "cannot be distinguished" in said
    assert re.search(r"A true difference of less than \d+\.\d points would be missed", said)
    few = arm_rows("adaptive", [True, False])
    assert "So few tasks could not show any difference." in render_arm_comparison(
        compare_runs(few, few)[0].comparisons[0]
    )


def test_arms_are_chosen_by_name() -> None:
    rows = benchmark_rows(10)
    every = compare_runs(rows, rows)[0].comparisons
    assert [one.first for one in every][:2] == ["greedy in A", "best_of_k in A"]
    assert len(every) == 5
    (one,) = compare_runs(rows, rows, ["adaptive"])[0].comparisons
    assert (one.first, one.second) == ("adaptive in A", "adaptive in B")
    (two,) = compare_runs(rows, rows, ["best_of_k", "adaptive"])[0].comparisons
    assert (two.first, two.second) == ("best_of_k in A", "adaptive in B")
    with pytest.raises(UsageError, match="two arms are compared, not 3"):
        compare_runs(rows, rows, ["a", "b", "c"])


def test_unlike_runs_are_not_compared() -> None:
    rows = arm_rows("adaptive", [True])
    with pytest.raises(UsageError, match="nothing to compare"):
        compare_runs(rows, [replace(one, regime="oracle") for one in rows])
    with pytest.raises(UsageError, match="nothing to compare"):
        compare_runs(rows, [])
    (changed,) = compare_runs(rows, [replace(one, problem_hash="new") for one in rows])
    assert "cannot be compared" in render_arm_comparison(changed.comparisons[0])
    assert "differs between the runs: 1 tasks" in changed.warnings[-1]
