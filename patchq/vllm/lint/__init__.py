"""Upstream's own rules on a change: each read from the tree that the change is for, each finding about what the change brings."""
