"""Python source code as data: parsed, inspected, split and merged. Nothing here runs code."""
