"""``python -m chaos.kills SEED KILLS``: kill jobs that train with TensorFlow, which start again from their checkpoints.

Each job of a layout is killed twice, at random moments of its training, and must end with the last step and the same
weights, bit for bit, as one without kills. ``--only`` repeats the job with an index. The exit code is 1 if one did not.
"""

import argparse
import hashlib
import os
import random
import re
import shutil
import signal
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from chaos.jobs import new_folder
from fakes.local_jobs import LocalJobs, channel
from fakes.processes import processes_naming, until
from faults.victims import TIDY

PROGRAM = (Path(__file__).parent / "programs" / "steps.py").read_text()
CODE = Path(__file__).parents[2] / "notebooks" / "code"
_SWITCH = "sagemaker_{}_enabled"
#: The program, hosts, trainers, and hyperparameters of each layout. One worker, so that updates have one order.
LAYOUTS = {
    "single": ("train_resume", 1, 1, {}),
    "mirrored": ("train_resume_mwms", 2, 2, {_SWITCH.format("multi_worker_mirrored_strategy"): True}),
    "horovod": ("train_resume_hvd", 2, 2, {_SWITCH.format("mpi"): True, "sagemaker_mpi_num_of_processes_per_host": 1}),
    "ps": (
        "train_resume_ps", 1, 1,
        {_SWITCH.format("parameter_server"): True, "sagemaker_parameter_server_coordinator": True},
    ),
}  # fmt: skip
#: What is killed: the job's agent, the agent of its hosts, or every process of the job.
VICTIMS = ("agent", "agent of algo-1", "all")
ROW = "{:10}{:>6}{:>8}{:>17}{:>6}{:>9}{:>7}{:>11}  {}"
STEPS, ROWS, KILLS_OF_A_JOB = 40, 320, 2
#: Seconds of all runs of a job: each imports TensorFlow, on a busy machine for minutes.
MAX_RUN = 7200
#: Most steps of a run before it is killed; after 0 it starts, and after the last one of the training it saves the model.
MOST_STEPS = 30
ENVIRONMENT = {"TF_DETERMINISTIC_OPS": "1", "TF_CPP_MIN_LOG_LEVEL": "2", "GRPC_FAIL_FAST": "use_caller"}


class End(NamedTuple):
    """How a job ended: its victims, the last step, the digest of the weights, runs that went on from a step; or an error."""

    victims: tuple[str, ...]
    step: int = 0
    weights: str = ""
    resumed: int = 0
    error: str = ""


class KilledJob:
    """One job in a directory of its own; ``kills`` are victims, each with the steps of its run before it and seconds after them."""

    def __init__(self, layout, kills, data):
        self._layout, self._kills, self._data = layout, kills, data
        self._name = "kills-1"

    def play(self):
        """Return how it ended; keep its directory if that is an error."""
        self._folder = new_folder()
        self._jobs = LocalJobs(self._folder, stop_grace=5.0)
        killed = []
        try:
            self._start()
            for run, (victim, steps, seconds) in enumerate(self._kills, 1):
                self._wait(lambda run=run, steps=steps: self._ended() or self._has_made(run, steps))
                time.sleep(seconds)
                if self._ended():
                    break
                self._kill(victim)
                killed.append(victim)
            end = self._check(tuple(killed))
        except Exception as error:
            end = End(tuple(killed), error=f"{type(error).__name__}: {error}; its directory: {self._folder}")
        self._jobs.close()
        if not end.error:
            shutil.rmtree(self._folder, ignore_errors=True)
        return end

    def _start(self):
        program, hosts, trainers, parameters = LAYOUTS[self._layout]
        files = {path.name: path.read_bytes() for path in CODE.glob("*.py")}
        parameters = {
            **parameters, "epochs": 2, "batch-size": 2 * ROWS // STEPS // trainers, "log-steps": 1, "checkpoint-steps": 5
        }  # fmt: skip
        more = {
            "TrainingJobName": self._name,
            "Environment": {**ENVIRONMENT, "PROGRAM": program},
            "RetryStrategy": {"MaximumRetryAttempts": len(self._kills) or 1},
            "CheckpointConfig": {"S3Uri": (self._folder / "kept").as_uri()},
        }
        channels = [channel(name, f"{self._data.as_uri()}/{name}") for name in ("train", "eval")]
        fields = {"channels": channels, "files": files, "max_run": MAX_RUN, "more": more}
        self._jobs.start(PROGRAM, hosts=hosts, hyperparameters=parameters, **fields)

    def _described(self):
        return self._jobs.platform.describe(self._name).response

    def _has_made(self, run, steps):
        """Return whether a run has made some steps, or the last one of the training."""
        statuses = [each["Status"] for each in self._described()["SecondaryStatusTransitions"]]
        if statuses.count("Training") != run:
            return False
        log = "\n".join(line for line in self._jobs.lines(self._name) if line.startswith("algo-1"))
        made = re.findall(r" step (\d+) of", log.rpartition("the job starts again")[2])
        return len(made) >= steps or str(STEPS) in made

    def _ended(self):
        return self._jobs.ended(self._name)

    def _wait(self, condition, seconds=MAX_RUN):
        return until(lambda: condition() or time.sleep(0.1), seconds, lambda: self._jobs.why(self._name))

    def _kill(self, victim):
        folder = self._jobs.job_folder(self._name)
        processes = folder.read_processes()
        pids = self._jobs.remains(self._name) if victim == "all" else [processes[victim].pid]
        for pid in pids:
            with suppress(ProcessLookupError, TypeError):
                os.kill(pid, signal.SIGKILL)

    def _check(self, killed):
        description = self._wait(self._ended)
        assert description["TrainingJobStatus"] == "Completed", self._jobs.why(self._name)
        statuses = [each["Status"] for each in description["SecondaryStatusTransitions"]]
        assert statuses.count("Interrupted") == len(killed), statuses
        until(
            lambda: not processes_naming(f"{self._jobs.job_folder(self._name).path}/"),
            TIDY,
            lambda: "processes are left",
        )
        log = "\n".join(self._jobs.lines(self._name))
        (step,) = re.findall(r"finished at step (\d+)", log)
        model = self._jobs.model(description)
        weights = hashlib.sha256(model["1/variables/variables.data-00000-of-00001"]).hexdigest()
        return End(killed, int(step), weights, log.count("resumed at step"))


