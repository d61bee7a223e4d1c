"""Running one program in a sandbox: encode its request, start it, talk with it, limit it, end it, read its
report.

Everything that all back ends share is here; a back end adds the isolation. `supervisor.py` is the part that
runs inside.
"""
