"""``python -m chaos SEED JOBS``: run jobs that meet a fault each, and print what did not end truly, wholly or at all.

``SEED`` and an index are one job: ``--only INDEX`` repeats it, and ``--fault`` gives every job that fault. The exit code
is 1 if a promise did not hold.
"""

import argparse
import os
import shutil
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import pytest
from chaos.jobs import ChaosJob, ViolationError, new_folder
from chaos.plans import FAULTS, plan_of
from fakes.faulty_s3 import FaultyS3

ROW = "{:16}{:>6}{:>11}{:>8}{:>9}{:>7}{:>7}{:>7}{:>11}{:>7}"
KINDS = ("lie", "hang", "left over", "error")


class Server(FaultyS3):
    """One S3 server of all jobs; each has a prefix with a fault of its own."""

    def __enter__(self):
        self._faults, self._lock = {}, threading.Lock()
        self.fault = self._fault
        super().__enter__()
        os.environ.update(
            AWS_ENDPOINT_URL=self.endpoint, AWS_ACCESS_KEY_ID="testing", AWS_SECRET_ACCESS_KEY="testing-secret",
            AWS_DEFAULT_REGION="us-east-1", AWS_EC2_METADATA_DISABLED="true",
        )  # fmt: skip
        return self

    def add(self, prefix, contents, fault, many):
        """Store objects below a prefix of which all or the third one have the fault; return their URI."""
        keys = {f"{prefix}/{name}": content for name, content in contents.items()}
        with self._lock:
            for key in keys if many else sorted(keys)[2:3]:
                self._faults[key] = [fault, 0]
            self.contents = {**self.contents, **keys}
        return f"s3://bkt/{prefix}/"

    def _fault(self, request):
        with self._lock:
            entry = self._faults.get(request.key) if request.is_get else None
            if entry is None:
                return None
            entry[1] += 1
            return entry[0].fault if not entry[0].times or entry[1] <= entry[0].times else None


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__.partition("\n")[0])
    parser.add_argument("seed")
    parser.add_argument("jobs", type=int)
    parser.add_argument("--only", type=int, help="run the job with this index alone")
    parser.add_argument("--fault", choices=FAULTS, help="the fault of every job")
    parser.add_argument(
        "--retries", type=int, default=0, help="start each job again up to so many times, from checkpoints"
    )
    chosen = parser.parse_args(arguments)
    indexes = range(chosen.jobs) if chosen.only is None else [chosen.only]
    began, ends = time.monotonic(), []
    with Server() as server, ThreadPoolExecutor(2 * (os.cpu_count() or 1)) as pool:
        plans = [plan_of(chosen.seed, index, chosen.fault)._replace(retries=chosen.retries) for index in indexes]
        futures = [pool.submit(run, plan, server, keep=True) for plan in plans]
        for number, future in enumerate(as_completed(futures), 1):
            plan, end, error = future.result()
            ends.append((plan.fault, end))
            if error:
                index = plan.seed.rpartition("-")[2]
                more = f" FAULT='{chosen.fault}'" if chosen.fault else ""
                more += f" RETRIES={chosen.retries}" if chosen.retries else ""
                print(f"{end}: {error}\n  {plan}\n  make chaos SEED={chosen.seed} ONLY={index}{more}", flush=True)
            if number % 10 == 0 or number == len(indexes):
                print(f"{number} of {len(indexes)} jobs, {time.monotonic() - began:.0f} s", flush=True)
    print(table(ends))
    return int(any(end in KINDS for _, end in ends))


def run(plan, server, *, keep=False, **options):
    """Return the plan, how its job ended or which kind of promise did not hold, and the error.

    The job's directory is removed; with ``keep`` not if there is an error.
    """
    folder = new_folder()
    job = ChaosJob(plan, folder, server, **options)
    try:
        end, error = job.play(), None
    except ViolationError as violation:
        end, error = violation.kind, f"{violation} (victim {job.victim})"
    except pytest.skip.Exception as reason:
        end, error = "skipped", str(reason)
    except Exception as reason:
        end, error = "error", f"{type(reason).__name__}: {reason}"
    try:
        job.close()
    except Exception as reason:
        end, error = (end, error) if error else ("left over", f"at close: {reason}")
    if error and keep:
        error = f"{error}; its directory: {folder}"
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return plan, end, error


def table(ends):
    """Return the table of all ends by fault."""
    columns = ("Completed", "Failed", "Stopped", "other", *KINDS)
    rows = [
        ROW.format("fault", "jobs", "Completed", "Failed", "Stopped", "other", "lies", "hangs", "left over", "errors")
    ]
    for fault in (*FAULTS, "all"):
        count = Counter(end if end in columns else "other" for each, end in ends if fault in (each, "all"))
        if count:
            rows.append(ROW.format(fault, sum(count.values()), *(count[column] for column in columns)))
    return "\n".join(rows)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    sys.exit(main())
