"""`python -m patchq`."""

from __future__ import annotations

from patchq.cli import main

main()
