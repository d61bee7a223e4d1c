"""Tasks in Harbor's format, in which Terminal-Bench and many conversions of SWE-bench are published.

A task is a folder with `task.toml`, `instruction.md`, `environment/Dockerfile`, `tests/test.sh` and perhaps
`solution/solve.sh`. No image is built here: an environment that only copies files into its working folder is laid out
in Suture's sandbox, and any other task is refused with the reason. The sandbox's only writable folder is `BOX`. So the
paths of the working folder, of the tests and of the reward are replaced in all texts of the task.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from suture.api import WriteOptions, solve
from suture.bench.folder_tasks.folder_rows import AttemptRow, make_attempt_row
from suture.bench.folder_tasks.folder_task import (
    AttemptTools,
    UnusableTask,
    hash_files,
    refuse_task_on_fault,
    require_result,
    shorten_reason,
)
from suture.bench.running.evaluation import make_run_settings
from suture.core.records import Language, content_hash
from suture.core.safe_files import parse_toml, read_text_file
from suture.errors import UsageError
from suture.judge.sandbox_programs import make_test_limits
from suture.project.languages import LANGUAGES, detect_file_languages, program_environment
from suture.project.workspace import is_test_file, overlay_candidate, take_snapshot
from suture.sandbox import BOX, RunRequest, RunResult, discover_programs, lend_pytest, mounts_for_interpreter

PRIVATE = "_harbor"
"""The folder below `BOX` with the tests, the solution and the reward while a task is graded."""
REWARDS = (f"{PRIVATE}/verifier/reward.txt", f"{PRIVATE}/verifier/reward.json")
MAX_TEXT_BYTES = 2**20
"""The largest `task.toml`, instruction or Dockerfile that is read. Chosen by judgement; not measured."""
DEFAULT_TIMEOUT_S = 600.0
"""Harbor's own time limit of an agent and of a verifier."""
IGNORED_INSTRUCTIONS = ("CMD", "ENTRYPOINT", "EXPOSE", "LABEL", "MAINTAINER", "USER")
"""Instructions of a Dockerfile that change no file and no variable."""
UNSUPPORTED = {
    ("steps",): "it has several steps",
    ("environment", "docker_image"): "its environment is a prebuilt image",
    ("environment", "gpus"): "it needs a GPU",
    ("environment", "mcp_servers"): "it needs MCP servers",
    ("verifier", "environment"): "its verifier has an environment of its own",
}
"""Path of a value in `task.toml` -> why a task that sets it cannot be measured."""
RUN_TESTS = "bash {0}/tests/test.sh"
RUN_SOLUTION = "bash {0}/solution/solve.sh && bash {0}/tests/test.sh"


