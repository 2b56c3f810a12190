"""Time limits in tests, on machines with other load."""


class TooLateError(AssertionError):
    """A time limit was exceeded: once may be due to the machine, three times is a defect."""


def soon(took, seconds):
    """Check that something took less than a number of seconds; only this failure of a ``prompt`` test is retried."""
    if took >= seconds:
        raise TooLateError(f"{took:.3f} s, which was to be less than {seconds}")
