"""Honest changes of other people: the known corrections of five sets of bugs.

None of these sets is part of the project. Four are files below `$SUTURE_DATA`; the packages of the field set are
downloaded (`field_set/`).
"""

from __future__ import annotations

import base64
import json
import lzma
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import humanevalfix
import quixbugs
from field_set.bugs import broken_files, read_bugs
from field_set.cache import Cache
from field_set.cases import NOT_LOADED, create_environment
from field_set.packages import read_packages

from honesty_set.proposals import TEST_COMMAND, Proposal, write_files
from suture.bench import load_problems
from suture.core.settings import load_settings
from suture.errors import PrerequisiteError

INSTALL_TIMEOUT_S = 900
VERSION_VARIABLES = {"SETUPTOOLS_SCM_PRETEND_VERSION": "9.9.9"}
"""Variables of an installation: without the project's git history, some build systems know no version."""
TEST_RUNNERS = re.compile(r"^(?:python3? -m )?(?:pytest|tox)\b")

__all__ = ["SOURCES"]


Select = Callable[[Sequence[str]], Collection[str]]
"""Returns those of the names of all cases that are wanted."""


def list_quixbugs(select: Select) -> Iterator[Proposal]:
    """Yield the correction of each QuixBugs program that is selected."""
    problems = {problem.entry_point: problem for problem in load_problems("quixbugs")}
    for problem in map(problems.__getitem__, select([*problems])):
        yield Proposal(
            source="quixbugs",
            kind="honest",
            project=problem.entry_point,
            files=quixbugs.create_project(problem),
            change={f"{problem.entry_point}.py": problem.reference},
        )


def list_humanevalfix(select: Select) -> Iterator[Proposal]:
    """Yield the correction of each HumanEvalFix program that is selected and has example tests."""
    problems = {problem.id: problem for problem in load_problems("humanevalfix")}
    files = {name: humanevalfix.create_project(problem) for name, problem in problems.items()}
    for name in select([name for name in problems if "def test_" in files[name]["test_solution.py"]]):
        yield Proposal(
            source="humanevalfix",
            kind="honest",
            project=name,
            files=files[name],
            change=problems[name].solution,
        )


def list_bugsinpy(select: Select) -> Iterator[Proposal]:
    """Yield the correction of each bug of BugsInPy that is selected, with the tests that it lists."""
    paths = sorted((_data_folder() / "bugsinpy").glob("*.jsonl.xz"))
    records = {record["id"]: record for path in paths for record in _read_records(path)}
    for record in map(records.__getitem__, select([*records])):
        options = [TEST_RUNNERS.sub("", command).strip() for command in record["test_cmds"]]
        files = dict(record["files"])
        # The set adds this file for newer versions of Python, which load it only from the search path.
        customisation = files.pop("sitecustomize.py", "")
        requirements = list(record["requirements"])
        if any("--cov" in files.get(name, "") for name in ("setup.cfg", "tox.ini", "pytest.ini")):
            requirements.append("pytest-cov")
        yield Proposal(
            source="bugsinpy",
            kind="honest",
            project=record["id"],
            files=files,
            change=record["reference_files"],
            command=f"{TEST_COMMAND} {' '.join(options)}",
            install=partial(_install_python, requirements=requirements, customisation=customisation),
        )


def list_real_fixes(select: Select) -> Iterator[Proposal]:
    """Yield the correction of each bug-fix commit that is selected."""
    stored_records = _read_records(_data_folder() / "realfixes" / "cases.jsonl.xz")
    records = {record["name"]: record for record in stored_records}
    for record in map(records.__getitem__, select([*records])):
        stored = record["files"]
        files = {
            path: base64.b64decode(file["base64"]) if "base64" in file else file["text"].encode()
            for path, file in stored.items()
            if "link" not in file
        }
        install = record["install"]
        if isinstance(install, str):
            create = partial(_install_by_command, command=install) if install else None
        else:
            create = partial(_install_python, requirements=install)
        yield Proposal(
            source="realfixes",
            kind="honest",
            project=record["name"],
            files=files,
            change=_apply_patch(files, record["source"], record["reference"]),
            command=record["test"],
            install=create,
            executable=frozenset(path for path, file in stored.items() if file.get("executable")),
            links={path: file["link"] for path, file in stored.items() if "link" in file},
        )


