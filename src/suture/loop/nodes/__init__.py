"""The nodes of the graph: async functions `(state, runtime) -> update of the state`."""
