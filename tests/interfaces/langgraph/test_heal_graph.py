"""`heal` as a LangGraph graph: questions interrupt it, a forked thread forks the run, and the examples use it."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from suture.errors import UsageError
from suture.interfaces.langgraph.heal_graph import HealInput, _require_answer, make_heal_graph

pytestmark = pytest.mark.usefixtures("active_bare_python")
REPOSITORY = Path(__file__).parents[3]
TEST = """\
from prices import total


def test_total():
    assert total([1, 2]) == 3


def test_none():
    assert total([]) == 0
"""
BROKEN = "def total(prices):\n    return sum(prices) + 1\n"
FIXED = BROKEN.replace(" + 1", "")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "prices"
    folder.mkdir()
    (folder / "prices.py").write_text(BROKEN)
    (folder / "test_prices.py").write_text(TEST)
    return folder


def make_input(project: Path, **settings: object) -> HealInput:
    paths = {"paths.home": str(project.parent / "home"), "model.name": "none"}
    return {"project": str(project), "test": "python -m pytest -q", "settings": {**paths, **settings}}


def load_example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, REPOSITORY / "examples" / "langgraph" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_graph_that_langgraph_json_names_exists() -> None:
    name = json.loads((REPOSITORY / "langgraph.json").read_text())["graphs"]["heal"]
    module, _, factory = name.partition(":")

    graph = getattr(importlib.import_module(module), factory)()

    assert {"heal", "ask", "continue"} < set(graph.get_graph().nodes)


def test_an_input_without_a_project_is_refused() -> None:
    with pytest.raises(UsageError, match="no project was given"):
        asyncio.run(make_heal_graph().ainvoke({}))


@pytest.mark.parametrize("fields", [{"hint": 5}, {"files": ["a.py"]}, {"files": {"a.py": 1}}])
def test_an_answer_with_values_of_other_types_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="`hint` must be a text"):
        _require_answer({"choice": "redirect", "hint": "round it", **fields}, ["redirect"])


@pytest.mark.heavy
def test_a_question_interrupts_the_graph_and_a_forked_thread_forks_the_run(project: Path) -> None:
    graph = make_heal_graph()
    graph.checkpointer = InMemorySaver()
    config: Any = {"configurable": {"thread_id": "1"}}

    async def follow() -> None:
        asked = await graph.ainvoke(make_input(project, **{"loop.autonomy": "review_all"}), config)
        assert asked["outcome"] == "waiting"
        assert asked["__interrupt__"][0].value["stage"] == "search"
        first_question = (await graph.aget_state(config)).config
        again = await graph.ainvoke(Command(resume={"choice": "first"}), config)
        assert "the choices are approve" in again["__interrupt__"][0].value["problem"]
        delivery = await graph.ainvoke(Command(resume={"choice": "approve"}), config)
        assert delivery["__interrupt__"][0].value["stage"] == "delivery"
        healed = await graph.ainvoke(Command(resume={"choice": "approve"}), config)
        assert (healed["outcome"], healed["run"]) == ("healed", asked["run"])
        assert "-    return sum(prices) + 1" in healed["diff"]

        forked = await graph.aupdate_state(first_question, {})
        await graph.ainvoke(None, forked)
        stopped = await graph.ainvoke(Command(resume={"choice": "abort"}), config)
        assert stopped["outcome"] == "cancelled"
        assert stopped["run"] != asked["run"]

    asyncio.run(follow())
    assert (project / "prices.py").read_text() == BROKEN


@pytest.mark.heavy
def test_the_example_heals_a_project_in_a_node_of_another_graph(project: Path) -> None:
    app = load_example("heal_as_a_node").app

    async def follow() -> list[tuple[str, Any]]:
        modes = ["custom", "values"]
        stream = app.astream(make_input(project), stream_mode=modes, subgraphs=True)
        return [(mode, values) async for _, mode, values in stream]

    streamed = asyncio.run(follow())

    _, ticket = streamed[-1]
    assert ticket["outcome"] == "healed"
    assert ticket["comment"] == ticket["diff"]
    kinds = [values["kind"] for mode, values in streamed if mode == "custom"]
    assert (kinds[0], kinds[-1]) == ("run.started", "run.finished")


class _JudgingModel(BaseChatModel):
    """Calls the tool once, and then repeats what it was told."""

    project: str

    @property
    def _llm_type(self) -> str:
        return "judging"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        assert [tool.name for tool in tools] == ["judge_change"]
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        call: Any = {"name": "judge_change", "args": {"project": self.project}, "id": "1"}
        told = messages[-1].content if messages[-1].type == "tool" else ""
        reply = AIMessage(content=told) if told else AIMessage(content="", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=reply)])


@pytest.mark.heavy
def test_the_example_lets_an_agent_judge_its_change(project: Path) -> None:
    git = ["git", "-C", str(project), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "Prices"]):
        subprocess.run([*git, *arguments], check=True)
    (project / "prices.py").write_text(FIXED)
    agent = load_example("judge_as_a_tool").make_agent(_JudgingModel(project=str(project)))

    end = asyncio.run(agent.ainvoke({"messages": [("user", "Mend the total.")]}))

    assert end["messages"][-1].content.startswith("Accepted")
