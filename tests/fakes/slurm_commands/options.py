"""Options of Slurm's commands, as ``getopt_long`` reads them: what the fake does not know is refused."""

import getopt

#: Options whose value may be missing.
_OPTIONAL = ("exclusive", "kill-on-bad-exit")


class UsageError(Exception):
    """An option is unknown, or its value is missing."""


def parse(arguments, short, long, names):
    """Return the options by their long names, "" for those without a value, and the other arguments."""
    given = [
        word if word.partition("=")[0] not in _with_dashes(_OPTIONAL) else word.partition("=")[0] for word in arguments
    ]
    try:
        found, rest = getopt.getopt(given, short, [word for word in long.split() if word])
    except getopt.GetoptError as error:
        raise UsageError(f"unrecognized option '{'--' if len(error.opt) > 1 else '-'}{error.opt}'") from error
    options = {}
    for name, value in found:
        bare = name.lstrip("-")
        options[names.get(bare, bare) if not name.startswith("--") else bare] = value
    return options, rest


def parse_anywhere(arguments, short, long, names):
    """Return the same where options may follow other arguments."""
    options, rest = {}, []
    left = list(arguments)
    while left:
        found, left = parse(left, short, long, names)
        options.update(found)
        if left:
            rest.append(left.pop(0))
    return options, rest


def _with_dashes(names):
    return tuple(f"--{name}" for name in names)