@dataclass(frozen=True, kw_only=True)
class ContainerFiles:
    """What a Dockerfile makes of its folder.

    Attributes:
        folder: The working folder, an absolute path.
        files: The files in it, path relative to it -> content.
        variables: The environment variables that it sets.
    """

    folder: str
    files: Mapping[str, bytes]
    variables: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class HarborTask:
    """A task in Harbor's format.

    Attributes:
        id: The folder's name.
        instruction: What an agent reads.
        context: The files of `environment`, path -> content.
        tests: The files of `tests`, which no agent sees.
        solution: The files of `solution`; empty if the task has none.
        configuration: The values of `task.toml`.
    """

    id: str
    instruction: str
    context: Mapping[str, bytes]
    tests: Mapping[str, bytes] = field(repr=False)
    solution: Mapping[str, bytes] = field(repr=False)
    configuration: Mapping[str, Any]

    @property
    def max_attempts(self) -> int:
        """One: an agent is graded once."""
        return 1

    @cached_property
    def content_hash(self) -> str:
        """Hash of everything that defines the task."""
        groups = [hash_files(files) for files in (self.context, self.tests, self.solution)]
        return content_hash([self.instruction, *groups, repr(sorted(self.configuration.items()))])

    async def measure(self, tools: AttemptTools) -> tuple[AttemptRow, ...]:
        """Run Suture once on the environment's files, then the tests; see `FolderTask.measure`."""
        self._require_supported()
        container = self._read_container()
        language = _find_language(container.files)
        if LANGUAGES[language].new_project is None:
            raise UnusableTask(f"not supported: its code is {LANGUAGES[language].label}")
        await self._require_distinguishing_tests(container, tools)
        budget = tools.settings.budget
        seconds = min(budget.seconds, self._timeout_s("agent"))
        settings = make_run_settings(
            tools.settings, tools.settings.loop.recipe, budget.model_copy(update={"seconds": seconds})
        )
        with tempfile.TemporaryDirectory(prefix="suture-harbor-") as temporary:
            project = _write_project(Path(temporary), container.files)
            options = WriteOptions(
                settings=settings,
                model=tools.model,
                sandbox=tools.sandbox,
                existing=project,
                language=language,
            )
            result = await solve(self._localise(self.instruction, container.folder), options)
        require_result(result, tools.settings)
        written = result.candidate.files if result.candidate is not None else {}
        files = overlay_candidate(container.files, written)
        reward, reason = await self._grade(files, RUN_TESTS, container, tools)
        return (make_attempt_row(result, reward or 0.0, reason),)

    def _require_supported(self) -> None:
        """Raise `UnusableTask` if the task needs more than files in a folder."""
        for path, why in UNSUPPORTED.items():
            value: Any = self.configuration
            for key in path:
                value = value.get(key) if isinstance(value, Mapping) else None
            if value:
                raise UnusableTask(f"not supported: {why}")
        if not self.instruction.strip() or "test.sh" not in self.tests:
            raise UnusableTask("not supported: it has no instruction.md or no tests/test.sh")

    def _read_container(self) -> ContainerFiles:
        container = read_container_files(self.context)
        localised = {
            path: self._localise_file(content, container.folder) for path, content in container.files.items()
        }
        return replace(container, files=localised)

    async def _require_distinguishing_tests(self, container: ContainerFiles, tools: AttemptTools) -> None:
        """Check that the tests fail on the untouched environment, and pass after the solution if there is one."""
        first_reward, reason = await self._grade(container.files, RUN_TESTS, container, tools)
        if first_reward is None:
            raise UnusableTask(f"its tests cannot run here: {reason}")
        if first_reward >= 1:
            raise UnusableTask("its tests pass on the untouched environment")
        if "solve.sh" in self.solution:
            solution_reward, reason = await self._grade(container.files, RUN_SOLUTION, container, tools)
            if solution_reward is None or solution_reward < 1:
                raise UnusableTask(f"its own solution does not pass here: {reason}")

    async def _grade(
        self, files: Mapping[str, bytes], command: str, container: ContainerFiles, tools: AttemptTools
    ) -> tuple[float | None, str]:
        """Return (reward, why it is not 1) of a project; the reward is `None` if the tests wrote none."""
        language = _find_language(files)
        limits = tools.settings.sandbox
        with refuse_task_on_fault():
            interpreter = discover_programs(None, os.environ, language, limits.python)
        interpreter = lend_pytest(interpreter) or interpreter
        private = {
            f"{PRIVATE}/{name}/{path}": self._localise_file(content, container.folder)
            for name, group in (("tests", self.tests), ("solution", self.solution))
            for path, content in group.items()
            if name == "tests" or command == RUN_SOLUTION
        }
        # An agent's file must not be taken for one of the task.
        written = {path: text for path, text in files.items() if not path.startswith(f"{PRIVATE}/")}
        result = await tools.judge.run(
            RunRequest(
                argv=("sh", "-c", command.format(f"{BOX}/{PRIVATE}")),
                files={**written, **private, f"{PRIVATE}/verifier/started": b""},
                env={**container.variables, **program_environment(interpreter, BOX)},
                mounts=mounts_for_interpreter(interpreter),
                limits=make_test_limits(limits, self._timeout_s("verifier"), language),
                collect=REWARDS,
            )
        )
        reward = _read_reward(result)
        return reward, "" if reward is not None and reward >= 1 else _explain_end(result, reward)

    def _timeout_s(self, table: str) -> float:
        values = self.configuration.get(table)
        seconds = values.get("timeout_sec") if isinstance(values, Mapping) else None
        return float(seconds) if isinstance(seconds, int | float) and seconds > 0 else DEFAULT_TIMEOUT_S

    def _localise(self, text: str, folder: str) -> str:
        """Return a text of the task with the paths that it has inside the sandbox."""
        sandbox_paths = {
            folder: BOX,
            "/tests": f"{BOX}/{PRIVATE}/tests",
            "/solution": f"{BOX}/{PRIVATE}/solution",
            "/logs/verifier": f"{BOX}/{PRIVATE}/verifier",
        }
        # The longest path first, and only whole paths: `/app` is neither in `/apple` nor in `src/app`.
        names = "|".join(map(re.escape, sorted(sandbox_paths, key=len, reverse=True)))
        pattern = re.compile(rf"(?<![\w.\-/])(?:{names})(?![\w\-]|\.\w)")
        return pattern.sub(lambda match: sandbox_paths[match[0]], text)

    def _localise_file(self, content: bytes, folder: str) -> bytes:
        if b"\0" in content:
            return content
        text = content.decode("utf-8", "surrogateescape")
        return self._localise(text, folder).encode("utf-8", "surrogateescape")


