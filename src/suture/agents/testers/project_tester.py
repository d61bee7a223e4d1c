"""The tester of a whole project: one file of tests, in the usual way of its language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from suture.agents.prompting.fitting import Draft, PromptPart
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.replies.fenced import fenced_blocks
from suture.core.records import Language
from suture.errors import MalformedReply
from suture.models import Reply
from suture.project.languages import LANGUAGES, filled
from suture.project.python_source.bounded_reading import bounded

LONGEST_FILE = 100_000


@dataclass(frozen=True, kw_only=True)
class ProjectTestBrief:
    """What the tester needs.

    Attributes:
        statement: The task.
        language: What the project is written in.
        name: The project's.
        files: What is written, path -> text: only so can a test know what to call.
    """

    statement: str
    language: Language
    name: str
    files: Mapping[str, str]

    @property
    def path(self) -> str:
        """Where the tests go."""
        return filled((LANGUAGES[self.language].layout.test_file,), self.name, "")[0]


def project_test_draft(brief: ProjectTestBrief, prompt: Prompt) -> Draft:
    """The question, before it is cut to the room there is."""
    facts = LANGUAGES[brief.language]
    pieces = [f"### {path}\n```{facts.fence}\n{text.strip()}\n```" for path, text in brief.files.items()]
    texts = {
        "task": brief.statement.strip(),
        "path": brief.path,
        "tester": facts.layout.tester,
        "style": facts.layout.style.format(name=brief.name),
    }
    return Draft(
        prompt=prompt, template="write", texts=texts, parts={"files": PromptPart(pieces=pieces, joint="\n\n")}
    )


@bounded
def tests_from_project_reply(reply: Reply) -> str:
    """The one file of tests in a reply: its longest block of code.

    Raises:
        MalformedReply: There is none, or it was cut short.
    """
    blocks = [block for block in fenced_blocks(reply.text) if block.may_be_code and block.code.strip()]
    code = max((block.code for block in blocks if block.closed), key=len, default="")
    if not code or len(code) > LONGEST_FILE:
        raise MalformedReply("the reply holds no whole file of tests in a fenced block")
    return code
