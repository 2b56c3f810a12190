"""YAML of any origin is loaded within bounds, or refused with the file's name and what exceeds them."""

import os
import resource
import subprocess
import sys
import threading
from contextlib import suppress

import pytest
import yaml
from fakes.command_line import PROGRAM

from scriptmode import ConfigError, bounded_yaml
from scriptmode.aws.config import read_config
from scriptmode.bounded_yaml import MAX_BYTES, MAX_DEPTH, MAX_VALUES, BoundsError

#: Nine levels of nine aliases: 387 million values from 400 bytes.
BOMB = "\n".join(
    ["a: &a [x, x, x, x, x, x, x, x, x]"]
    + [f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]" for before, name in zip("abcdefgh", "bcdefghi")]
)
MERGED = "a: &a {x: 1}\n" + "\n".join(
    f"{name}: &{name} {{{', '.join(f'k{number}: *{before}' for number in range(20))}}}"
    for before, name in zip("abcdef", "bcdefg")
)
#: Each line is one level; together they are as deep as there are lines.
CHAIN = "a0: &a0 [x]\n" + "".join(f"a{level}: &a{level} [*a{level - 1}]\n" for level in range(1, 400))
REFUSED = {
    "aliases of aliases": (BOMB, "values once its aliases"),
    "aliases in mappings": (MERGED, "values once its aliases"),
    "many values": ("a: [" + "1," * (MAX_VALUES + 1) + "]", "values once its aliases"),
    "an alias in itself": ("a: &a [*a]", "the alias \\*a stands within the value that it repeats"),
    "deep lists": ("[" * 5_000, "too deep within one another"),
    "deep blocks": ("\n".join(" " * level + "a:" for level in range(MAX_DEPTH + 1)), "too deep within one another"),
    "depth by aliases": (CHAIN, "too deep within one another"),
    "depth by an alias in depth": (f"a: &a {'[' * 60}{']' * 60}\nb: {'[' * 60}*a{']' * 60}", "too deep"),
    "a large file": ("# " + "x" * MAX_BYTES, "more than 512 KiB"),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_exceeds_the_bounds_is_refused(text, message):
    with pytest.raises(BoundsError, match=message):
        bounded_yaml.load_yaml(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: &a {x: 1, y: [2, 3]}\nb: {<<: *a, z: *a}\nc: [*a, *a]",
        "&a a: *a",
        "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1),
        "text: |\n  [[[[{{{{ *not &an alias",
        "a: &a {x: 1, y: 2}\nb: &b {<<: *a, x: 3}\nc: {<<: *b, y: 4, x: 5}\nd: [*b, *b]",
        "a: &a {x: 1}\nb: &b {y: 1}\nc: {<<: *a, <<: *b}",
        "1: a\n'1': b",
    ],
    ids=["empty", "aliases", "a key", "deep", "text", "overridden", "two merges", "number and text"],
)
def test_what_is_within_the_bounds_is_what_pyyaml_makes_of_it(text):
    assert bounded_yaml.load_yaml(text) == yaml.safe_load(text)
    assert bounded_yaml.load_yaml(text.encode()) == yaml.safe_load(text)


REPEATED = {
    "quoted": ("a: 1\nb: 2\n'a': 3", "'a' in line 3 is in line 1 already"),
    "below others": ("x:\n- {b: 1, c: {d: 1, d: 2}}", "'d' in line 2 is in line 2"),
    "a number": ("1: a\n1: b", "'1' in line 2"),
}


@pytest.mark.parametrize(("text", "message"), REPEATED.values(), ids=REPEATED.keys())
def test_a_key_that_occurs_twice_is_refused(text, message):
    with pytest.raises(bounded_yaml.RepeatedKeyError, match=f"{message}.*; remove one"):
        bounded_yaml.load_yaml(text)


@pytest.mark.prompt
def test_a_fifo_without_a_writer_is_refused(tmp_path):
    os.mkfifo(tmp_path / "job.yaml")
    with pytest.raises(OSError, match="it is a FIFO that no process writes to"):
        bounded_yaml.read_yaml(tmp_path / "job.yaml")


@pytest.mark.parametrize(
    "program", ["printf 'a: 1'", "sleep 3; printf 'a: '; sleep 0.2; printf 1"], ids=["now", "later"]
)
def test_a_shells_process_substitution_is_read(program):
    code = "import sys; from scriptmode import bounded_yaml as b; print(b.load_yaml(b.read_yaml(sys.argv[1])))"
    done = subprocess.run(
        ["bash", "-c", f'"$0" -c "$1" <({program})', sys.executable, code],
        check=True, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.stdout == "{'a': 1}\n"


@pytest.mark.parametrize("text", ["a: *b", "a: [", "a: &a [1]\nb: &a [2]"])
def test_invalid_yaml_is_pyyamls_error(text):
    with pytest.raises(yaml.YAMLError):
        bounded_yaml.load_yaml(text)


def test_a_sagemaker_config_file_that_is_a_bomb_is_refused_by_its_name(tmp_path):
    (tmp_path / "config.yaml").write_text(BOMB)
    with pytest.raises(ConfigError, match="config.yaml' is refused: it has more than 100,000 values"):
        read_config({"SAGEMAKER_USER_CONFIG_OVERRIDE": str(tmp_path)}, None)


def plan_in_little_memory(file):
    return subprocess.run(
        [PROGRAM, "plan", "--file", str(file)], check=False, capture_output=True, text=True, timeout=600,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30)),
    )  # fmt: skip


def test_a_job_file_that_is_a_bomb_is_refused_by_its_name(tmp_path):
    job = tmp_path / "job.yaml"
    job.write_text(BOMB)
    done = plan_in_little_memory(job)
    assert done.returncode == 2
    assert done.stderr.startswith(f"scriptmode: {job} is refused: it has more than 100,000 values once its aliases")
    assert done.stderr.count("\n") == 1


def test_a_file_without_an_end_is_refused(tmp_path):
    os.mkfifo(tmp_path / "job.yaml")

    def write():
        with suppress(BrokenPipeError), (tmp_path / "job.yaml").open("wb", buffering=0) as pipe:
            while True:
                pipe.write(b"# x\n" * 10_000)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    done = plan_in_little_memory(tmp_path / "job.yaml")
    assert (done.returncode, "more than 512 KiB" in done.stderr) == (2, True)
    writer.join(10)
    assert not writer.is_alive()
