"""A search in languages other than Python: changes of a syntax tree, tried on the failing tests first.

Trials are quick where a driver of ours can run the tests of many candidates in one start (`node:test`,
`go test`); elsewhere each costs a run of the user's command. What a trial says orders candidates and decides
nothing.
"""
