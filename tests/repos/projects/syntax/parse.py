def pairs(text):
    """`a=1;b=2` as a mapping of strings."""
    found = {}
    for part in text.split(";")
        key, _, value = part.partition("=")
        found[key] = value
    return found
