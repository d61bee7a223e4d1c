assert merge_settings({}, {}) == {}
assert merge_settings({"a": 1}, {}) == {"a": 1}
assert merge_settings({"a": 1}, {"a": None}) == {}
assert merge_settings({"a": 1}, {"b": None}) == {"a": 1}
assert merge_settings({"a": [1, 2]}, {"a": [3]}) == {"a": [3]}
assert merge_settings({"a": {"b": 1}}, {"a": 2}) == {"a": 2}
assert merge_settings({"a": {"b": 1}}, {"a": {}}) == {"a": {"b": 1}}
assert merge_settings({}, {"a": {"b": {"c": None, "d": 0}}}) == {"a": {"b": {"d": 0}}}
assert merge_settings({"a": 0}, {"a": False, "b": "", "c": []}) == {"a": False, "b": "", "c": []}
assert merge_settings({"x": {"y": {"z": 1, "w": 2}}}, {"x": {"y": {"z": 3}}}) == {"x": {"y": {"z": 3, "w": 2}}}
assert merge_settings({"a": {"b": {"c": 1}}}, {"a": {"b": None}}) == {"a": {}}

base, changes = {"a": {"b": {"c": 1}}}, {"a": {"b": {"c": None, "d": {"e": None}}}}
assert merge_settings(base, changes) == {"a": {"b": {"d": {}}}}
assert base == {"a": {"b": {"c": 1}}}
assert changes == {"a": {"b": {"c": None, "d": {"e": None}}}}
