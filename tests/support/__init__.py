"""Helpers for tests: throwaway upstreams and checkouts, and whole-state snapshots of repositories."""
