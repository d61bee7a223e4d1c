"""Running one program in a sandbox: its request, its streams, its limits and its end.

Everything that all back ends share is here; a back end adds the isolation. `supervisor.py` is the part that
runs inside.
"""
