"""Packages that are missing, broken or of another version, imported for real by the doctor."""

import sys

import pytest
from fakes.doctor_stubs import MISSING, write_stubs

from scriptmode.doctor import program_checks
from scriptmode.installation import install_command

CRASH = "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n"
UNDEFINED = "raise ImportError('/x/horovod/mpi_lib.so: undefined symbol: _ZN10tensorflow8OpKernel11TraceStringE')\n"


@pytest.fixture
def found(tmp_path, monkeypatch):
    monkeypatch.delenv("TF_USE_LEGACY_KERAS", raising=False)

    def look(**stubs):
        write_stubs(tmp_path, **stubs)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        return dict(zip(("TensorFlow", "Keras", "Horovod"), program_checks.frameworks()))

    return look


def test_installed_packages_are_reported_with_their_version_and_folder(found, tmp_path):
    checks = found()
    assert [check.outcome for check in checks.values()] == ["ok", "ok", "ok"]
    assert checks["TensorFlow"].found == f"2.15.1 at {tmp_path}/tensorflow"
    assert checks["Keras"].found == f"2.15.0 at {tmp_path}/keras"
    assert checks["Horovod"].found == f"0.28.1 at {tmp_path}/horovod, built for TensorFlow 2.15.1, with MPI"


def test_without_tensorflow_the_next_step_is_to_install_it(found):
    checks = found(tensorflow=MISSING.format("tensorflow"))
    assert checks["TensorFlow"].outcome == "warning"
    assert f"not installed for {sys.executable}" in checks["TensorFlow"].found
    assert checks["TensorFlow"].advice == install_command("tensorflow")
    assert checks["Keras"].advice == checks["TensorFlow"].advice


def test_a_tensorflow_that_cannot_be_imported_is_a_warning_with_its_message(found):
    checks = found(tensorflow="raise ImportError('libcudart.so.12: cannot open shared object file')\n")
    assert checks["TensorFlow"].outcome == "warning"
    assert "ImportError: libcudart.so.12: cannot open shared object file" in checks["TensorFlow"].found
    assert "--force-reinstall" in checks["TensorFlow"].advice


def test_a_tensorflow_that_crashes_takes_only_its_own_process_with_it(found):
    checks = found(tensorflow=CRASH)
    assert {check.outcome for check in checks.values()} == {"warning"}
    assert "it ended with signal SIGSEGV" in checks["TensorFlow"].found
    assert checks["TensorFlow"].advice == f"try it: {sys.executable} -c 'import tensorflow'"


def test_an_import_that_hangs_is_given_up_and_what_was_said_before_is_kept(found, monkeypatch):
    monkeypatch.setattr(program_checks, "_IMPORT_SECONDS", 2.0)
    checks = found(horovod_tensorflow="import time\ntime.sleep(100)\n")
    assert checks["TensorFlow"].outcome == "ok"
    # It may be slow only: nothing is called broken.
    assert "is slow: its import did not end within 2 s" in checks["Horovod"].found
    assert not checks["Horovod"].prevents


def test_an_import_leaves_no_settings_of_keras_behind_but_reads_those_that_are_there(found, tmp_path, monkeypatch):
    monkeypatch.delenv("KERAS_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    # As Keras does.
    where = "(os.environ.get('KERAS_HOME') or os.path.expanduser('~/.keras'))"
    keras = f"import os\n__version__ = '2.15.0 ' + {where}\nclass Model: pass\nModel.__module__ = 'keras.src'\n"
    assert str(tmp_path / "home") not in found(keras=keras)["Keras"].found
    (tmp_path / "home" / ".keras").mkdir(parents=True)
    (tmp_path / "home" / ".keras" / "keras.json").write_text("{}")
    assert f"2.15.0 {tmp_path}/home/.keras at" in found(keras=keras)["Keras"].found


@pytest.mark.parametrize("broken", [UNDEFINED, ""], ids=["does not load", "loads all the same"])
def test_a_horovod_of_another_tensorflow_names_both_and_the_command_that_builds_it(found, broken):
    check = found(built_for="2.14.0", **({"horovod_tensorflow": broken} if broken else {}))["Horovod"]
    assert check.outcome == "warning"
    assert "was built for TensorFlow 2.14.0, but 2.15.1 is installed" in check.found
    assert ("undefined symbol" in check.found) == bool(broken)
    assert f"container/horovod/build_wheel.sh {sys.executable}" in check.advice


def test_a_horovod_without_mpi_or_that_is_missing_is_reported(found):
    assert "was built without MPI" in found(horovod_tensorflow="def mpi_built(): return False\n")["Horovod"].found
    missing = found(horovod=MISSING.format("horovod"))["Horovod"]
    assert missing.outcome == "warning"
    assert "under distribution=MPI(...)" in missing.found


def test_a_keras_3_says_what_it_does_not_train_and_what_does(found):
    keras = "__version__ = '3.10.0'\nclass Model: pass\nModel.__module__ = 'keras.src.models'\n"
    check = found(keras=keras)["Keras"]
    assert check.outcome == "warning"
    assert "3.10.0" in check.found
    assert "parameter servers" in check.found
    assert check.advice == "pip install tf-keras, and give such jobs environment={'TF_USE_LEGACY_KERAS': '1'}"


def test_a_missing_legacy_keras_is_reported(found, monkeypatch):
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "1")
    broken = "__version__ = '2.21.0'\nclass keras:\n    class Model: pass\nkeras.Model.__module__ = 'tf_keras.src'\n"
    check = found(tensorflow=broken)["Keras"]
    assert check.outcome == "warning"
    assert (
        "TF_USE_LEGACY_KERAS=1, tf.keras cannot be imported: ModuleNotFoundError: No module named 'tf_keras'"
        in check.found
    )
    assert "pip install tf-keras" in check.advice
