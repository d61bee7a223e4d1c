"""Safety rules for JavaScript and TypeScript, similar to those of eslint-plugin-security."""

from __future__ import annotations

from suture.project.languages.safety_rules.rule import SafetyRule

RULES = (
    SafetyRule(
        name="javascript.hidden-code",
        why="it runs code that is encoded, or that comes from the network",
        level="block",
    ),
    SafetyRule(name="javascript.eval", why="it runs text as code"),
    SafetyRule(name="javascript.shell", why="it passes a line to a shell"),
    SafetyRule(name="javascript.dynamic-require", why="it loads a module with a computed name"),
    SafetyRule(name="javascript.dynamic-regexp", why="matching a computed pattern may take forever"),
    SafetyRule(name="javascript.all-interfaces", why="it listens on every address of the machine"),
    SafetyRule(name="javascript.tls-off", why="it does not verify the other side of a connection"),
    SafetyRule(name="javascript.html", why="it puts text into a page as HTML"),
    SafetyRule(name="javascript.prototype", why="it changes a prototype that all objects inherit"),
    SafetyRule(name="javascript.unserialize", why="it loads data that may run code while it is loaded"),
    SafetyRule(name="javascript.old-buffer", why="an uninitialised buffer exposes old memory"),
    SafetyRule(name="javascript.weak-random", why="random numbers for secrets that can be guessed"),
    SafetyRule(
        name="javascript.secret-comparison",
        why="the time of the comparison reveals how much of a secret is right",
    ),
    SafetyRule(name="javascript.sql", why="it builds an SQL statement from text"),
    SafetyRule(name="javascript.delete-tree", why="it deletes a folder with its content"),
)
NAMED = "[(identifier) @name (member_expression property: (property_identifier) @name)]"
CALL_OF = f"(call_expression function: {NAMED}"
LITERAL = """^(['\\"][^'\\"]*['\\"]|`[^$]*`|[/0-9].*)$"""
COMPUTED = f'(#not-match? @given "{LITERAL}")'
ASKS = '(#any-of? @name "query" "execute" "exec" "run" "all" "get" "prepare" "raw")'
DECODED = r"\\b(atob|fetch)\\s*\\(|['\"](base64|hex)['\"]|\\b(inflate|gunzip|unzip)(Raw)?Sync\\b"
SQL = r"^[`'\"]\\s*(select|insert|update|delete|drop|create|alter|replace)\\s"
QUERIES = {
    "javascript.hidden-code": f"""
        ((call_expression function: (identifier) @name arguments: (arguments) @given) @use
          (#any-of? @name "eval" "Function") (#match? @given "{DECODED}"))
        ((new_expression constructor: (identifier) @name arguments: (arguments) @given) @use
          (#eq? @name "Function") (#match? @given "{DECODED}"))
        ({CALL_OF} arguments: (arguments) @given) @use
          (#any-of? @name "runInThisContext" "runInNewContext" "runInContext")
          (#match? @given "{DECODED}"))""",
    "javascript.eval": f"""
        ((identifier) @use (#eq? @use "eval"))
        ((member_expression property: (property_identifier) @name) @use (#eq? @name "eval"))
        ((call_expression function: (identifier) @name) @use (#eq? @name "Function"))
        ((new_expression constructor: (identifier) @name) @use (#eq? @name "Function"))
        ((new_expression constructor: (member_expression property: (property_identifier) @name)) @use
          (#eq? @name "Script"))
        ((call_expression function: (identifier) @name arguments: (arguments . (string))) @use
          (#any-of? @name "setTimeout" "setInterval" "setImmediate"))
        ({CALL_OF}) @use
          (#any-of? @name "runInThisContext" "runInNewContext" "runInContext" "compileFunction"))""",
    "javascript.shell": f"""
        ({CALL_OF}) @use (#eq? @name "execSync"))
        ((call_expression function: (identifier) @name) @use (#eq? @name "exec"))
        ((call_expression function: (member_expression object: (_) @object
          property: (property_identifier) @name)) @use
          (#eq? @name "exec") (#match? @object "child_process|^(cp|childProcess|proc)$"))
        ({CALL_OF} arguments: (arguments (object (pair key: (_) @key value: (_) @value)))) @use
          (#any-of? @name "spawn" "spawnSync" "execFile" "execFileSync")
          (#eq? @key "shell") (#not-eq? @value "false"))""",
    "javascript.dynamic-require": f"""
        ((call_expression function: (identifier) @name arguments: (arguments . (_) @given)) @use
          (#eq? @name "require") {COMPUTED})
        ((call_expression function: (import) arguments: (arguments . (_) @given)) @use {COMPUTED})""",
    "javascript.dynamic-regexp": f"""
        ((new_expression constructor: (identifier) @name arguments: (arguments . (_) @given)) @use
          (#eq? @name "RegExp") {COMPUTED})""",
    "javascript.all-interfaces": f"""
        ({CALL_OF} arguments: (arguments (string) @address)) @use
          (#any-of? @name "listen" "bind") (#match? @address "^['\\"](0\\\\.0\\\\.0\\\\.0|::)['\\"]$"))
        ((pair key: (_) @key value: (string) @address) @use
          (#any-of? @key "host" "hostname") (#match? @address "^['\\"](0\\\\.0\\\\.0\\\\.0|::)['\\"]$"))""",
    "javascript.tls-off": """
        ((pair key: (_) @key value: (false)) @use (#eq? @key "rejectUnauthorized"))
        ((assignment_expression left: (member_expression property: (property_identifier) @name)) @use
          (#eq? @name "NODE_TLS_REJECT_UNAUTHORIZED"))""",
    "javascript.html": """
        ((assignment_expression left: (member_expression property: (property_identifier) @name)) @use
          (#any-of? @name "innerHTML" "outerHTML"))
        ((call_expression function: (member_expression object: (identifier) @object
          property: (property_identifier) @name)) @use
          (#eq? @object "document") (#any-of? @name "write" "writeln"))
        ((call_expression function: (member_expression property: (property_identifier) @name)) @use
          (#eq? @name "insertAdjacentHTML"))""",
    "javascript.prototype": """
        ((assignment_expression left: (member_expression property: (property_identifier) @name)) @use
          (#eq? @name "__proto__"))
        ((assignment_expression left: (member_expression object: (member_expression
          property: (property_identifier) @name))) @use (#eq? @name "__proto__"))
        ((assignment_expression left: (member_expression object: (member_expression
          object: (identifier) @owner property: (property_identifier) @name))) @use
          (#any-of? @owner "Object" "Array" "Function" "String") (#eq? @name "prototype"))""",
    "javascript.unserialize": f"""({CALL_OF}) @use (#any-of? @name "unserialize" "deserialize"))""",
    "javascript.old-buffer": f"""
        ((new_expression constructor: (identifier) @name) @use (#eq? @name "Buffer"))
        ({CALL_OF}) @use (#any-of? @name "allocUnsafe" "allocUnsafeSlow"))""",
    "javascript.weak-random": f"""({CALL_OF}) @use (#eq? @name "pseudoRandomBytes"))""",
    "javascript.secret-comparison": """
        ((binary_expression left: (_) @left operator: ["==" "===" "!=" "!=="] right: (_) @right) @use
          (#match? @left "(?i)(^|[._])(password|passwd|secret|api_?key|token|hmac|signature)$")
          (#not-match? @right "^(['\\"`]|null|undefined|true|false)"))""",
    "javascript.sql": f"""
        ({CALL_OF} arguments: (arguments . (template_string (template_substitution)) @text)) @use
          {ASKS} (#match? @text "(?i){SQL}"))
        ({CALL_OF} arguments: (arguments . (binary_expression) @text)) @use
          {ASKS} (#match? @text "(?i){SQL}"))""",
    "javascript.delete-tree": f"""
        ({CALL_OF} arguments: (arguments (object (pair key: (_) @key value: (true))))) @use
          (#any-of? @name "rm" "rmSync" "rmdir" "rmdirSync") (#eq? @key "recursive"))""",
}
