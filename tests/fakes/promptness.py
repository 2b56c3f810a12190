"""Time limits in tests, on machines with other load."""

import os

#: Seconds of a limit that is not the subject: it only ends a test that hangs, also on a machine that has twenty times as
#: much to do as it can. The limit of a test as a whole, in pyproject.toml, is longer, so that this one's message is seen.
GENEROUS = 600.0


class TooLateError(AssertionError):
    """A time limit was exceeded: once may be due to the machine, three times is a defect."""


def stretched(seconds):
    """Return a limit for the machine as it is now: longer if its load is above twice its cores, which a run itself makes."""
    return min(seconds * max(1.0, os.getloadavg()[0] / (2 * os.cpu_count())), max(seconds, GENEROUS))


def soon(took, seconds):
    """Check that something took less than a number of seconds; only this failure of a ``prompt`` test is retried."""
    limit = stretched(seconds)
    if took >= limit:
        raise TooLateError(f"{took:.3f} s, which was to be less than {limit:.3f}")
