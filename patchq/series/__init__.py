"""The nouns: patch.yaml, upstream.lock, lanes; typed, validated, and wrong at file:line."""
