"""How JavaScript and TypeScript are written."""

from __future__ import annotations

from suture.languages.syntax.syntax import Syntax

FAMILIES = (
    *(("min", "max"), ("floor", "ceil", "round", "trunc", "abs"), ("push", "unshift", "concat")),
    *(("pop", "shift"), ("slice", "splice", "substring", "substr"), ("indexOf", "lastIndexOf", "search")),
    *(("startsWith", "endsWith", "includes"), ("toLowerCase", "toUpperCase"), ("isNaN", "isFinite")),
    *(("trim", "trimStart", "trimEnd"), ("some", "every", "filter", "find", "findIndex", "map")),
    *(("map", "flatMap", "forEach", "filter"), ("parseInt", "parseFloat", "Number", "String")),
    *(("keys", "values", "entries"), ("has", "get", "delete"), ("padStart", "padEnd"), ("add", "delete")),
    *(("charAt", "charCodeAt", "at"), ("reduce", "reduceRight"), ("replace", "replaceAll")),
)
SYNTAX = Syntax(
    length="{}.length",
    end=";",
    test="if ({}) {{ {} }}",
    equal=("===", "!=="),
    nothing="null",
    put="{}.push({});",
    around=(
        *("Math.abs({})", "Math.floor({})", "{}.length", "-{}", "{}.toLowerCase()", "{}.sort()"),
        *("Math.ceil({})", "Math.round({})", "{}.reverse()", "Number({})", "String({})", "{}.toString()"),
        *("{}.trim()", "{}.slice(1)", "{}.slice(0, -1)", "{}[0]", "[...{}]", "{}.toUpperCase()"),
        *("{}.join('')", "{}.split('')", "parseInt({})", "{} % 2", "await {}", "[...new Set({})]", "[{}]"),
        *("{}.slice()", "Math.sqrt({})", "{}.sort((a, b) => a - b)", "({} ?? '')", "({} ?? 0)"),
        *("Math.max(0, {})", "Math.min(0, {})", "Math.max(1, {})"),
    ),
    answers=("true", "false", "0", "[]", "''", "null", "-1", "1", "undefined"),
    better=("Math.max({0}, {1})", "Math.min({0}, {1})"),
    rest=("{0}.slice({1})", "{0}.slice(0, {1})"),
    families=FAMILIES,
)
