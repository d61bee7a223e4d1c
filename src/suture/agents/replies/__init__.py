"""Read a model's reply, however untidy it is: its changes of files, or its generated checks.

`change_reading` reads changes in any common form, for the conversation and for repairs. What it cannot apply are
values. `coder_reply` reads the replies to the lean prompts of small models, and raises `MalformedReply` for one
that cannot be used. The messages of both go back to the model, so their wording is part of the prompts.
"""
