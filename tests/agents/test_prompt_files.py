"""Prompt files declare their variables, can be replaced by a project and are read once per run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from suture.agents import PromptBook, packaged_prompt, packaged_prompt_names
from suture.agents.prompting.prompt_files import parse_prompt
from suture.errors import UsageError

TINY: dict[str, Any] = {
    "name": "tiny",
    "version": 1,
    "templates": {
        "ask": {
            "text": "Do $task.\n$log",
            "variables": ["task", "log"],
            "shrink": {"log": {"keep": "ends", "cut": "... $cut ..."}},
        },
        "bye": {"text": "Bye, $$5.", "variables": []},
    },
}


def make_tiny_prompt(**changes: Any) -> dict[str, Any]:
    """Return `TINY` with changes to its `ask` template."""
    ask = {**TINY["templates"]["ask"], **changes}
    return {**TINY, "templates": {**TINY["templates"], "ask": ask}}


@pytest.mark.parametrize("name", packaged_prompt_names())
def test_the_packaged_prompts_render_all_their_variables(name: str) -> None:
    prompt = packaged_prompt(name)
    assert (prompt.name, prompt.source) == (name, "packaged")
    assert "system" in prompt.templates
    for template, definition in prompt.templates.items():
        rendered = prompt.render(template, **dict.fromkeys(definition.variables, "X$Y"))
        assert "X$Y" in rendered or not definition.variables


def test_missing_and_unknown_variables_are_refused() -> None:
    prompt = parse_prompt(TINY, "t")

    assert prompt.render("ask", task="it", log="") == "Do it."
    assert prompt.render("bye") == "Bye, $5."

    with pytest.raises(UsageError, match=r"\['log'\] are missing or unknown"):
        prompt.render("ask", task="it")

    with pytest.raises(UsageError, match="'code'"):
        prompt.render("ask", task="it", log="", code="")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (None, "the file"),
        ([], "the file"),
        ({**TINY, "version": 0}, "version"),
        ({**TINY, "version": "new"}, "version"),
        ({**TINY, "author": "x"}, "author"),
        ({**TINY, "templates": {}}, "templates"),
        (
            make_tiny_prompt(variables=["task"]),
            r"\['log'\] are declared and not used, or used and not declared",
        ),
        (make_tiny_prompt(variables=["task", "log", "code"]), "'code'"),
        (make_tiny_prompt(text="Do $task for 5 $ or less.\n$log"), "stands alone"),
        (make_tiny_prompt(shrink={"log": {"keep": "middle", "cut": ""}}), "keep"),
        (make_tiny_prompt(shrink={"code": {"keep": "last", "cut": ""}}), r"\['code'\] cannot shrink"),
        (make_tiny_prompt(shrink={"log": {"keep": "last"}}), "cut"),
        (make_tiny_prompt(extra=1), "extra"),
    ],
)
def test_an_invalid_prompt_is_refused_with_its_location(raw: Any, message: str) -> None:
    with pytest.raises(UsageError, match=f"^here.yaml: .*{message}"):
        parse_prompt(raw, "here.yaml")


def test_the_hash_covers_the_whole_content() -> None:
    hashes = {
        parse_prompt(raw, "t").hash
        for raw in (
            TINY,
            {**TINY, "version": 2},
            make_tiny_prompt(text="Do $task!\n$log"),
            make_tiny_prompt(shrink={"log": {"keep": "last", "cut": "... $cut ..."}}),
            make_tiny_prompt(shrink={}),
        )
    }
    assert len(hashes) == 5
    assert parse_prompt(TINY, "a").hash == parse_prompt(TINY, "b").hash


def test_a_project_can_replace_a_single_template() -> None:
    packaged = parse_prompt(TINY, "packaged")
    text = {"text": "Please do $task. $log", "variables": ["task", "log"]}
    project_prompt = parse_prompt(
        {"name": "tiny", "version": 7, "templates": {"ask": text}}, "mine.yaml", packaged
    )

    assert project_prompt.render("ask", task="it", log="now") == "Please do it. now"
    assert project_prompt.render("bye") == packaged.render("bye")
    assert project_prompt.templates["ask"].shrink == packaged.templates["ask"].shrink
    assert (project_prompt.version, project_prompt.source) == (7, "mine.yaml")
    assert project_prompt.hash != packaged.hash


def test_a_project_template_may_omit_only_shrinkable_parts() -> None:
    packaged = parse_prompt(TINY, "packaged")
    project_prompt = parse_prompt(
        make_tiny_prompt(text="Just $task.", variables=["task"]), "mine.yaml", packaged
    )

    assert project_prompt.render("ask", task="it", log="a log") == "Just it."

    with pytest.raises(UsageError, match=r"\['task'\] are unknown or missing"):
        parse_prompt(make_tiny_prompt(text="$log", variables=["log"]), "mine.yaml", packaged)

    with pytest.raises(UsageError, match=r"\['code'\] are unknown or missing"):
        parse_prompt(
            make_tiny_prompt(text="$task $log $code", variables=["task", "log", "code"]),
            "mine.yaml",
            packaged,
        )


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({**TINY, "name": "other"}, "the role's 'tiny'"),
        ({**TINY, "templates": {"asks": TINY["templates"]["ask"]}}, "'asks' is not a template of the role"),
        (make_tiny_prompt(shrink={"task": {"keep": "first", "cut": "..."}}), r"\['task'\] cannot shrink"),
    ],
)
def test_a_prompt_that_does_not_fit_the_role_is_refused(raw: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_prompt(raw, "mine.yaml", parse_prompt(TINY, "packaged"))


def test_a_book_reads_the_projects_prompt_once(tmp_path: Path) -> None:
    packaged = packaged_prompt("coder")

    assert PromptBook(tmp_path / "none").load("coder") == packaged
    assert PromptBook().load("coder") == packaged
    project_prompt = {
        "name": "coder",
        "version": 9,
        "templates": {"system": {"text": "Be brief.", "variables": []}},
    }
    (tmp_path / "coder.yaml").write_text(yaml.safe_dump(project_prompt))
    book = PromptBook(tmp_path)
    assert book.load("coder").render("system") == "Be brief."
    assert book.load("diagnose").source == "packaged"
    project_prompt["templates"] = {"system": {"text": "Be long.", "variables": []}}
    (tmp_path / "coder.yaml").write_text(yaml.safe_dump(project_prompt))
    assert book.load("coder").render("system") == "Be brief."  # a prompt does not change during a run
    assert PromptBook(tmp_path).load("coder").render("system") == "Be long."


@pytest.mark.parametrize("content", [b"\xff", b"a: [", b"x" * 300_000, b"!!python/object:os.system {}"])
def test_an_invalid_yaml_file_is_named_in_the_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "coder.yaml").write_bytes(content)
    with pytest.raises(UsageError, match=r"coder\.yaml"):
        PromptBook(tmp_path).load("coder")


def test_an_unknown_role_suggests_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        PromptBook().load("codr")
    assert caught.value.remedy == "did you mean 'coder'?"


def test_files_that_no_role_reads_are_found(tmp_path: Path) -> None:
    for name in ("coder.yaml", "codr.yaml", "notes.txt"):
        (tmp_path / name).write_text("")
    assert [path.name for path in PromptBook(tmp_path).unknown_files()] == ["codr.yaml", "notes.txt"]
    assert list(PromptBook(tmp_path / "none").unknown_files()) == []
