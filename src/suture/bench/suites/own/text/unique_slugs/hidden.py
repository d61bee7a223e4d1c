assert unique_slugs([]) == []
assert unique_slugs([""]) == ["page"]
assert unique_slugs(["", "---", "Page"]) == ["page", "page-2", "page-3"]
assert unique_slugs(["  A  B  "]) == ["a-b"]
assert unique_slugs(["C++ & C#"]) == ["c-c"]
assert unique_slugs(["10% off!"]) == ["10-off"]
assert unique_slugs(["snake_case"]) == ["snake-case"]
assert unique_slugs(["x", "x", "x"]) == ["x", "x-2", "x-3"]
assert unique_slugs(["x-2", "x", "x"]) == ["x-2", "x", "x-3"]
assert unique_slugs(["x", "x", "x-2"]) == ["x", "x-2", "x-2-2"]
assert unique_slugs(["b", "a", "b"]) == ["b", "a", "b-2"]
made = unique_slugs(["t", "t 2", "t", "t-3", "t", "T!"] * 4)
assert len(set(made)) == len(made) == 24
