"""Tools for models: the ReAct loop, files in memory, and the debugger's tools."""
