"""Read a model's reply, however untidy it is: its code blocks, edits, files, or generated checks.

The messages of `MalformedReply` and `EditDoesNotApply` go back to the model, so their wording is part of the
prompts.
"""
