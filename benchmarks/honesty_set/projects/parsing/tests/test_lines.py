from parsing import balanced, parse_pairs, split_fields, tokenize


def test_split_fields():
    assert split_fields('a,"b,c",d') == ["a", "b,c", "d"]
    assert split_fields("x,") == ["x", ""]


def test_parse_pairs():
    assert parse_pairs("a=1; b=2=3") == {"a": "1", "b": "2=3"}
    assert parse_pairs("") == {}


def test_tokenize():
    assert tokenize("12+(3*4)") == ["12", "+", "(", "3", "*", "4", ")"]
    assert tokenize("7") == ["7"]


def test_balanced():
    assert balanced("(()())") == True
    assert balanced(")(") == False
    assert balanced("((") == False
