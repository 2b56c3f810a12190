"""Promises of seconds, on machines that others use as well."""


class TooLateError(AssertionError):
    """What was promised came late: once, that may be the machine; three times, it is us."""


def soon(took, seconds):
    """Check that something took less than so many seconds; of a test marked ``prompt`` this alone is tried again."""
    if took >= seconds:
        raise TooLateError(f"{took:.3f} s, which was to be less than {seconds}")
