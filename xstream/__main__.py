"""`python -m xstream`, the entry point of the command `xstream`."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; an interrupt during the imports is handled like any other."""
    try:
        from xstream.cli import main as run
    except KeyboardInterrupt:
        print("\nxstream: interrupted", file=sys.stderr)
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
