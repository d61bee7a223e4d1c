"""Read a model's reply, however untidy it is: its code blocks, edits, files, or generated checks.

A reply that cannot be used raises `MalformedReply`; a search/replace block that does not match exactly one place
raises `EditDoesNotApply`. The messages of these errors go back to the model, so their wording is part of the
prompts.
"""
