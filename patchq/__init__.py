"""patchq keeps feature patches over upstream vLLM as an ordered series of independently proven units."""

__version__ = "0.1.0"
