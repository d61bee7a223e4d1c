"""The search engine for Python: trial processes, schedule, and recovery from syntax errors."""
