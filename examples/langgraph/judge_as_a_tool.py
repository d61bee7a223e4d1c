"""Let a LangGraph agent of your own ask Suture whether its change is good, before it says that it is done."""

from langchain_core.tools import tool
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from suture.api import judge
from suture.interfaces.narrative.judgement_text import render_judgement


@tool
async def judge_change(project: str) -> str:
    """Say whether the changes in a project's working tree are accepted, and if not, why."""
    return render_judgement(await judge(project))


def make_agent(model):
    """Return an agent that asks `model`, a chat model, until it calls no more tools."""

    async def answer(state: MessagesState):
        return {"messages": [await model.bind_tools([judge_change]).ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("answer", answer).add_node("tools", ToolNode([judge_change]))
    graph.set_entry_point("answer").add_conditional_edges("answer", tools_condition)
    return graph.add_edge("tools", "answer").compile()
