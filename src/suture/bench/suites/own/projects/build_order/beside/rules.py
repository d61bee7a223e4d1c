"""Rules of a build, one a line: `target: needed, needed  # remark`."""


def read_rules(text):
    """The targets and what each needs; a target may have several lines, which add up.

    Raises:
        ValueError: A line is no rule.
    """
    rules = {}
    for line in text.splitlines():
        line = line.partition("#")[0].strip()
        if not line:
            continue
        target, colon, rest = line.partition(":")
        target = target.strip()
        if not colon or not target:
            raise ValueError(f"no rule: {line!r}")
        needed = [name.strip() for name in rest.split(",") if name.strip()]
        rules.setdefault(target, []).extend(needed)
    return rules
