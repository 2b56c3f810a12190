"""Hosts that do not see the job's directory do what every host must do."""

from scriptmode.testing import EngineSuite


class TestElsewhere(EngineSuite):
    """Hosts with directories of their own."""

    instance_type = "elsewhere"
