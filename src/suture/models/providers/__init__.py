"""Chat models of providers: LangChain over a guarded HTTP client, and Transformers in this process.

`registry` opens a model by its name. Vendor SDKs are imported when a connection is made. Their errors are
mapped to ours in `error_mapping`, by the rules in `error_table`.
"""
