"""A training host whose channels are fed as the platform feeds them."""

import json
import os
import threading
import time
from contextlib import suppress


class PipeHost:
    """A base folder; ``close`` ends what still feeds it."""

    def __init__(self, base):
        self.base = base
        self.data = base / "input" / "data"
        self.config = base / "input" / "config" / "inputdataconfig.json"
        self.data.mkdir(parents=True)
        self.config.parent.mkdir(parents=True)
        #: How each epoch that was fed ended: "read", or "left" by a reader that closed early.
        self.endings = []
        self._feeders = []
        self._is_closing = False
        self.channels(train="Pipe")

    def channels(self, **modes):
        described = {name: {"TrainingInputMode": mode, "ContentType": "{}"} for name, mode in modes.items()}
        self.config.write_text(json.dumps(described))

    def fifo(self, epoch, channel="train"):
        path = self.data / f"{channel}_{epoch}"
        if not path.exists():
            os.mkfifo(path)
        return path

    def gone(self, epoch, channel="train"):
        deadline = time.monotonic() + 600
        while (self.data / f"{channel}_{epoch}").exists():
            assert time.monotonic() < deadline, f"{channel}_{epoch} stays"
            time.sleep(0.005)

    def feed(self, *epochs, channel="train", first=0):
        """Feed an epoch each; an epoch is bytes, or an iterable of them, each of which is written at once."""
        self.fifo(first, channel)
        feeder = threading.Thread(target=self._feed, args=(epochs, channel, first), daemon=True)
        feeder.start()
        self._feeders.append(feeder)
        return feeder

    def _feed(self, epochs, channel, first):
        for number, parts in enumerate(epochs, first):
            self.fifo(number + 1, channel)
            path = self.fifo(number, channel)
            ending = "read"
            with suppress(BrokenPipeError), path.open("wb", buffering=0) as fifo:
                if self._is_closing:
                    return
                ending = "left"
                for part in [parts] if isinstance(parts, bytes) else parts:
                    written = memoryview(part)
                    while written:
                        written = written[fifo.write(written) :]
                ending = "read"
            self.endings.append(ending)
            path.unlink()

    def fed(self):
        """Wait until everything was fed; give how the epochs ended."""
        for feeder in self._feeders:
            feeder.join(20)
            assert not feeder.is_alive(), "an epoch that was fed was not read"
        return self.endings

    def close(self):
        self._is_closing = True
        for feeder in self._feeders:
            while feeder.is_alive():
                for path in self.data.iterdir():
                    with suppress(OSError):
                        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
                feeder.join(0.02)
