"""Read task records and predictions in the format of SWE-bench.

Source: Jimenez et al., "SWE-bench: Can Language Models Resolve Real-World GitHub Issues?" (2024).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suture.core.safe_files import read_text_file
from suture.errors import UsageError

MAX_FILE_BYTES = 512 * 2**20
"""The largest file of records or predictions that is read. Chosen by judgement; not measured."""
TEXT_FIELDS = ("instance_id", "repo", "base_commit", "patch", "test_patch")
"""Fields of a record that must be text."""


@dataclass(frozen=True, kw_only=True)
class SweTask:
    """A task record of SWE-bench.

    Attributes:
        repo: The repository as `owner/name`; its folder is `owner__name` or `name`.
        base_commit: The commit that a patch applies to.
        problem_statement: The issue, which is all that a solver gets to read.
        test_patch: The grading tests as a patch; a solver sees them only in the regime of that name.
        fail_to_pass: Ids of tests that a patch must make pass.
        pass_to_pass: Ids of tests that must keep passing.
    """

    instance_id: str
    repo: str
    base_commit: str
    problem_statement: str
    patch: str
    test_patch: str
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]


def read_tasks(path: Path) -> tuple[SweTask, ...]:
    """Return the records of a file of JSON lines.

    Args:
        path: The file. Lists of tests may be JSON lists, or strings that contain one, as in the original.

    Raises:
        UsageError: The file cannot be read, or a line is not such a record; the message names the line.
    """
    tasks = [_parse_task(values, f"{path}:{number}") for number, values in _read_lines(path)]
    counts = Counter(task.instance_id for task in tasks)
    duplicates = [instance_id for instance_id, count in counts.items() if count > 1]
    if duplicates:
        raise UsageError(f"{path}: there are two records {min(duplicates)!r}")
    return tuple(tasks)


def format_prediction(task: SweTask, model: str, patch: str) -> str:
    """Return one line of a predictions file, as the original's harness reads it."""
    line = {"instance_id": task.instance_id, "model_name_or_path": model, "model_patch": patch}
    return json.dumps(line) + "\n"


def read_predictions(path: Path) -> dict[str, str]:
    """Return instance id -> patch from a predictions file; the last line for an instance counts.

    Raises:
        UsageError: The file cannot be read, or a line is not a prediction.
    """
    predictions: dict[str, str] = {}
    for number, values in _read_lines(path):
        instance_id, patch = values.get("instance_id"), values.get("model_patch", "") or ""
        if not isinstance(instance_id, str) or not isinstance(patch, str):
            raise UsageError(
                f"{path}:{number}: not a prediction: instance_id and model_patch must be strings"
            )
        predictions[instance_id] = patch
    return predictions


def _read_lines(path: Path) -> list[tuple[int, Mapping[str, Any]]]:
    """Return (line number, JSON object) of each line that is not blank."""
    numbered_objects: list[tuple[int, Mapping[str, Any]]] = []
    for number, line in enumerate(read_text_file(path, MAX_FILE_BYTES, "the file of tasks").splitlines(), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as fault:
            raise UsageError(f"{path}:{number}: invalid JSON: {fault}") from fault
        if not isinstance(value, dict):
            raise UsageError(f"{path}:{number}: not a JSON object")
        numbered_objects.append((number, value))
    return numbered_objects


def _parse_task(values: Mapping[str, Any], location: str) -> SweTask:
    for name in TEXT_FIELDS:
        if not isinstance(values.get(name), str):
            raise UsageError(f"{location}: {name} is missing or not a string")
    return SweTask(
        **{name: values[name] for name in TEXT_FIELDS},
        problem_statement=str(values.get("problem_statement", "")),
        fail_to_pass=_parse_test_ids(values, "FAIL_TO_PASS", location),
        pass_to_pass=_parse_test_ids(values, "PASS_TO_PASS", location),
    )


def _parse_test_ids(values: Mapping[str, Any], name: str, location: str) -> tuple[str, ...]:
    test_ids = values.get(name)
    if isinstance(test_ids, str):
        try:
            test_ids = json.loads(test_ids)
        except ValueError:
            test_ids = None
    if not isinstance(test_ids, list) or not all(isinstance(test_id, str) for test_id in test_ids):
        raise UsageError(f"{location}: {name} is not a list of tests")
    return tuple(test_ids)
