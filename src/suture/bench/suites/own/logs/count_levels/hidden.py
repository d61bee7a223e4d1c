assert count_levels([]) == {}
assert count_levels([""]) == {"OTHER": 1}
lines = [
    "2026-01-05 12:00:01 [ERROR] a",
    "2026-01-05 12:00:01 [error] b",
    "2026-01-05 12:00:01 [Error]",
    "2026-01-05 12:00:01 [WARN] c [INFO]",
    "at line 7 [ERROR]",
    " 2026-01-05 12:00:01 [ERROR] indented",
    "2026-01-05 [ERROR] no time",
    "2026-01-05 12:00:01 ERROR no brackets",
    "2026-01-05 12:00:01 [] no level",
    "[ERROR] 2026-01-05 12:00:01",
]
assert count_levels(lines) == {"ERROR": 3, "WARN": 1, "OTHER": 6}
assert count_levels(["2026-01-05 12:00:01 [DEBUG] x"] * 5) == {"DEBUG": 5}
