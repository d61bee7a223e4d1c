"""The coder of one file of a skeleton: its prompt, and what is taken of its replies."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from suture.agents.prompting.fitting import fit_prompt
from suture.agents.prompting.prompt_files import packaged_prompt
from suture.agents.roles.project_coder import ProjectBrief, draft_project_prompt, files_from_project_reply
from suture.core.records import Counterexample, ProjectKind
from suture.errors import MalformedReply
from suture.models import Message, Reply
from suture.project.skeletons import find_skeleton


def make_brief(kind: ProjectKind, *, code: str = "", facts: tuple[Counterexample, ...] = ()) -> ProjectBrief:
    skeleton = find_skeleton("python", kind, name="shop")
    assert skeleton is not None
    return ProjectBrief(
        statement="Count the orders",
        rules="",
        files={skeleton.file: code} if code else {},
        facts=facts,
        is_repair=bool(code),
        skeleton=skeleton,
    )


async def render(brief: ProjectBrief) -> str:
    """Return the last message of a prompt without a limit."""

    async def count(messages: Sequence[Message]) -> int:
        return 0

    draft = draft_project_prompt(brief, packaged_prompt("project_coder"))
    return (await fit_prompt(draft, None, count)).messages[-1].content


async def test_the_prompt_shows_an_example_and_the_reply_continues_the_beginning() -> None:
    draft = draft_project_prompt(make_brief("data_pipeline"), packaged_prompt("project_coder"))

    assert draft.prefill is not None
    assert draft.prefill.text.startswith("```python\ndef process(rows):\n")
    assert "Count the orders." in draft.prefill.text
    assert "with_tax" in await render(make_brief("data_pipeline"))


async def test_a_repair_shows_the_file_and_the_fact_and_no_example() -> None:
    fact = Counterexample(check_id="t", call="process([])", exception="ZeroDivisionError: division by zero")
    brief = make_brief("data_pipeline", code="def process(rows): ...", facts=(fact,))

    prompt = await render(brief)

    assert "```python\ndef process(rows): ...\n```" in prompt
    assert "`process([])` raised ZeroDivisionError: division by zero" in prompt
    assert "with_tax" not in prompt


def test_only_the_file_and_requested_packages_are_taken() -> None:
    text = (
        "### shop/app.py\n```python\nx = 1\n```\n"
        "### requirements.txt\n```text\njson\nemail-validator\n```\n"
        "### shop/resources.py\n```python\nclass Order: ...\n```\n"
    )

    files = files_from_project_reply(Reply(text=text), make_brief("web_app"))

    assert files == {
        "shop/resources.py": "class Order: ...\n",
        "requirements.txt": "flask>=2\nemail-validator\n",
    }


@pytest.mark.parametrize(
    "text", ["I cannot.", "```python\ndef tallest(plants):\n    return max(plants)\n```"]
)
def test_a_reply_without_code_or_about_the_example_is_refused(text: str) -> None:
    with pytest.raises(MalformedReply):
        files_from_project_reply(Reply(text=text), make_brief("cli_tool"))
