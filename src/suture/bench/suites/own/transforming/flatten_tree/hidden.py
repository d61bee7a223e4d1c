assert flatten_tree({}) == {}
assert flatten_tree({"a": 1}) == {"a": 1}
assert flatten_tree({"a": None, "b": False, "c": 0, "d": ""}) == {"a": None, "b": False, "c": 0, "d": ""}
assert flatten_tree({"a": [[1, [2]], {"b": 3}]}) == {"a.0.0": 1, "a.0.1.0": 2, "a.1.b": 3}
assert flatten_tree({"a": [[], {}]}) == {"a.0": [], "a.1": {}}
assert flatten_tree({"a": {"b": {"c": {"d": 5}}}}, "__") == {"a__b__c__d": 5}
assert flatten_tree({"a": {"b": 1}}, "") == {"ab": 1}
assert flatten_tree({"a": {"": 1}}) == {"a.": 1}
assert list(flatten_tree({"z": {"y": 1}, "a": [2]})) == ["z.y", "a.0"]
assert flatten_tree({"a": "text"}) == {"a": "text"}
assert flatten_tree({"a": {"b": [1]}}, "/") == {"a/b/0": 1}
