"""Tools that a model uses in plain text: the ReAct loop, and the tools of the debugger."""
