"""The graph's nodes: each an async function `(state, runtime) -> update` in a file of its own."""
