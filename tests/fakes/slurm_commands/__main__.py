"""The programs of the fake Slurm: ``__main__.py NAME FOLDER ARGUMENT ...``, started by the files in its ``bin``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from fakes.slurm_commands import commands, steps

if __name__ == "__main__":
    name, folder, *arguments = sys.argv[1:]
    if name == "slurmstepd":
        steps.supervise(folder, arguments[0])
    else:
        sys.exit(commands.main(name, folder, arguments))
