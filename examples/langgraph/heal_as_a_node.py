"""Use Suture's graph as one node of your own LangGraph graph."""

from typing import TypedDict

from langgraph.graph import END, START, StateGraph

from suture.interfaces.langgraph.heal_graph import make_heal_graph


class Ticket(TypedDict, total=False):
    project: str  # `make_heal_graph` reads this, and writes the two below
    outcome: str
    diff: str
    comment: str


def write_comment(ticket: Ticket) -> Ticket:
    """Say what became of the ticket."""
    return {"comment": ticket["diff"] if ticket["outcome"] == "healed" else f"Not mended: {ticket['outcome']}"}


graph = StateGraph(Ticket)
graph.add_node("heal", make_heal_graph())
graph.add_node("write_comment", write_comment)
graph.add_edge(START, "heal")
graph.add_edge("heal", "write_comment")
graph.add_edge("write_comment", END)
app = graph.compile()
