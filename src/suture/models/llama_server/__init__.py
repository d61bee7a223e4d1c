"""The embedded model: llama.cpp's server in a child process on loopback, sized to this machine.

`local_model` is the `Model`; `shared_servers` starts one server per model and process, and serves a model for
other programs.
"""
