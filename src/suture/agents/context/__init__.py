"""Build the coder's briefs: what a prompt shows of the task, the failures and the project's code."""
