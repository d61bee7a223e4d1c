"""All numbers of the mutation operators: how likely each kind of change is, and how many changes are offered.

A prior says how likely a repair is of that kind, before any test has run. Priors are rough, and the same
for all projects and languages. The weights of single changes are next to the code that makes them.
"""

from __future__ import annotations

from collections.abc import Mapping

from suture.mutation.edits import OperatorName

OPERATOR_PRIORS: Mapping[OperatorName, float] = {
    "undefined_name": 0.95, "unknown_attribute": 0.85, "import_name": 0.9,
    "comparison": 0.9, "boolean_operator": 0.6, "negation": 0.6, "condition": 0.35,
    "returned_condition": 0.55,
    "arithmetic_operator": 0.7, "operand": 0.5, "sign_change": 0.4, "off_by_one": 0.5, "constant": 0.6,
    "expected_value": 0.9,
    "missing_term": 0.25, "missing_concatenation": 0.25,
    "variable": 0.4, "attribute": 0.6, "attribute_or_name": 0.3, "called_name": 0.65,
    "subscript_key": 0.45, "sequence_part": 0.32,
    "arguments": 0.65, "missing_argument": 0.25, "wrap_in_call": 0.28, "unwrap_call": 0.45,
    "accumulation": 0.5, "initial_value": 0.5, "generator": 0.6, "return_value": 0.5,
    "delete_statement": 0.4, "move_statement": 0.28, "change_block": 0.45, "loop_control": 0.4,
    "elif": 0.4, "guard": 0.35, "fill_container": 0.3,
    "missing_assignment": 0.15, "missing_return": 0.4, "copied_statement": 0.18,
    "iteration": 0.6, "bare_return": 0.6, "final_return": 0.35, "missing_initialisation": 0.8,
    "early_loop_return": 0.6, "append_element": 0.45,
    "exception_class": 0.5, "mutable_default": 0.8,
    "reused_value": 0.45, "reused_argument": 0.45, "decorator": 0.4,
    "empty_iteration": 0.8, "sibling_expression": 0.2,
    "truth_test": 0.2, "regular_expression": 0.2, "conversion": 0.08,
    "similar_name": 0.2, "accepted_class": 0.2, "handled_exception": 0.1,
}  # fmt: skip
"""Prior probability of each kind of repair, in (0, 1]. Chosen by judgement; not measured."""
PRIOR_SCALE = 0.4
"""Factor on all priors, which leaves room below 1 for unusually large weights."""
CROWDING_EXPONENT = 0.5
"""Exponent of a change's rank among the changes of one operator at one node, by which its weight decreases."""
ANNOTATION_FACTOR = 0.1
"""Weight of a change of a type annotation: almost nothing reads annotations at run time."""
UNREAD_VARIABLE_FACTOR = 8.0
"""Weight of a change that reads a local variable which its function never reads: 1 in 100 functions of working packages
has one (10,256 functions of installed packages, 2026-11-28). Chosen by judgement."""
UNREAD_PARAMETER_FACTOR = 1.5
"""Weight of a change that reads a parameter which its function never reads: 4 in 100 functions have one."""
REPEATED_FACTOR = 0.4
"""Weight of the same change at all places of a function or file, relative to the likeliest of its parts."""
MAX_REPEATED_PLACES = 8
"""Maximum number of places at which the same change is made at once; a file that is wrong at more is changed as a
whole. Chosen by judgement."""
MAX_CHANGES_PER_NODE = 150
"""Changes that one operator may make of one node; in a very long function their number would grow without bound."""
MAX_NODES_PER_LINE = 400
"""Named nodes that begin on one line. A written line of 120 characters has fewer than 100; a line with more is
data, or minified, and its changes would be made before the search looks at its clock again."""
MAX_NOTE_CHARS = 60
"""Characters of source code in the note of a change."""

# --- Names and values -------------------------------------------------------------------------------------

