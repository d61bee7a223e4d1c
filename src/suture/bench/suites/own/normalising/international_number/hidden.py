assert international_number("+49 221 470815", "1") == "+49221470815"
assert international_number("+1 (212) 555.0100", "49") == "+12125550100"
assert international_number("030/123456", "49") == "+4930123456"
assert international_number("00 1 212 555 0100", "49") == "+12125550100"
assert international_number("0 0 1 212 555 0100", "49") == "+12125550100"
assert international_number("221470815", "49") is None
assert international_number("", "49") is None
assert international_number("+", "49") is None
assert international_number("0", "49") is None
assert international_number("+123456", "49") is None
assert international_number("+1234567", "49") == "+1234567"
assert international_number("+123456789012345", "49") == "+123456789012345"
assert international_number("+1234567890123456", "49") is None
assert international_number("+0123456789", "49") is None
assert international_number("000123456789", "49") is None
assert international_number("+49 221 x47", "49") is None
assert international_number("++49221470815", "49") is None
assert international_number("49+221470815", "49") is None
assert international_number("0221 470815 ext", "49") is None
assert international_number("01234", "49") is None
assert international_number("012345", "49") == "+4912345"
assert international_number("012345", "1") is None