def load_harbor_tasks(folder: Path) -> tuple[HarborTask, ...]:
    """Return the tasks in a folder, by id, or the one task that the folder is; none if it has another layout.

    Raises:
        UsageError: A task cannot be read.
    """
    paths = sorted((*folder.glob("task.toml"), *folder.glob("*/task.toml")))
    return tuple(_load_task(path.parent.resolve()) for path in paths)


def _load_task(folder: Path) -> HarborTask:
    path = folder / "task.toml"
    try:
        configuration = parse_toml(read_text_file(path, MAX_TEXT_BYTES, "the task"))
    except ValueError as fault:
        raise UsageError(f"{str(path)!r} is not TOML: {fault}") from fault
    instruction = folder / "instruction.md"
    return HarborTask(
        id=folder.name,
        instruction=read_text_file(instruction, MAX_TEXT_BYTES, "the instruction")
        if instruction.is_file()
        else "",
        context=_read_folder(folder / "environment"),
        tests=_read_folder(folder / "tests"),
        solution=_read_folder(folder / "solution"),
        configuration=configuration,
    )


def _read_folder(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder. Files that look like secrets belong to the task, too."""
    if not folder.is_dir():
        return {}
    return dict(take_snapshot(folder, secrets=("*",)).files)


def read_container_files(context: Mapping[str, bytes]) -> ContainerFiles:
    """Return what a Dockerfile makes of the other files of its folder.

    Args:
        context: The files of `environment`, path -> content.

    Raises:
        UnusableTask: The environment is more than files in a working folder.
    """
    if "Dockerfile" not in context:
        raise UnusableTask("not supported: environment/ has no Dockerfile")
    folder, files, variables, stages = "/", dict[str, bytes](), dict[str, str](), 0
    for instruction, rest in _iterate_instructions(context["Dockerfile"].decode("utf-8", "replace")):
        if instruction == "FROM":
            stages += 1
        elif instruction == "WORKDIR":
            folder = posixpath.normpath(posixpath.join(folder, rest.strip("\"'")))
        elif instruction == "ENV":
            variables |= _read_variables(rest)
        elif instruction == "COPY":
            files |= _copy_files(rest, context, folder)
        elif instruction not in IGNORED_INSTRUCTIONS:
            raise UnusableTask(f"not supported: its environment is built by `{instruction} {rest}`"[:200])
    if stages != 1:
        raise UnusableTask(f"not supported: its environment is built in {stages} stages")
    if folder == "/" or not all(path.startswith(f"{folder}/") for path in files):
        raise UnusableTask("not supported: its environment has files outside of one working folder")
    return ContainerFiles(
        folder=folder,
        files={path.removeprefix(f"{folder}/"): content for path, content in files.items()},
        variables=variables,
    )


def _iterate_instructions(text: str) -> Iterator[tuple[str, str]]:
    """Yield (instruction in capitals, the rest of its line) of a Dockerfile, with continued lines joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in re.sub(r"\\[ \t]*\n", " ", "\n".join(lines)).splitlines():
        instruction, _, rest = line.strip().partition(" ")
        if instruction:
            yield instruction.upper(), rest.strip()


def _split_words(rest: str) -> list[str]:
    try:
        return shlex.split(rest)
    except ValueError as fault:
        raise UnusableTask(
            f"not supported: a line of its Dockerfile cannot be read: {rest!r:.100}"
        ) from fault


def _read_variables(rest: str) -> dict[str, str]:
    words = _split_words(rest)
    if words and "=" not in words[0]:  # the old form: `ENV NAME some words`
        return {words[0]: " ".join(words[1:])}
    return {name: value for name, _, value in (word.partition("=") for word in words)}


def _copy_files(rest: str, context: Mapping[str, bytes], folder: str) -> dict[str, bytes]:
    """Return absolute path -> content of what `COPY` copies."""
    words = [word for word in _split_words(rest) if not re.match(r"--(chown|chmod)=", word)]
    if len(words) < 2 or any(word.startswith(("--", "[")) for word in words):
        raise UnusableTask(f"not supported: its environment is built by `COPY {rest}`"[:200])
    *sources, named_target = words
    target = posixpath.join(folder, named_target)
    copied: dict[str, bytes] = {}
    for source in sources:
        name = posixpath.normpath(source).lstrip("/")
        files_in_folder = {
            path if name == "." else path.removeprefix(f"{name}/"): content
            for path, content in context.items()
            if name == "." or path.startswith(f"{name}/")
        }
        matching_files = {
            path: content
            for path, content in context.items()
            if fnmatchcase(path, name) and path.count("/") == name.count("/")  # a star matches no slash
        }
        into_folder = (
            len(sources) > 1 or target.endswith("/") or named_target in (".", "..") or len(matching_files) > 1
        )
        for path, content in (files_in_folder or matching_files).items():
            relative_path = path if files_in_folder else posixpath.basename(path) if into_folder else ""
            if path not in ("Dockerfile", ".dockerignore"):
                copied[posixpath.normpath(posixpath.join(target, relative_path))] = content
        if not files_in_folder and not matching_files:
            raise UnusableTask(f"its Dockerfile copies {source!r}, which environment/ does not have")
    return copied


def _find_language(files: Mapping[str, bytes]) -> Language:
    """Return the language of a project's code; Python if there is no code yet."""
    return next(iter(detect_file_languages(path for path in files if not is_test_file(path))), "python")


def _write_project(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write files below a temporary folder, and return the folder of the project."""
    project = folder.resolve() / "project"
    project.mkdir()
    for path, content in files.items():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_bytes(content)
    return project


def _read_reward(result: RunResult) -> float | None:
    """Return the reward that the tests wrote: a number in `reward.txt`, or `reward` in `reward.json`.

    It is `None` if they wrote no number from 0 to 1.
    """
    text_path, json_path = REWARDS
    try:
        if text_path in result.files:
            reward = float(result.files[text_path])
        else:
            values = json.loads(result.files[json_path])
            reward = float(values["reward"] if "reward" in values else next(iter(values.values())))
    except (AttributeError, KeyError, OverflowError, StopIteration, TypeError, ValueError):
        return None
    return reward if 0 <= reward <= 1 else None


def _explain_end(result: RunResult, reward: float | None) -> str:
    """Return why a reward is not 1, with the last line that the tests printed."""
    lines = (result.stdout + b"\n" + result.stderr).decode("utf-8", "replace").split("\n")
    last_line = next((line for line in reversed(lines) if shorten_reason(line)), "")
    reward_text = (
        "tests/test.sh wrote no reward from 0 to 1" if reward is None else f"the reward is {reward:g}"
    )
    return shorten_reason(f"{reward_text} ({result.status}): {last_line}")
