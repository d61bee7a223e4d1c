"""What a reply holds, however untidy: blocks of code, edits, actions, and how sure the model was."""
