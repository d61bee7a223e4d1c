assert stock_report("in 10 tea") == []
assert stock_report("in 9 tea") == ["tea: have 9, order 1"]
assert stock_report("in 11 tea\nout 1 tea") == []
assert stock_report("out 2 tea") == ["tea: have -2, order 12"]
assert stock_report("in 24 milk") == []
assert stock_report("in 23 fresh milk\nin 23 milk") == ["milk: have 23, order 1"]
assert stock_report("in 1 b\nin 1 a\nin 1 c") == ["a: have 1, order 9", "b: have 1, order 9", "c: have 1, order 9"]
assert stock_report("IN 2 tea\nOut 1 tea\n\n") == ["tea: have 1, order 9"]
assert stock_report("in 2 green tea\nin 3 green  tea\n") == ["green tea: have 5, order 5"]
assert stock_report("in 5 tea\nout 5 tea") == ["tea: have 0, order 10"]
assert stock_report("in 1 salt") == ["salt: have 1, order 2"]
assert stock_report("in 3 salt") == []


def refuses(text):
    try:
        stock_report(text)
    except ValueError:
        return True
    return False


for text in ["in tea", "in 3", "move 3 tea", "in x tea", "in -3 tea", "3 in tea"]:
    assert refuses(text), text
