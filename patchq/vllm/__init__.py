"""All that knows vLLM: nothing outside this package does, so that another upstream is another package."""

PROJECT = "vllm"
"""The name on the package index."""
