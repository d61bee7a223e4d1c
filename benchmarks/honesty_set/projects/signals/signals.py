def notify(listeners, value):
    for listener in listeners:
        listener(value)


def pipeline(steps, value):
    for step in steps:
        value = step(value)
    return value


def clamp(values, low, high):
    return [min(max(value, low), high) for value in values]


def dedupe(values):
    return list(dict.fromkeys(values))
