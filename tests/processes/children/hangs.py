import argparse
import time
from pathlib import Path

arguments = argparse.ArgumentParser()
arguments.add_argument("--go", default="/nowhere")
go = arguments.parse_known_args()[0].go


def waits_for_the_others():
    time.sleep(0.05)


print("training", flush=True)
while not Path(go).exists():
    waits_for_the_others()
