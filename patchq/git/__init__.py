"""The single door to git: nothing outside this package starts a git process or writes a git object."""
