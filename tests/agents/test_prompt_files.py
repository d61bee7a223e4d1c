"""Prompt files: strict about variables, replaceable by a project, read once per run."""

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


def tiny(**changes: Any) -> dict[str, Any]:
    """`TINY` with its `ask` template changed."""
    ask = {**TINY["templates"]["ask"], **changes}
    return {**TINY, "templates": {**TINY["templates"], "ask": ask}}


@pytest.mark.parametrize("name", packaged_prompt_names())
def test_the_packaged_prompts_are_sound(name: str) -> None:
    prompt = packaged_prompt(name)
    assert (prompt.name, prompt.source) == (name, "packaged")
    assert "system" in prompt.templates
    for template, found in prompt.templates.items():
        fill_placeholders = prompt.render(template, **dict.fromkeys(found.variables, "X$Y"))
        assert "X$Y" in fill_placeholders or not found.variables


def test_a_missing_and_an_unknown_variable_fail_loudly() -> None:
    prompt = parse_prompt(TINY, "t")
    assert prompt.render("ask", task="it", log="") == "Do it."
    assert prompt.render("bye") == "Bye, $5."
    with pytest.raises(UsageError, match=r"\['log'\] are missing or unknown"):
        prompt.render("ask", task="it")
    with pytest.raises(UsageError, match="'code'"):
        prompt.render("ask", task="it", log="", code="")


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (None, "the file"),
        ([], "the file"),
        ({**TINY, "version": 0}, "version"),
        ({**TINY, "version": "new"}, "version"),
        ({**TINY, "author": "x"}, "author"),
        ({**TINY, "templates": {}}, "templates"),
        (tiny(variables=["task"]), r"\['log'\] are declared and not used, or used and not declared"),
        (tiny(variables=["task", "log", "code"]), "'code'"),
        (tiny(text="Do $task for 5 $ or less.\n$log"), "stands alone"),
        (tiny(shrink={"log": {"keep": "middle", "cut": ""}}), "keep"),
        (tiny(shrink={"code": {"keep": "last", "cut": ""}}), r"\['code'\] cannot shrink"),
        (tiny(shrink={"log": {"keep": "last"}}), "cut"),
        (tiny(extra=1), "extra"),
    ],
)
def test_an_invalid_prompt_is_refused_with_its_place(raw: Any, says: str) -> None:
    with pytest.raises(UsageError, match=f"^here.yaml: .*{says}"):
        parse_prompt(raw, "here.yaml")


def test_the_hash_names_the_whole_content() -> None:
    hashes = {
        parse_prompt(raw, "t").hash
        for raw in (
            TINY,
            {**TINY, "version": 2},
            tiny(text="Do $task!\n$log"),
            tiny(shrink={"log": {"keep": "last", "cut": "... $cut ..."}}),
            tiny(shrink={}),
        )
    }
    assert len(hashes) == 5
    assert parse_prompt(TINY, "a").hash == parse_prompt(TINY, "b").hash


def test_a_project_can_replace_a_single_template() -> None:
    packaged = parse_prompt(TINY, "packaged")
    text = {"text": "Please do $task. $log", "variables": ["task", "log"]}
    own = parse_prompt({"name": "tiny", "version": 7, "templates": {"ask": text}}, "mine.yaml", packaged)
    assert own.render("ask", task="it", log="now") == "Please do it. now"
    assert own.render("bye") == packaged.render("bye")
    assert own.templates["ask"].shrink == packaged.templates["ask"].shrink
    assert (own.version, own.source) == (7, "mine.yaml")
    assert own.hash != packaged.hash


def test_a_project_template_may_omit_only_shrinkable_parts() -> None:
    packaged = parse_prompt(TINY, "packaged")
    own = parse_prompt(tiny(text="Just $task.", variables=["task"]), "mine.yaml", packaged)
    assert own.render("ask", task="it", log="a log") == "Just it."
    with pytest.raises(UsageError, match=r"\['task'\] are unknown or missing"):
        parse_prompt(tiny(text="$log", variables=["log"]), "mine.yaml", packaged)
    with pytest.raises(UsageError, match=r"\['code'\] are unknown or missing"):
        parse_prompt(tiny(text="$task $log $code", variables=["task", "log", "code"]), "mine.yaml", packaged)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ({**TINY, "name": "other"}, "the role's 'tiny'"),
        ({**TINY, "templates": {"asks": TINY["templates"]["ask"]}}, "'asks' is not a template of the role"),
        (tiny(shrink={"task": {"keep": "first", "cut": "..."}}), r"\['task'\] cannot shrink"),
    ],
)
def test_a_prompt_that_does_not_fit_the_role_is_refused(raw: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse_prompt(raw, "mine.yaml", parse_prompt(TINY, "packaged"))


def test_a_book_takes_the_projects_prompt_and_reads_it_once(tmp_path: Path) -> None:
    ours = packaged_prompt("coder")
    assert PromptBook(tmp_path / "none").load("coder") == ours
    assert PromptBook().load("coder") == ours
    own = {"name": "coder", "version": 9, "templates": {"system": {"text": "Be brief.", "variables": []}}}
    (tmp_path / "coder.yaml").write_text(yaml.safe_dump(own))
    book = PromptBook(tmp_path)
    assert book.load("coder").render("system") == "Be brief."
    assert book.load("diagnose").source == "packaged"
    own["templates"] = {"system": {"text": "Be long.", "variables": []}}
    (tmp_path / "coder.yaml").write_text(yaml.safe_dump(own))
    assert book.load("coder").render("system") == "Be brief."  # not in the middle of a run
    assert PromptBook(tmp_path).load("coder").render("system") == "Be long."


@pytest.mark.parametrize("content", [b"\xff", b"a: [", b"x" * 300_000, b"!!python/object:os.system {}"])
def test_a_file_that_is_no_yaml_is_a_usage_error_that_names_it(tmp_path: Path, content: bytes) -> None:
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
