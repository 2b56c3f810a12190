"""Arguments that are not pairs of a name and a value: flags, several values, repeated and positional ones."""

import argparse
import json

parser = argparse.ArgumentParser()
parser.add_argument("config", help="positional")
parser.add_argument("extra", nargs="*")
parser.add_argument("--hidden_units", nargs="+", type=int, default=[])
parser.add_argument("--fp16-allreduce", action="store_true")
parser.add_argument(
    "--use-xla", action=argparse.BooleanOptionalAction if hasattr(argparse, "BooleanOptionalAction") else "store_true"
)
parser.add_argument("--opt", action="append", default=[])
parser.add_argument("-v", "--verbose", action="count", default=0)
parser.add_argument("--learning-rate", "-lr", type=float, default=0.1)
args = parser.parse_args()
print("parsed", json.dumps(vars(args), sort_keys=True))
