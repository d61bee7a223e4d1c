"""Less of a change, as long as all checks pass: its parts, what can be spared, if the rest answers alike.

This part says what may go; whether code passes is asked of the checks, and it hands nothing over.
"""
