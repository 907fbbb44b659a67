"""`python -m scout` and the command `scout`."""

from scout.cli.main import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
