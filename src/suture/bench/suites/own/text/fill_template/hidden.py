assert fill_template("", {}) == ""
assert fill_template("plain", {"plain": 1}) == "plain"
assert fill_template("{{}}", {}) == "{}"
assert fill_template("{{a}}", {"a": 1}) == "{a}"
assert fill_template("{{{a}}}", {"a": 1}) == "{1}"
assert fill_template("{{{{", {}) == "{{"
assert fill_template("{a}{b}{a}", {"a": "x", "b": "{a}"}) == "x{a}x"
assert fill_template("{a}", {"a": None}) == "None"
assert fill_template("{a}", {"a": ""}) == ""
assert fill_template("{two words}", {"two words": 2}) == "2"
assert fill_template("{\ta }", {"a": 0.5}) == "0.5"
assert fill_template("}}{{", {}) == "}{"


def fault(template):
    try:
        fill_template(template, {"a": 1})
    except (KeyError, ValueError) as raised:
        return type(raised).__name__
    return ""


assert fault("{b}") == "KeyError"
assert fault("{A}") == "KeyError"
for template in ["{", "}", "{a", "a}", "x{", "{}", "{ }", "{a}}", "{{a}", "{a {a}"]:
    assert fault(template) == "ValueError", template
