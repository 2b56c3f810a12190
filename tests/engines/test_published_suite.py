"""The suite for engines of other packages passes with each engine of this one."""

import pytest

from scriptmode.testing import EngineSuite


class TestPublishedSuite(EngineSuite):
    """The suite, with the hosts of `engines.engines`."""

    @pytest.fixture(autouse=True)
    def _hosts(self, jobs):
        self.jobs = jobs
        arguments = jobs.estimator_arguments()
        self.instance_type = arguments.pop("instance_type")
        self.arguments = arguments

    def create_platform(self, data_dir, stop_grace):
        return type(self.jobs.platform)(data_dir=data_dir, stop_grace=stop_grace)
