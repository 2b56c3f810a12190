"""Bytes that are not UTF-8: in the names of files and directories they work, elsewhere they are refused before a job."""

import json
import os
import subprocess

import pytest
from fakes.command_line import PROGRAM

TRAIN = """
import os, sys
print("given", ascii(sys.argv[-1]), ascii(os.listdir(os.environ["SM_CHANNEL_TRAIN"])))
for name in (".", "../checkpoints"):
    open(os.path.join(os.environ["SM_MODEL_DIR"], name, "kept"), "w").close()
sys.stdout.buffer.write(b"a line with \\xff in it\\n")
"""


@pytest.fixture
def here(tmp_path):
    """The bytes of a user's directory, whose name is not UTF-8 and which has a script and data."""
    data = tmp_path / "h\udcffre" / "d\udcfeta"
    data.mkdir(parents=True)
    for path in (data.with_name("tr\udcfdin.py"), data / "f\udcfcle"):
        path.write_text(TRAIN)
    return os.fsencode(data.parent)


def names(*parts):
    """Return the names in a directory."""
    return os.listdir(b"/".join(parts))  # noqa: PTH208 - paths are text


def command(here, *words):
    """Run the program in the directory, in a locale that has no such bytes; its data directory is there."""
    variables = {os.fsencode(name): os.fsencode(value) for name, value in os.environ.items()}
    variables.update({b"SCRIPTMODE_DATA_DIR": here + b"/jobs \xfb", b"PYTHONIOENCODING": b"utf-8:strict"})
    return subprocess.run((PROGRAM, *words), cwd=here, env=variables, capture_output=True, timeout=600, check=False)


@pytest.mark.parametrize("mode", ["File", "FastFile"])
def test_a_job_trains_with_every_path_of_other_bytes_and_every_command_shows_it(here, mode):
    uri = b"file://" + here
    words = (b"--input", b"train=d\xfeta", b"--output-path", uri + b"/\xf9", b"--checkpoint-s3-uri", uri + b"/\xf8")
    done = command(
        here, "run", "tr\udcfdin.py", "--job-name", "job", "--input-mode", mode, *words, "--", b"--x", b"\xf7"
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"given '\\udcf7' ['f\\udcfcle']" in done.stdout
    assert names(here, b"\xf8") == [b"kept"]
    assert names(here, b"\xf9/job/output") == [b"model.tar.gz"]
    described = command(here, "describe", "job", "--json")
    assert json.loads(described.stdout)["ModelArtifacts"]["S3ModelArtifacts"].endswith("\udcf9/job/output/model.tar.gz")
    for verb in ("describe", "logs", "model download", "rm"):
        done = command(here, *verb.split(), "job")
        assert (done.returncode, done.stderr) == (0, b""), verb
    for verb in ("list", "list --json", "rm --older-than 0s"):
        assert command(here, *verb.split()).returncode == 0, verb
    assert names(here, b"jobs \xfb/jobs") == []


REFUSED = [
    (("--env", b"A=\xff"), b"Environment.A is a hidden value of length 1, which has a byte that is not UTF-8"),
    (("--metric", b"loss=(\xff)"), b"MetricDefinitions[0].Regex is '(\\udcff)', which has a byte that is not UTF-8"),
    (("--tag", b"team=\xff"), b"Tags[0].Value is '\\udcff', which has a byte that is not UTF-8 at position 1"),
    (("--input", b"train=s3://bucket/\xff"), b"S3Uri is 's3://bucket/\\udcff', which has a byte that is not UTF-8"),
]


def test_text_that_the_service_could_not_be_sent_is_refused_and_nothing_is_stored(here):
    for words, problem in REFUSED:
        done = command(here, "run", b"tr\xfdin.py", *words)
        assert done.returncode == 2
        assert problem in done.stderr
        assert b"; give text in UTF-8 without NUL characters (--" in done.stderr
    assert command(here, "list", "--json").stdout == b"[]\n"