MAX_SIMILAR_NAMES = 6
"""Names offered in place of a misspelt one, the most similar first. Chosen by judgement."""
MIN_NAME_SIMILARITY = 0.5
"""Minimum `difflib` ratio of two names that count as similar; below it they share nothing but letters."""
OUTER_SCOPE_FACTOR = 0.7
"""Weight of a variable of an outer function, relative to one of the function itself."""
UNKNOWN_KIND_FACTOR = 0.8
"""Weight of a variable if its kind of value or the kind that is needed is not known. Chosen by judgement."""
UNLIKE_KIND_FACTOR = 0.25
"""Weight of a variable with another kind of value than the one that is needed. Chosen by judgement."""
MAX_FIRST_VARIABLES = 6
"""Maximum number of the variables bound first that are offered in a scope with very many variables."""
MAX_LAST_VARIABLES = 14
"""Maximum number of the variables bound last before the line that are offered, too, in a scope with very many
variables."""
BOUNDARY_FACTOR = 2.0
"""How much likelier than other mistakes it is to write `<` instead of `<=`, or the reverse."""
UBIQUITOUS_NUMBER = 2
"""Largest number that appears everywhere, with any meaning."""
UNSEEN_FREQUENCY = 5
"""Thousandths of an operator that `sign_frequencies` lacks, because a file may have habits of its own."""
MIN_FREQUENCY_RATIO = 0.2
"""Minimum factor by which usage in other code changes the weight of a change: the tests must count more."""
MAX_FREQUENCY_RATIO = 5.0
"""Maximum factor by which usage in other code changes the weight of a change."""
ODD_NUMBER_FACTOR = 1.6
"""Factor for a number that the file has once, while a neighbouring number appears several times: 999 among 1000s."""
POINTLESS_SIGN_FACTOR = 10.0
"""How much likelier code without effect is wrong: `+1` or `x = x` are never written on purpose."""
PLURAL_FACTOR = 2.0
"""How much likelier a loop iterates over the plural of its variable: `for part in self.parts`."""
UNFIT_KIND_FACTOR = 0.25
"""Factor on the weight of a call around a value that seems to be of another kind."""

MAX_DIFFERENCES = 6
"""Differences between an expected and an actual value that are looked for in literals."""
MAX_VALUE_CHARS = 4000
"""Maximum characters of an expected and an actual value, as source."""
MAX_COMPARED_CHARS = 400
"""Characters between the equal start and the equal end of two strings. The event loop waits for the comparison: it took
1.3 s for two repetitive strings of 500 characters, and 12 s for 1,000."""
MIN_VALUE_SIMILARITY = 0.6
"""Minimum `difflib` ratio of an expected and an actual string; below it, more than a literal is wrong."""

# --- How many changes are offered at one place ------------------------------------------------------------

MAX_CONDITIONS = 24
"""Conditions that may strengthen or weaken one in Python, those of its own names first."""
MAX_TREE_CONDITIONS = 30
"""Conditions that may strengthen or weaken one, in languages other than Python."""
MAX_SWAPPED_ARGUMENTS = 6
"""Maximum number of arguments of a call of which every pair is swapped."""
MOVE_DISTANCE = 4
"""Statements in each direction past which a statement is moved. The ends of its block are tried as well."""
MAX_COPIED_STATEMENTS = 8
"""Statements of the function that are copied to one place, the nearest first."""
MAX_RETURN_VALUES = 8
"""Values that a new `return` may give, the function's own first."""
MAX_HANDLED_EXCEPTIONS = 4
"""Exceptions that a new handler may catch: those of the file, then the commonest."""
MAX_CONVERSIONS = 24
"""Calls that the file makes of one value, the most frequent first, that are tried on other values."""
MAX_REUSED = 8
"""Pieces of other code that are offered at one place, so that no kind of change crowds out the others."""
MAX_REUSED_CHARS = 60
"""Characters of a piece of other code that is offered; longer ones hardly fit a second place. Chosen by judgement."""
MAX_SIBLINGS = 16
"""Expressions of the same function that are offered at one place in Python, the likeliest first."""
MAX_TREE_SIBLINGS = 24
"""Expressions of the same function that are offered at one place, in languages other than Python."""
SIBLING_RANGE = 100
"""Expressions before a node, and as many after it, among which siblings are looked for."""
MAX_SIBLING_CHARS = 40
"""Characters of an expression that is offered in place of another one."""
MAX_WRAPPED_CHARS = 60
"""Characters of an expression that is wrapped in a call (other languages)."""
MAX_INTEGER_DIGITS = 10
"""Digits of a number that is changed by one (other languages)."""

