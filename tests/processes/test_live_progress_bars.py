"""Progress bars of real jobs: each state is on the screen at once, and in the log as one line."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fakes.processes import until
from fakes.promptness import soon
from fakes.terminal import Terminal

pytestmark = [pytest.mark.slow, pytest.mark.prompt]
#: Draws five states of a bar, and none more before the test has seen the fifth.
WAIT = """
import os, sys, time
sys.path.insert(0, {packages!r})

def drawn_five():
    with open({folder!r} + "/drawn", "w") as file:
        file.write(str(time.time()))
    while not os.path.exists({folder!r} + "/seen"):
        time.sleep(0.01)
"""
TQDM = """
import tqdm
for number in tqdm.tqdm(range(8), desc="train", mininterval=0):
    if number == 5:
        drawn_five()
"""
KERAS = """
import numpy as np
from tensorflow import keras

class Waiting(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        # Keras draws 20 states a second at most.
        time.sleep(0.1)
        if batch == 5:
            drawn_five()

model = keras.Sequential([keras.layers.Dense(1, input_shape=(4,))])
model.compile("sgd", "mse")
model.fit(np.ones((8, 4)), np.ones(8), batch_size=1, callbacks=[Waiting()])
"""
BARS = {
    "tqdm": (TQDM, r"train: +62%\S*\s*\|.*\| 5/8 ", r"^algo-1 \| train: 100%.* 8/8 ", "([0-9]+)/8 "),
    "keras": (KERAS, r"\b5/8 \S+ .*loss: ([0-9.]+)", r"^algo-1 \| 8/8 \S+ .*loss: ", "loss: ([0-9.]+)"),
}


def command(*words):
    return [str(Path(sys.executable).with_name("scriptmode")), *words]


@pytest.fixture(params=["tqdm", pytest.param("keras", marks=pytest.mark.tf)])
def followed(jobs, tmp_path, request):
    """A job whose bar is in its fifth state for as long as the test likes, and the terminal that follows it."""
    script, bar, last, regex = BARS[request.param]
    wait = WAIT.format(folder=str(tmp_path), packages=str(next(p for p in sys.path if p.endswith("site-packages"))))
    body = jobs.request(wait + script)
    body["AlgorithmSpecification"]["MetricDefinitions"] = [{"Name": "value", "Regex": regex}]
    jobs.platform.create(body)
    name = body["TrainingJobName"]
    variables = {"SCRIPTMODE_DATA_DIR": str(jobs.data_dir), "PYTHONIOENCODING": "utf-8"}
    terminal = Terminal(120, 30, command("logs", "-f", name), variables)
    try:
        yield name, terminal, tmp_path, (bar, last)
    finally:
        (tmp_path / "seen").touch()
        terminal.close()


def shows(terminal, pattern, *, screen=True):
    terminal.read()
    return [line for line in (terminal.shown() if screen else terminal.all_lines()) if re.search(pattern, line)]


def test_each_state_is_on_the_screen_within_a_second_and_the_log_has_one_line(followed):
    name, terminal, folder, (bar, last) = followed
    until(lambda: shows(terminal, "^── Training"))
    drawn = until(lambda: (folder / "drawn").exists() and (folder / "drawn").read_text(), 60)
    (row,) = until(lambda: shows(terminal, f"^  algo-1 script .*· .*{bar}"))
    soon(time.time() - float(drawn), 1.0)
    assert "\r" not in row
    # A metric's value is that of the present state.
    shown = float(re.search(r"loss: ([0-9.]+)", row)[1]) if "loss" in row else 5.0
    assert shows(terminal, rf"^  value +{shown:.4g} ")
    assert not shows(terminal, r"^algo-1 \|.*5/8")
    (folder / "seen").touch()
    until(lambda: shows(terminal, last, screen=False))
    until(lambda: shows(terminal, f"^training job {name}: Completed", screen=False))
    assert len(shows(terminal, last, screen=False)) == 1


def test_a_pipe_gets_the_line_once_it_has_ended(jobs, tmp_path):
    wait = WAIT.format(folder=str(tmp_path), packages="")
    script = """
for number in range(5):
    print(f"\\r{number} of 5", end="", flush=True)
drawn_five()
print("\\rall 5 ", flush=True)
"""
    name = jobs.start(wait + script)
    with subprocess.Popen(
        command("logs", "-f", name), env={"SCRIPTMODE_DATA_DIR": str(jobs.data_dir)}, stdout=subprocess.PIPE
    ) as process:
        lines = (line for line in process.stdout if b"algo-1" in line)
        until((tmp_path / "drawn").exists, 60)
        (tmp_path / "seen").touch()
        said = list(lines)
    assert [line for line in said if b"5" in line and b"scriptmode:" not in line] == [
        b"algo-1 | " + b"".join(b"\r%d of 5" % number for number in range(5)) + b"\rall 5 \n"
    ]
