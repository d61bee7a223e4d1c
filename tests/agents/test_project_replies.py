"""Reading the files of a project from a reply."""

from __future__ import annotations

from suture.agents.roles.project_coder import ProjectBrief, files_from_project_reply
from suture.models import Reply

PROGRAM = "### todo/__main__.py\n```python\nprint()\n```\n"


def read_files(requirements: str, **files: str) -> dict[str, str]:
    text = f"{PROGRAM}### requirements.txt\n```\n{requirements}```\n"
    brief = ProjectBrief(
        statement="A list", files=files, rules="", entry="todo/__main__.py", strategy="minimal", facts=()
    )
    return files_from_project_reply(Reply(text=text), brief)


def test_modules_that_python_has_are_not_required() -> None:
    assert read_files("json\nflask>=3\nargparse==1.4.0\n")["requirements.txt"] == "flask>=3\n"


def test_requirements_of_such_modules_alone_make_no_file() -> None:
    assert list(read_files("json\ncsv\n")) == ["todo/__main__.py"]


def test_a_requirement_that_the_project_has_already_stays() -> None:
    brief_files = {"requirements.txt": "dataclasses\n"}
    assert read_files("dataclasses\n", **brief_files)["requirements.txt"] == "dataclasses\n"
