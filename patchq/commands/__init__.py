"""One module per command: parse, call, print. What is heavy is imported inside."""