MAX_TREE_VARIABLES = 14
"""Other variables, or attributes, that may replace one (other languages)."""
MAX_TREE_UNDEFINED_NAMES = 10
"""Variables that may replace an undefined name (other languages)."""
MAX_TREE_CONDITION_NAMES = 5
"""Variables of the function, in addition to a condition's own, that conditions are made of (other languages)."""
MAX_TREE_REUSED_NAMES = 10
"""Variables that may replace an empty value or argument (other languages)."""
MAX_TREE_INITIAL_NAMES = 8
"""Variables that may be an initial or returned value (other languages)."""
MAX_TREE_STATEMENT_NAMES = 6
"""Variables that a new statement is made of (other languages)."""
MAX_GUARDED_PARAMETERS = 4
"""Parameters of a function that a guard may test (other languages)."""
MAX_RETURNED_CHARS = 6
"""Characters of a returned expression that a guard may return too, in languages other than Python."""
MAX_ELSE_LINES = 3
"""Lines of an `else` that is moved after its loop, in languages other than Python."""
MAX_SORT_TABLES = 4
"""Lookup tables by which the elements of a call chain may be sorted (other languages)."""
MAX_TREE_STRINGS = 12
"""String literals of the file that may replace one (other languages)."""
MAX_TREE_KEYS = 40
"""Keys of the file that may replace one (other languages)."""
MAX_COUNTERS = 3
"""Numeric variables that may be the index into a sequence (other languages)."""

# --- Syntax repair ----------------------------------------------------------------------------------------

BEAM_WIDTH = 14
"""Sources of each depth that are changed further."""
MAX_DEPTH = 8
"""Syntax errors in one source."""
MAX_PARSED_TEXTS = 6000
"""Sources that are parsed in one search."""
MAX_RESULTS = 60
"""Maximum number of parsable sources that are returned."""
MAX_EXACT_STOPS = 80
"""Sources of a round whose stop is located exactly, where that is slow."""
MAX_EQUAL_STOPS = 4
"""Sources in the beam that stop at the same line with the same message."""
CHANGE_FACTOR = 0.5
"""Factor on a score for each further change."""
FEW_PYTHON_RESULTS = 8
"""Number of parsable Python sources with which the search ends without another round."""
FEW_TREE_RESULTS = 3
"""Number of parsable sources with which the search ends, for tree-sitter: parsing thousands of trees is slow."""
MAX_TREE_CHARS = 400_000
"""Characters of a file that is repaired: parsing 1 MB took 11 s, and nothing interrupts the parser."""
MAX_CORPUS_CHARS = 200_000
"""Characters of other sources whose token statistics are used."""
TOKENS_BEFORE_STOP = 14
"""Tokens before the stop that are changed."""
TOKENS_AFTER_STOP = 3
"""Tokens after the stop that are changed."""
LINE_STARTS_BEFORE_STOP = 2
"""Lines before the stop whose first token is changed, however far away it is."""
TOKEN_DISTANCE_FACTOR = 0.93
"""Factor on a change's weight for each token between the change and the stop."""
EXTRA_TOKEN_ODDS = 0.5
"""Odds of a superfluous token, where a lost token has 1, times the odds of that token."""
WRONG_TOKEN_ODDS = 0.2
"""Odds of one token instead of another, where a lost token has 1, times the odds of that token."""
DOUBLED_TOKEN_ODDS = 0.2
"""Odds that a token that occurs twice in a row is superfluous."""
STRAY_TOKEN_ODDS = 0.5
"""Odds that a token that the language does not have is superfluous."""
MISSPELT_TOKEN_ODDS = 0.5
"""Odds that a word that resembles a keyword is a misspelt keyword."""
MIN_KEYWORD_SIMILARITY = 0.6
"""Minimum `difflib` ratio of a word and the keyword that it may be."""
CONTEXT_ROWS = 30
"""Lines around the stop whose names are offered."""
MAX_CONTEXT_NAMES = 60
"""Maximum number of names that are offered near the stop."""
MAX_TOKEN_CHANGES = 2500
"""Changes of one stop that are kept."""
ODDS_SOFTNESS = 4.0
"""Scale on which the logarithm of the odds becomes a weight."""
NGRAM_WEIGHTS = (0.55, 0.3, 0.12, 0.03)
"""Shares of four estimates of a token's probability: given two tokens before it, one, none, and a constant."""
UNBALANCED = 1.0
"""Factor on a change of a bracket that the source has more often than its other half."""
BALANCED = 0.4
"""Factor on a change of any other bracket."""
LIKELY_BRACKET = 0.9
"""Weight of a bracket that the layout calls for."""
OTHER_BRACKET = 0.5
"""Weight of the other changes of block brackets."""
MAX_BLOCK_CHANGES = 48
"""Changes of block brackets of one stop."""
