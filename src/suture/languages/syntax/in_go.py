"""How Go is written."""

from __future__ import annotations

from suture.languages.syntax.syntax import Syntax

FAMILIES = (
    *(("min", "max"), ("Min", "Max"), ("Floor", "Ceil", "Round", "Trunc", "Abs")),
    *(("HasPrefix", "HasSuffix", "Contains"), ("Index", "LastIndex", "IndexByte", "Count")),
    *(("ToLower", "ToUpper", "Title"), ("TrimLeft", "TrimRight", "TrimSpace", "Trim")),
    *(("TrimPrefix", "TrimSuffix"), ("Ints", "Strings", "Float64s"), ("Split", "SplitN", "Fields")),
    *(("IsUpper", "IsLower", "IsDigit", "IsLetter", "IsSpace"), ("Replace", "ReplaceAll")),
    *(("Lock", "RLock", "Unlock", "RUnlock"), ("Before", "After", "Equal"), ("Errorf", "Error")),
    *(("Seconds", "Minutes", "Hours"), ("Add", "Sub"), ("Atoi", "Itoa"), ("Push", "Pop")),
)
SYNTAX = Syntax(
    length="len({})",
    end="",
    test="if {} {{ {} }}",
    equal=("==", "!="),
    nothing="nil",
    put="{0} = append({0}, {1})",
    around=(
        *("len({})", "-{}", "strings.ToLower({})", "strings.TrimSpace({})", "math.Abs({})", "int({})"),
        *("float64({})", "{}[1:]", "{}[0]", "string({})", "{} % 2", "{}.Len()", "&{}", "*{}"),
        *("math.Floor({})", "math.Ceil({})", "math.Round({})", "strings.ToUpper({})", "{}[:len({})-1]"),
    ),
    answers=("true", "false", "0", "nil", '""', "-1", "1"),
    better=(),
    rest=("{0}[{1}:]", "{0}[:{1}]"),
    families=FAMILIES,
)
