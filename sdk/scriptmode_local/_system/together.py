"""Waits for a disk or a network at the same time."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread


def run_together(*calls: Callable[[], object]) -> None:
    """Make each call, all but the first in threads, and wait; raise the error of the first that has one."""
    errors: dict[int, Exception] = {}

    def run(number: int) -> None:
        try:
            calls[number]()
        except Exception as error:  # noqa: BLE001 - raised in the thread that waits
            errors[number] = error

    threads = [Thread(target=run, args=(number,), daemon=True) for number in range(1, len(calls))]
    for thread in threads:
        thread.start()
    if calls:
        run(0)
    for thread in threads:
        thread.join()
    if errors:
        raise errors[min(errors)]
