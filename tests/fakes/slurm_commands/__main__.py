"""The programs of the fake Slurm: ``__main__.py NAME FOLDER ARGUMENT ...``, started by the files in its ``bin``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from fakes.slurm_commands import commands, srun, steps

if __name__ == "__main__":
    name, folder, *arguments = sys.argv[1:]
    if name == "slurmstepd":
        steps.supervise(folder, arguments[0])
    elif name == "srun":
        sys.exit(srun.main(folder, arguments))
    else:
        sys.exit(commands.main(name, folder, arguments))
