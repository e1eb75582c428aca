"""`python -m xstream`, and what the command `xstream` calls."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; an interrupt while it is loaded ends it as any other does."""
    try:
        from xstream.cli import main as run
    except KeyboardInterrupt:
        print("\nxstream: interrupted", file=sys.stderr)
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
