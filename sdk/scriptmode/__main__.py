"""Run the command: ``python -m scriptmode``."""

from scriptmode.cli import main

if __name__ == "__main__":
    main()
