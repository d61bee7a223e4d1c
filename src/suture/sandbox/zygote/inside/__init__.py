"""The zygote itself, which runs inside the sandbox on a bare interpreter: only the standard library may be
imported.
"""
