"""Working with tools: the loop of thought and act, and files in memory."""
