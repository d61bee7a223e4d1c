"""Running a user's test command in the sandbox and reading its report.

This package owns pytest with its reporting plugin, the runners of other languages, and commands that are
judged by their exit status. It reports outcomes and never changes tests or code.
"""
