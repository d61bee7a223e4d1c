def fill_template(template, values):
    out = []
    at = 0
    while at < len(template):
        two = template[at : at + 2]
        if two in ("{{", "}}"):
            out.append(two[0])
            at += 2
        elif template[at] == "{":
            end = template.find("}", at)
            name = template[at + 1 : end].strip()
            if end < 0 or not name or "{" in name:
                raise ValueError(f"a brace at {at} is not closed, or names nothing")
            out.append(str(values[name]))
            at = end + 1
        elif template[at] == "}":
            raise ValueError(f"the brace at {at} closes nothing")
        else:
            out.append(template[at])
            at += 1
    return "".join(out)
