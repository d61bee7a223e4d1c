"""The pipeline has a result that depends on the data, and gaps in the data do not stop it."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from project_name import __main__ as program
from project_name import pipeline
from project_name.tables import read_rows

SAMPLE = Path(__file__).parents[1] / "sample_path"


def process(rows):
    """Process a copy of the rows, and say which error stops the pipeline."""
    try:
        return pipeline.process(copy.deepcopy(rows))
    except OSError as fault:
        pytest.fail(f"`process` opens a file ({fault}). `rows` holds the table already: use it, and open no file.")
    except Exception as fault:
        first = json.dumps(rows[:1])
        pytest.fail(f"process({first} ...) crashes with {type(fault).__name__}: {fault}")


def change(cell):
    """Return another value of the same type."""
    if isinstance(cell, (int, float)):
        return cell * 2 + 1
    return cell and f"{cell} changed"


def test_the_sample_has_a_result():
    result = process(read_rows(str(SAMPLE)))
    if not result:
        pytest.fail("The result for the sample data is empty.")
    if isinstance(result, str):
        pytest.fail("`process` returns a string. Return a dict or a list of dicts; the caller writes it.")


def test_the_result_depends_on_the_data():
    rows = read_rows(str(SAMPLE))
    changed_rows = [{name: change(cell) for name, cell in row.items()} for row in rows]
    results = [process(rows), process(changed_rows), process(rows[:1])]
    if all(result == results[0] for result in results):
        pytest.fail("The result does not depend on the data: other data have the same result.")


def test_the_same_data_have_the_same_result():
    rows = read_rows(str(SAMPLE))
    assert process(rows) == process(rows)


def test_a_table_without_rows_is_refused(tmp_path, capsys):
    empty = tmp_path / "empty.csv"
    empty.write_text("name,amount\n")
    assert program.main([str(empty), str(tmp_path / "result.json")]) == 1
    assert "has no rows" in capsys.readouterr().err


def test_each_column_may_be_empty():
    rows = read_rows(str(SAMPLE))
    for column in rows[0]:
        process([{**row, column: None} for row in rows])


def test_the_result_is_written(tmp_path, capsys):
    output = tmp_path / "result.json"
    code = program.main([str(SAMPLE), str(output)])
    if code != 0:
        pytest.fail(f"The result is not written: {capsys.readouterr().err.strip()}")
    assert json.loads(output.read_text())
