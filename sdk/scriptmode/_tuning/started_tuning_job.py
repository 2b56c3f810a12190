"""A tuning job that was started: the same handle for every platform, and what a tuner shows of its latest one."""

from __future__ import annotations

import sys
from typing import Any

from scriptmode._core.aws.retry import retry
from scriptmode._core.request import tuning
from scriptmode._core.spec.service_values import ENDED, FAILED
from scriptmode._core.spec.tuning_description import TunedJob, TuningDescription
from scriptmode._core.text.progress_line import ProgressLine
from scriptmode._display import tuning_lines
from scriptmode._job import StartedJob
from scriptmode.errors import TuningJobFailed

#: Seconds between two requests for the state of a tuning job, at least.
_POLL_SECONDS = 0.5


class TuningJob(StartedJob):
    """A tuning job that was started, identified by its name on a platform.

    Args:
        name: The tuning job's name.
        platform: The platform that has it.
    """

    def describe(self) -> dict[str, Any]:
        """Return the description of the tuning job: the response of DescribeHyperParameterTuningJob."""
        return self.platform.tuning.describe(self.name)

    def stop(self) -> None:
        """Request that the tuning job and its running training jobs stop, and return at once."""
        self.platform.tuning.stop(self.name)

    def training_jobs(self) -> list[TunedJob]:
        """Return the training jobs so far, in the order of their creation."""
        return [tuning.parse_training_summary(summary) for summary in self.platform.tuning.training_jobs(self.name)]

    def wait(self, *, logs: bool = True) -> dict[str, Any]:
        """Wait until the tuning job has ended, as `Tuner.wait` does."""
        try:
            description = self._follow(shown=logs)
        except KeyboardInterrupt:
            attached = f"Tuner.attach({self.name!r})"
            sys.stderr.write(
                f"\nTuning job {self.name} is still running. Follow it again: {attached}.wait(). "
                f"Stop it: {attached}.stop_tuning_job()\n"
            )
            raise KeyboardInterrupt from None  # the traceback of the waiting loop does not help the user
        if description.status == FAILED:
            what = f"tuning job {self.name} failed: {description.failure_reason or 'no reason is known'}"
            raise TuningJobFailed(what, description.response, advice=f"see Tuner.attach({self.name!r}).analytics()")
        return dict(description.response)

    def _follow(self, *, shown: bool) -> TuningDescription:
        clock = self.platform.clock
        advice = f"Tuning job {self.name} is still running. Follow it: Tuner.attach({self.name!r}).wait()"
        pause = max(_POLL_SECONDS, self.platform.poll_seconds)
        ended: set[str] = set()
        with ProgressLine() as line:
            while True:
                description = tuning.parse_tuning_description(retry(self.describe, clock, advice))
                if shown:
                    tuning_lines.show_progress(description, ended, self.training_jobs, line)
                if description.status in ENDED:
                    return description
                clock.sleep(pause)
