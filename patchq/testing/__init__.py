"""Proving patches: trees and environments for tests, runs that tell a failure from a hang, and what follows from them."""
