"""The ``scriptmode`` command, also as ``python -m scriptmode``."""

# The module `signal` takes milliseconds to import, in which Ctrl-C would print a traceback.
import _signal as signal  # type: ignore[import-not-found]
import os


def main() -> None:
    """Run the command; Ctrl-C while it is imported, or when it has ended, ends the process without a traceback."""
    # Ignored where a shell started the command in the background.
    is_handled = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_handled:
        signal.signal(signal.SIGINT, _end)
    from scriptmode_cli import main as run

    try:
        if is_handled:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, _terminate)
        run()
    except _TerminatedError:
        # As without a handler, now that the command's temporary files are removed.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
    except KeyboardInterrupt:
        # Before or after the command handles it.
        _end()
    finally:
        if is_handled:
            signal.signal(signal.SIGINT, _end)


class _TerminatedError(SystemExit):
    """The process got SIGTERM."""


def _terminate(*_: object) -> None:
    # A second one ends the process at once.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    raise _TerminatedError(143)


def _end(*_: object) -> None:
    # In a line that the shell completes, a message would be in its middle.
    if "_SCRIPTMODE_COMPLETE" not in os.environ:
        os.write(2, b"\nscriptmode: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    main()
