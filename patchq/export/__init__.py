"""Handing patches on: branches for upstream, files over an installed package, patches for other tools."""
