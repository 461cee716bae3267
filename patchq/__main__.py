"""Where `patchq` and `python -m patchq` begin: Ctrl-C is an answer from the first moment, also while modules are imported."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    try:
        from patchq.cli import main as run

        run()
    except KeyboardInterrupt:
        print("patchq: interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
