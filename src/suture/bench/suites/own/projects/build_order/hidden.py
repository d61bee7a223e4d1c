assert build_order("a:\n") == ["a"]
assert build_order("b: a") == ["a", "b"]
assert build_order("c:\nb:\na:\n") == ["a", "b", "c"]
assert build_order("a: z\nb:\n") == ["b", "z", "a"]
assert build_order("a: b\na: c\n") == ["b", "c", "a"]
assert build_order("a: b # not c\n# d: e\n\n  b :  c ,, c\n") == ["c", "b", "a"]
assert build_order("d: b, c\nb: a\nc: a\n") == ["a", "b", "c", "d"]
assert build_order("1: 3\n2: 1\n") == ["3", "1", "2"]
assert build_order("app: lib\nlib: app2\napp2: z\nk:\n") == ["k", "z", "app2", "lib", "app"]
assert build_order("z:\nb: a\n") == ["a", "b", "z"]


def refuses(text):
    try:
        build_order(text)
    except ValueError:
        return True
    return False


assert refuses("a: a")
assert refuses("a: b\nb: a")
assert refuses("x:\na: b\nb: c\nc: a\n")
assert refuses("no colon here")
assert refuses(": a")
