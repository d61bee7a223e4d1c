"""Programs of ours that try many candidates in one start, behind the wall.

They share a process with the candidates, so what they say orders candidates, and no verdict is made of it.
Each reads `plan.json` beside it and appends lines of JSON to `trials`.
"""
