from wordcount import count_words, longest


def test_count_words():
    assert count_words("a bc  d") == 3
    assert count_words("") == 0


def test_longest():
    assert longest("to be or not") == "not"
    assert longest("one three two") == "three"
