"""How the operations' binary is found, compiled and shared."""

import os
import platform
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from pipe_dataset.framings import crc32c

from scriptmode_runtime.tensorflow import binary

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
COMPILE = (sys.executable, "-m", "scriptmode_runtime.tensorflow.binary")


@pytest.fixture
def cache(monkeypatch, tmp_path):
    folder = tmp_path / "cache of mine"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder / "scriptmode"


@pytest.fixture
def counting_compiler(monkeypatch, tmp_path):
    calls = tmp_path / "calls"
    compiler = tmp_path / "compiler"
    compiler.write_text(f'#!/bin/sh\necho called >> "{calls}"\nexec c++ "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    return lambda: calls.read_text().split() if calls.exists() else []


def test_many_ranks_that_start_at_once_compile_once(cache, counting_compiler):
    ranks = [subprocess.Popen(COMPILE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    paths = {rank.communicate(timeout=600)[0].strip() for rank in ranks}
    assert [rank.returncode for rank in ranks] == [0] * 4
    (path,) = paths
    assert Path(path).parent == cache
    assert Path(path).stat().st_size > 10_000
    assert len(counting_compiler()) == 2  # TensorFlow's name, and the operations
    assert {name.suffix for name in cache.iterdir()} == {".so", ".lock"}
    assert binary.exists()


def test_a_missing_compiler_and_what_a_compiler_says_are_errors(cache, monkeypatch, tmp_path):
    with monkeypatch.context() as without:
        without.setenv("PATH", "/nowhere")
        without.delenv("CXX", raising=False)
        with pytest.raises(binary.NoBinaryError, match=r"no compiler: c\+\+ or g\+\+ or clang\+\+ is not on PATH"):
            binary.compile_cached()
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho 'no space left' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    with pytest.raises(binary.NoBinaryError, match="cannot compile the pipe reader: no space left"):
        binary.compile_cached()
    assert [name.suffix for name in cache.iterdir()] == [".lock"]
    assert not binary.exists()


def test_a_user_without_a_home_has_a_folder_of_his_own(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = Path(binary.cached_path()).parent
    assert folder == tmp_path / f"scriptmode-{os.getuid()}"
    folder.chmod(0o777)
    with pytest.raises(binary.NoBinaryError, match="belongs to another user"):
        binary.compile_cached()


def anothers(folder):
    os.chown(folder, 65534, 65534)


@pytest.fixture
def home(monkeypatch, tmp_path):
    """The home directory of the user, without a cache in it."""
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path / "home"


@pytest.mark.parametrize("change", [lambda folder: folder.chmod(0o777), pytest.param(anothers, marks=pytest.mark.root)])
@pytest.mark.parametrize("which", ["", ".cache", ".cache/scriptmode"])
def test_a_cache_that_others_may_write_is_not_used(home, change, which):
    assert Path(binary.cached_path()).parent == home / ".cache/scriptmode"
    change(home / which)
    assert Path(binary.cached_path()).parent == home.parent / f"scriptmode-{os.getuid()}"


@pytest.mark.root
def test_root_makes_nothing_in_the_home_of_another_user(home):
    home.mkdir()
    anothers(home)
    binary.cached_path()
    assert list(home.iterdir()) == []


@pytest.mark.tf
def test_without_a_binary_the_dataset_names_the_reason_and_how_to_get_one(cache, tf, monkeypatch, tmp_path):
    from scriptmode_runtime.tensorflow import PipeModeDataset, operations

    (tmp_path / "junk.so").write_bytes(b"no ELF")
    monkeypatch.setattr(binary, "IN_WHEEL", str(tmp_path / "junk.so"))
    monkeypatch.setenv("CXX", "no-compiler-of-this-name")
    operations.load.cache_clear()
    with pytest.raises(RuntimeError) as caught:
        PipeModeDataset("train")
    message = str(caught.value)
    assert message.startswith("pipes cannot be read: the wheel's binary cannot be loaded: ")
    assert "junk.so" in message
    assert "no compiler: CXX='no-compiler-of-this-name' is not on PATH; install a C++ compiler" in message
    assert "pip wheel" in message
    assert message.endswith("read the channel in File or FastFile mode")


def test_the_module_reports_why_it_builds_no_binary(cache):
    environment = {**os.environ, "CXX": "no-compiler-of-this-name"}
    failed = subprocess.run(COMPILE, check=False, capture_output=True, text=True, timeout=600, env=environment)
    assert failed.returncode == 1
    assert failed.stderr.startswith("scriptmode: no compiler: CXX='no-compiler-of-this-name' is not on PATH; install a")


def test_the_binary_runs_where_tensorflow_does_and_needs_its_c_interface_alone(tmp_path):
    built = str(tmp_path / "binary.so")
    binary.build("c++", built, "-Wall", "-Wextra", "-Werror")
    undefined = subprocess.check_output(["nm", "-D", "--undefined-only", built], text=True)
    names = [line.split()[-1] for line in undefined.splitlines()]
    assert any(name.startswith("TF_") for name in names)
    assert not [name for name in names if "tensorflow" in name or "absl" in name]
    symbols = subprocess.check_output(["objdump", "-T", built], text=True)
    versions = {tuple(map(int, version.split("."))) for version in re.findall(r"\(GLIBC_([0-9.]+)\)", symbols)}
    # That of TensorFlow's own wheels, manylinux2014.
    assert max(versions) <= (2, 17)


CHECKSUMS = """
#include <cstdio>
#include <string>
#include "crc32c.h"
int main() {
  std::string bytes;
  for (int c = std::getchar(); c != EOF; c = std::getchar()) bytes += static_cast<char>(c);
  for (size_t size = 0; size <= bytes.size(); size += size < 600 ? 1 : 511)
    std::printf("%u\\n", scriptmode::Crc32c::Of(bytes.data() + bytes.size() - size, size));
}
"""


@pytest.mark.parametrize("flags", [(), ("-DSCRIPTMODE_CRC_BY_TABLE",)], ids=["by the CPU", "by a table"])
def test_checksums_are_those_of_the_polynomial(tmp_path, flags):
    source, program = tmp_path / "checksums.cc", str(tmp_path / "checksums")
    source.write_text(CHECKSUMS)
    native = Path(binary.IN_WHEEL).parent
    subprocess.run(["c++", "-std=c++17", "-O2", *flags, f"-I{native}", source, "-o", program], check=True, timeout=600)
    data = bytes(number * number % 251 for number in range(7000))
    done = subprocess.run([program], input=data, capture_output=True, check=True, timeout=600)
    sizes = [*range(600), *range(600, len(data) + 1, 511)]
    assert list(map(int, done.stdout.split())) == [crc32c(data[len(data) - size :]) for size in sizes]


@pytest.mark.long
@pytest.mark.parametrize("compiler", ["c++", "no-compiler-of-this-name"])
def test_a_wheel_contains_the_binary_where_there_is_a_compiler(tmp_path, compiler):
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, ROOT]
    subprocess.run(pip, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": "1577836800", "CXX": compiler})
    (wheel,) = tmp_path.glob("*.whl")
    has_binary = compiler == "c++"
    assert re.search(rf"-py3-none-manylinux_2_17_{platform.machine()}\.whl$|-py3-none-any\.whl$", wheel.name)
    assert wheel.name.endswith("-any.whl") != has_binary
    with zipfile.ZipFile(wheel) as archive:
        found = [archive.read(name)[:4] for name in archive.namelist() if name.endswith("native/pipe_reader.so")]
    assert found == [b"\x7fELF"] * has_binary
