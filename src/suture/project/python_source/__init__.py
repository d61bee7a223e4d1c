"""Python text as data: parsed, taken apart, put together and asked what it says; nothing here runs code."""
