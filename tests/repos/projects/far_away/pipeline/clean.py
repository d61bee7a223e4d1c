def normalise(word):
    """A word without case and without the blanks around it; what is blank is nothing."""
    word = word.strip().lower()
    return word or ""
