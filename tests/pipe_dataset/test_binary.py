"""How the operations' binary is found, compiled and shared."""

import os
import subprocess
import sys

import pytest
from scriptmode_runtime.tensorflow import binary

COMPILE = "from scriptmode_runtime.tensorflow import binary; print(binary.compiled())"


@pytest.fixture
def cache(monkeypatch, tmp_path):
    folder = tmp_path / "cache of mine"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder / "scriptmode"


@pytest.fixture
def counting_compiler(monkeypatch, tmp_path):
    """A compiler that notes each time it is called."""
    calls = tmp_path / "calls"
    compiler = tmp_path / "compiler"
    compiler.write_text(f'#!/bin/sh\necho called >> "{calls}"\nexec c++ "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    return lambda: calls.read_text().split() if calls.exists() else []


def test_many_ranks_that_start_at_once_compile_once(cache, counting_compiler):
    ranks = [subprocess.Popen([sys.executable, "-c", COMPILE], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    paths = {rank.communicate(timeout=60)[0].strip() for rank in ranks}
    assert [rank.returncode for rank in ranks] == [0] * 4
    (path,) = paths
    assert os.path.getsize(path) > 10_000
    assert len(counting_compiler()) == 2  # TensorFlow's name, and the operations
    assert {name.suffix for name in cache.iterdir()} == {".so", ".lock"}
    assert binary.is_there()


def test_a_machine_without_a_compiler_says_so(cache, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(binary.NoBinaryError, match=r"no compiler: c\+\+ or g\+\+ or clang\+\+ is not on PATH"):
        binary.compiled()
    assert not binary.is_there()


def test_what_the_compiler_says_is_in_the_error(cache, monkeypatch, tmp_path):
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho 'no space left' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    with pytest.raises(binary.NoBinaryError, match="cannot compile the pipe reader: no space left"):
        binary.compiled()
    assert [name.suffix for name in cache.iterdir()] == [".lock"]


def test_a_user_without_a_home_has_a_folder_of_his_own(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = os.path.dirname(binary.cached())
    assert folder == str(tmp_path / f"scriptmode-{os.getuid()}")
    os.chmod(folder, 0o777)
    with pytest.raises(binary.NoBinaryError, match="belongs to somebody else"):
        binary.compiled()


@pytest.mark.tf
def test_without_a_binary_python_reads_and_says_that_it_is_slower_once(cache, pipe_host, tf, monkeypatch):
    from pipe_dataset.framings import tf_record
    from scriptmode_runtime.tensorflow import PipeModeDataset, operations

    monkeypatch.setenv("CXX", "no-compiler-of-this-name")
    operations._load.cache_clear()
    try:
        pipe_host.feed(tf_record(b"x"))
        with pytest.warns(RuntimeWarning, match="in Python, which is many times slower .*CXX='no-compiler-of-this-name'"):
            dataset = PipeModeDataset("train", "TFRecord")
        PipeModeDataset("train", "TFRecord")
        assert list(dataset.as_numpy_iterator()) == [b"x"]
    finally:
        operations._load.cache_clear()


def test_the_binary_needs_nothing_of_tensorflow_but_its_c_interface(tmp_path):
    path = str(tmp_path / "binary.so")
    binary.build("c++", path)
    symbols = subprocess.run(["nm", "-D", "--undefined-only", path], check=True, capture_output=True, text=True).stdout
    names = [line.split()[-1] for line in symbols.splitlines()]
    assert any(name.startswith("TF_") for name in names)
    assert not [name for name in names if "tensorflow" in name or "absl" in name]
