def split_csv_line(line):
    fields, text, state = [], "", "start"
    for character in line:
        if state == "quoted":
            if character == '"':
                state = "closed"
            else:
                text += character
        elif character == ",":
            fields.append(text)
            text, state = "", "start"
        elif character == '"' and state == "start":
            state = "quoted"
        elif character == '"' and state == "closed":
            text += character
            state = "quoted"
        elif state == "closed":
            raise ValueError("text after a closing quote")
        else:
            text += character
            state = "plain"
    if state == "quoted":
        raise ValueError("a quote is never closed")
    return [*fields, text]
