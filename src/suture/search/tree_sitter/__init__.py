"""The search in other languages than Python: changes of a tree-sitter tree, tried on the failing tests first.

Trials are quick where a driver can run the tests of many candidates in one process (`node --test`, `go
test`, Jest, Vitest, Mocha, tape). With other runners, each trial is a run of the user's command. Trials order
candidates and decide nothing.
"""
