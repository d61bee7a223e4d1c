"""The search engine for Python: trial processes, the schedule of candidates, and recovery from syntax errors."""
