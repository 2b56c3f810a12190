"""Run the agent of one tuning job: ``python -m scriptmode.platforms.local.tuning <folder> <lock>``."""

import sys

from scriptmode.platforms.local.tuning.tuning_agent import main

if __name__ == "__main__":
    main(sys.argv[1:])
