"""Everything that a person or a program touches: command line, web, MCP, editors, notebooks, CI, job
processes.
"""
