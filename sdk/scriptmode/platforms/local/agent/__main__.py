"""Run the agent of one job; `agent_process` describes the arguments."""

import sys

from scriptmode.platforms.local.agent.agent_process import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
