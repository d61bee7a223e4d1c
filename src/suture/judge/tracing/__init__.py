"""Values of variables, line by line, of a candidate's run: for a debugger, and never a verdict."""
