"""Run the agent of one job: ``python -m scriptmode.platforms.local.agent <job folder> <lock>``."""

import sys

from scriptmode.platforms.local.agent.job_agent import main

if __name__ == "__main__":
    main(sys.argv[1:])
