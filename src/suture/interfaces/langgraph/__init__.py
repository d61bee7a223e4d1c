"""Suture for LangGraph users: `heal` as a graph that LangGraph's server and Studio open, or a node of another graph.

It starts, answers and forks runs through the API. It holds no state of its own besides the id of the run.
"""