def list_field(select: Select) -> Iterator[Proposal]:
    """Yield the published text of the files that a bug of the field set changes, for the bugs that are selected."""
    cache = Cache(folder=load_settings(Path()).settings.paths.cache / "field")
    packages = read_packages()
    bugs = {bug.id: bug for bug in read_bugs()}
    for bug in map(bugs.__getitem__, select([*bugs])):
        create = partial(Proposal, source="field", kind="honest", project=bug.id)
        package = packages[bug.package]
        try:
            broken = broken_files(bug, package, cache)
            tree = cache.tree(package)
        except PrerequisiteError as fault:
            yield create(files={}, change={}, install=partial(_raise_fault, fault=fault))
            continue
        published = {
            path.relative_to(tree).as_posix(): path.read_bytes()
            for path in sorted(tree.rglob("*"))
            if path.is_file() and not {*path.parts} & {*NOT_LOADED}
        }
        yield create(
            files={**published, **broken},
            change={path: published[path] for path in broken},
            command=package.test,
            install=partial(create_environment, package, cache),
        )


SOURCES: Mapping[str, Callable[[Select], Iterator[Proposal]]] = {
    "realfixes": list_real_fixes,
    "bugsinpy": list_bugsinpy,
    "quixbugs": list_quixbugs,
    "humanevalfix": list_humanevalfix,
    "field": list_field,
}
"""Name of a set -> its honest changes."""


def _data_folder() -> Path:
    folder = os.environ.get("SUTURE_DATA")
    if not folder:
        raise PrerequisiteError("SUTURE_DATA is not set", remedy="set it to the folder with the data sets")
    return Path(folder)


def _read_records(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        raise PrerequisiteError(
            f"{path} does not exist", remedy="set SUTURE_DATA to the folder with the sets"
        )
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _apply_patch(files: Mapping[str, bytes], paths: Sequence[str], patch: str) -> dict[str, bytes]:
    """Return the content of some files after a patch."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files({path: files[path] for path in paths if path in files}, folder)
        _run(["git", "init", "-q"], folder)
        _run(["git", "apply", "--whitespace=nowarn", "-"], folder, text=patch)
        return {path: (folder / path).read_bytes() for path in paths}


def _install_python(root: Path, *, requirements: Sequence[str], customisation: str = "") -> None:
    _run([sys.executable, "-m", "venv", ".venv"], root)
    _run([".venv/bin/python", "-m", "pip", "install", "--quiet", *requirements], root)
    if customisation:
        (packages,) = (root / ".venv" / "lib").glob("python3.*/site-packages")
        (packages / "sitecustomize.py").write_text(customisation, "utf-8")


def _raise_fault(_root: Path, *, fault: PrerequisiteError) -> None:
    raise fault


def _install_by_command(root: Path, *, command: str) -> None:
    _run(["sh", "-c", command], root)


def _run(command: Sequence[str], root: Path, *, text: str = "") -> None:
    try:
        done = subprocess.run(
            command,
            cwd=root,
            input=text,
            capture_output=True,
            text=True,
            timeout=INSTALL_TIMEOUT_S,
            check=False,
            env={**os.environ, **VERSION_VARIABLES},
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise PrerequisiteError(f"{command[0]} did not run: {fault}", remedy="is it installed?") from fault
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).rpartition("\n")[2]
        raise PrerequisiteError(
            f"{' '.join(command)[:80]} failed: {last[:200]}", remedy="is the package index there?"
        )
