from pipeline.count import frequencies


def longest(words):
    """The words by length, longest first, each with its initial."""
    return [(word[0], word) for word in sorted(frequencies(words), key=len, reverse=True)]
