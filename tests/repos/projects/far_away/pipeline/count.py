from pipeline.clean import normalise


def frequencies(words):
    """How often each word comes, blank ones left out."""
    found = {}
    for word in map(normalise, words):
        if word is None:
            continue
        found[word] = found.get(word, 0) + 1
    return found
