"""Which tasks use the Keras 2 of tf-keras in place of Keras 3, by the packages that the host has."""

from pathlib import Path

import pytest
from fakes.host_folders import write_host

from scriptmode_runtime import _environment as environment
from scriptmode_runtime._environment import keras
from scriptmode_runtime._launch import user_code
from scriptmode_runtime._strategies import plan_for

VARIABLE = "TF_USE_LEGACY_KERAS"
MIRRORED = {"sagemaker_multi_worker_mirrored_strategy_enabled": True}
SERVERS = {"sagemaker_parameter_server_enabled": True}
COORDINATOR = {**SERVERS, "sagemaker_parameter_server_coordinator": True}
CURRENT = ("tensorflow-2.21.0", "tf_keras-2.21.0")


@pytest.fixture
def read(tmp_path):
    def read(installed, hosts=2, environ=(), requirements=(), **hyperparameters):
        names = [f"algo-{number + 1}" for number in range(hosts)]
        base = write_host(tmp_path / "ml", hosts=names, sagemaker_program="train.py", **hyperparameters)
        overlay = base / "overlay" / "lib" / "python3.13" / "site-packages"
        for folder, names in ((tmp_path / "packages", installed), (overlay, requirements)):
            for name in names:
                (folder / f"{name}.dist-info").mkdir(parents=True)
        found = environment.read(str(base), dict(environ))
        return found._replace(import_path=("", str(tmp_path / "missing.zip"), str(tmp_path / "packages")))

    return read


def trainers(here):
    plan = plan_for(here, user_code.command(here))
    return [plan.main, *plan.side_processes]


@pytest.mark.parametrize(
    "distribution", [MIRRORED, SERVERS, COORDINATOR], ids=["mirrored", "between-graph", "coordinator"]
)
def test_tasks_use_keras_2_where_the_host_has_it_and_tensorflow_has_keras_3(read, distribution):
    here = read(CURRENT, **distribution)
    assert [each.env[VARIABLE] for each in trainers(here)] == ["1"]
    assert keras.find_legacy_keras(here) == "2.21.0"


#: What the host has, and what the job is.
KEEPS = {
    "no tf-keras": (CURRENT[:1], MIRRORED),
    "TensorFlow 2.15": (("tensorflow_cpu-2.15.1", "tf_keras-2.15.1"), MIRRORED),
    "one host": (CURRENT, {"hosts": 1, **SERVERS}),
    "no distribution": (CURRENT, {"hosts": 1}),
    "no package is known": ((), MIRRORED),
}


@pytest.mark.parametrize(("installed", "job"), KEEPS.values(), ids=KEEPS)
def test_other_scripts_keep_the_keras_of_tensorflow(read, installed, job):
    assert [each for each in trainers(read(installed, **job)) if VARIABLE in each.env] == []


@pytest.mark.parametrize("value", ["", "0", "1"])
def test_the_value_of_the_job_is_left(read, value):
    assert VARIABLE not in trainers(read(CURRENT, environ={VARIABLE: value}, **MIRRORED))[0].env


def test_the_requirements_of_the_source_are_packages_too(read):
    here = read(["tensorflow-2.21.0"], requirements=["tf_keras-2.21.0"], **MIRRORED)
    assert keras.find_legacy_keras(here) == "2.21.0"


def test_a_host_reads_the_packages_of_its_own_interpreter(tmp_path):
    base = write_host(tmp_path / "ml", sagemaker_program="train.py", **MIRRORED)
    found = environment.read(str(base), {}).import_path
    assert str(Path(pytest.__file__).parents[1]) in found
