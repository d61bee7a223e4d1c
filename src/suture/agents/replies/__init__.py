"""Reading of replies, however untidy: code blocks, edits, files, generated checks.

The messages of `MalformedReply` and `EditDoesNotApply` go back to the model, so their wording is part of the
prompts.
"""
