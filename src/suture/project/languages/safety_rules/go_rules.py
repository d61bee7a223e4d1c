"""Safety rules for Go: the most severe ones of gosec, with its rule numbers."""

from __future__ import annotations

from suture.project.languages.safety_rules.rule import SafetyRule

RULES = (
    SafetyRule(
        name="go.shell", why="it passes a line to a shell, or runs a program with a computed name (G204)"
    ),
    SafetyRule(name="go.all-interfaces", why="it listens on every address of the machine (G102)"),
    SafetyRule(name="go.tls-off", why="it does not verify the other side of a connection (G402, G106)"),
    SafetyRule(name="go.unsafe", why="package unsafe bypasses all of Go's checks (G103)"),
    SafetyRule(name="go.native-code", why="it loads native code, without any of Go's checks"),
    SafetyRule(name="go.sql", why="it builds an SQL statement from text (G201, G202)"),
    SafetyRule(name="go.html", why="it puts text into a page as HTML (G203)"),
    SafetyRule(name="go.profiler", why="it exposes the program's internals to its clients (G108)"),
    SafetyRule(name="go.weak-crypto", why="a cipher or hash that is broken (G401 to G405, G501 to G506)"),
    SafetyRule(name="go.open-to-all", why="everybody can write the file (G301, G302, G306)"),
    SafetyRule(name="go.delete-tree", why="it deletes a folder with its content"),
)
COMPUTED = r"""(#not-match? @given "^(\"[^\"]*\"|`[^`]*`|[0-9]+)$")"""
CALL_OF = (
    "(call_expression function: (selector_expression operand: (_) @package field: (field_identifier) @name)"
)
SQL = r"(?i)[`\"]\\s*(select|insert|update|delete|drop|create|alter|replace)\\s"
QUERIES = {
    "go.shell": f"""
        ({CALL_OF} arguments: (argument_list . (interpreted_string_literal) @program)) @use
          (#eq? @package "exec") (#any-of? @name "Command" "CommandContext")
          (#match? @program "^.(/(usr/)?bin/)?(sh|bash|zsh|cmd|cmd.exe|powershell).$"))
        ({CALL_OF} arguments: (argument_list . (_) . (interpreted_string_literal) @program)) @use
          (#eq? @package "exec") (#eq? @name "CommandContext")
          (#match? @program "^.(/(usr/)?bin/)?(sh|bash|zsh|cmd|cmd.exe|powershell).$"))
        ({CALL_OF} arguments: (argument_list . (_) @given)) @use
          (#eq? @package "exec") (#eq? @name "Command") {COMPUTED})
        ({CALL_OF}) @use (#eq? @package "syscall") (#any-of? @name "Exec" "ForkExec" "StartProcess"))""",
    "go.all-interfaces": f"""
        ({CALL_OF} arguments: (argument_list (interpreted_string_literal) @address)) @use
          (#any-of? @name "Listen" "ListenPacket" "ListenAndServe" "ListenAndServeTLS")
          (#match? @address "^.(0\\\\.0\\\\.0\\\\.0|\\\\[::\\\\])?:[0-9a-z]*.$"))""",
    "go.tls-off": f"""
        ((keyed_element . (literal_element (identifier) @key) (literal_element (true))) @use
          (#eq? @key "InsecureSkipVerify"))
        ((assignment_statement left: (expression_list (selector_expression field: (field_identifier) @name))
          right: (expression_list (true))) @use (#eq? @name "InsecureSkipVerify"))
        ({CALL_OF}) @use (#eq? @package "ssh") (#eq? @name "InsecureIgnoreHostKey"))""",
    "go.unsafe": """
        ((import_spec path: (interpreted_string_literal) @path) @use (#eq? @path "\\"unsafe\\""))""",
    "go.native-code": f"""
        ((import_spec path: (interpreted_string_literal) @path) @use (#eq? @path "\\"C\\""))
        ({CALL_OF}) @use (#eq? @package "plugin") (#eq? @name "Open"))""",
    "go.sql": f"""
        ({CALL_OF} arguments: (argument_list (call_expression function: (selector_expression
          operand: (identifier) @format) arguments: (argument_list . (_) @text)))) @use
          (#match? @name "^(Query|Exec|Prepare)(Row)?(Context)?$") (#eq? @format "fmt")
          (#match? @text "{SQL}"))
        ({CALL_OF} arguments: (argument_list (binary_expression) @text)) @use
          (#match? @name "^(Query|Exec|Prepare)(Row)?(Context)?$") (#match? @text "{SQL}"))""",
    "go.html": f"""
        ({CALL_OF} arguments: (argument_list . (_) @given)) @use
          (#eq? @package "template") (#any-of? @name "HTML" "JS" "URL" "CSS" "HTMLAttr" "JSStr" "Srcset")
          {COMPUTED})""",
    "go.profiler": """
        ((import_spec path: (interpreted_string_literal) @path) @use (#eq? @path "\\"net/http/pprof\\""))""",
    "go.weak-crypto": """
        ((import_spec path: (interpreted_string_literal) @path) @use
          (#match? @path "^.crypto/(md5|sha1|des|rc4).$"))""",
    "go.open-to-all": f"""
        ({CALL_OF} arguments: (argument_list (int_literal) @mode .)) @use
          (#eq? @package "os") (#any-of? @name "Chmod" "Mkdir" "MkdirAll" "WriteFile" "OpenFile")
          (#match? @mode "^0o?[0-7]*[2367]$"))""",
    "go.delete-tree": f"""({CALL_OF}) @use (#eq? @package "os") (#eq? @name "RemoveAll"))""",
}