def main(arguments=None):
    """Run the jobs and print their table; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m chaos.kills", description=__doc__.partition("\n")[0])
    parser.add_argument("seed")
    parser.add_argument("kills", type=int, help="kills of all jobs together")
    parser.add_argument("--only", type=int, help="run the job with this index alone")
    chosen = parser.parse_args(arguments)
    indexes = range(-(-chosen.kills // KILLS_OF_A_JOB)) if chosen.only is None else [chosen.only]
    plans = {index: plan_of(chosen.seed, index) for index in indexes}
    folder, began = new_folder(), time.monotonic()
    write_data(folder)
    with ThreadPoolExecutor(2 * (os.cpu_count() or 1)) as pool:
        layouts = sorted({layout for layout, _ in plans.values()})
        undisturbed = {each: [pool.submit(KilledJob(each, (), folder).play) for _ in range(2)] for each in layouts}
        ends = {index: pool.submit(KilledJob(*plan, folder).play) for index, plan in plans.items()}
        wanted = {layout: [each.result() for each in found] for layout, found in undisturbed.items()}
        counts = {layout: Counter() for layout in layouts}
        for number, (index, future) in enumerate(ends.items(), 1):
            layout, kills = plans[index]
            end = future.result()
            problem = problem_of(end, wanted[layout])
            counts[layout].update(
                [*end.victims, *["resumed"] * end.resumed, "jobs", "different" if problem else "equal"]
            )
            if problem:
                print(f"{layout}, {kills}: {problem}\n  make chaos KILLS=1 SEED={chosen.seed} ONLY={index}", flush=True)
            if number % 10 == 0 or number == len(ends):
                print(f"{number} of {len(ends)} jobs, {time.monotonic() - began:.0f} s", flush=True)
    shutil.rmtree(folder)
    print(table(counts, wanted))
    return int(any(count["different"] for count in counts.values()))


def plan_of(seed, index):
    """Return the layout and the kills of a job; the same seed and index give the same."""
    chance = random.Random(f"{seed}-{index}")
    layout = list(LAYOUTS)[index % len(LAYOUTS)]
    return layout, tuple(
        (chance.choice(VICTIMS), chance.randint(0, MOST_STEPS), chance.uniform(0, 1)) for _ in range(KILLS_OF_A_JOB)
    )


def problem_of(end, undisturbed):
    """Return in what a job differs from those without kills; "" if in nothing. Weights that vary without are not held."""
    first, second = undisturbed
    for each in (end, first, second):
        if each.error:
            return each.error
    if end.step != STEPS:
        return f"it ended at step {end.step}"
    if first.weights == second.weights != end.weights:
        return "it has other weights"
    return ""


def write_data(folder):
    """Write the channels that all jobs read: images of noise."""
    import numpy as np

    chance = np.random.default_rng(1)
    for name, rows in (("train", ROWS), ("eval", 40)):
        (folder / name).mkdir()
        pixels = chance.integers(0, 256, (rows, 28, 28), np.uint8)
        np.savez(folder / name / "part.npz", x=pixels, y=chance.integers(0, 10, rows, np.uint8))


def table(counts, undisturbed):
    """Return the table of the jobs by layout."""
    columns = ("jobs", *VICTIMS, "resumed", "equal", "different")
    rows = [ROW.format("layout", *columns, "held")]
    for layout, count in counts.items():
        first, second = undisturbed[layout]
        held = "step and weights" if first.weights == second.weights else "step: weights vary without kills"
        rows.append(ROW.format(layout, *(count[name] for name in columns), held))
    total = sum(counts.values(), Counter())
    return "\n".join([*rows, ROW.format("all", *(total[name] for name in columns), "")])


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    sys.exit(main())
