"""A freshly installed scriptmode is complete: its requirements agree, it imports, and every command has a help."""

import re
import subprocess

import pytest
from docs.documents import DOCS, blocks
from outside.installations import BARE, INSTALLATIONS, uv

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
#: The bare installation is tested in every run.
PARAMETERS = [
    pytest.param(each, id=str(each), marks=[] if each == BARE else [pytest.mark.long]) for each in INSTALLATIONS
]
TRAIN = """\
import os
from pathlib import Path

lines = Path(os.environ["SM_CHANNEL_TRAIN"], "part-0").read_text().split()
Path(os.environ["SM_MODEL_DIR"], "count").write_text(str(len(lines)))
"""


@pytest.fixture(scope="module")
def user(install, outside):
    """Return a function that runs a program as a user of an environment, in a directory of the user's own."""

    def user(environment, *command):
        home = outside / f"user of {environment.folder.name}"
        if not home.exists():
            users[home] = environment.variables(home)
        return subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=300, cwd=home, env=users[home],
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    users = {}
    return user


@pytest.mark.parametrize("installation", PARAMETERS)
def test_scriptmode_is_imported_from_where_it_is_installed_with_all_requirements(installation, install, user):
    environment = install(installation)
    uv("pip", "check", "--python", environment.python)
    done = user(environment, "python", "-c", "import scriptmode; print(scriptmode.__file__)")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{environment.folder}/lib/python{installation.python}/site-packages/scriptmode/")
    assert len([*environment.folder.glob("lib/*/site-packages/scriptmode*/py.typed")]) == 7


@pytest.mark.parametrize("installation", PARAMETERS)
def test_every_command_has_a_help(installation, install, user):
    verbs, failures = [()], []
    for verb in verbs:
        done = user(install(installation), "scriptmode", *verb, "--help")
        if done.returncode or done.stderr or not done.stdout.startswith(f"Usage: {' '.join(('scriptmode', *verb))} "):
            failures.append(f"$ scriptmode {' '.join(verb)} --help: exit code {done.returncode}\n{done.stderr}")
        is_group = " COMMAND [ARGS]..." in done.stdout.partition("\n")[0]
        below = done.stdout.partition("\nOptions:\n")[2] if is_group else ""
        verbs += [(*verb, name) for name in re.findall(r"^  (\w[\w-]*)", below, re.MULTILINE)]
    assert failures == []
    assert {("run",), ("model", "download"), ("image", "build"), ("doctor",)} <= set(verbs)


def test_horovod_without_tensorflow_names_what_is_missing(install, user):
    done = user(install(BARE), "scriptmode", "horovod", "install")
    what = "Horovod needs TensorFlow, which is not installed; pip install 'scriptmode[tensorflow,mpi]'"
    assert (done.returncode, done.stderr) == (1, f"scriptmode: {what}\n")


def test_the_image_of_a_notebooks_call_for_tensorflow_1_is_known_without_sagemaker(install, user):
    program = """
import os
from scriptmode import TensorFlow
os.environ["AWS_DEFAULT_REGION"] = "eu-west-1"
print(TensorFlow(
    entry_point="train.py", role="arn:aws:iam::123456789012:role/training", train_instance_count=2, train_instance_type="ml.p3.2xlarge",
    framework_version="1.13", py_version="py3", distributions={"parameter_server": {"enabled": True}},
).training_image_uri())
"""
    done = user(install(BARE), "python", "-W", "ignore::DeprecationWarning", "-c", program)
    assert (done.stdout, done.stderr) == (
        "763104351884.dkr.ecr.eu-west-1.amazonaws.com/tensorflow-training:1.13-gpu-py3\n", "",
    )  # fmt: skip


V2_PROGRAM = """\
import sagemaker
from sagemaker import get_execution_role
from sagemaker.inputs import TrainingInput
from sagemaker.tensorflow import TensorFlow

print(sagemaker.__version__.split(".")[0])
session = sagemaker.Session()
estimator = TensorFlow(
    entry_point="train.py", role=get_execution_role(), instance_count=1, instance_type="local_process",
    framework_version="2.12", py_version="py310", sagemaker_session=session,
)
estimator.fit({"train": TrainingInput(session.upload_data("data"))}, job_name="count-1")
sagemaker.s3.S3Downloader.download(estimator.model_data, "model")
"""


def test_a_program_of_sagemaker_v2_trains_unchanged_where_no_sagemaker_is_installed(install, user):
    environment = install(BARE)
    files = {"data/part-0": "a b c\n", "train.py": TRAIN, "launch.py": V2_PROGRAM}
    steps = f"mkdir v2 && cd v2 && mkdir data && {_writing(files)}"
    done = user(environment, "bash", "-ec", f"{steps}; python launch.py")
    assert "No module named 'sagemaker'" in done.stderr
    done = user(
        environment, "bash", "-ec", "cd v2; python -m scriptmode.v2 launch.py; tar -xOf model/model.tar.gz count"
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert (done.stdout[0], done.stdout[-2:]) == ("2", "\n3")


def test_an_installation_from_the_sdist_alone_runs_a_job(builder, install, user):
    environment = install(BARE, wheel=builder.wheel_of_sdist)
    program = f"mkdir data && echo a b c > data/part-0 && cat > train.py <<'END'\n{TRAIN}END\n"
    job = "scriptmode run train.py --input train=data --job-name count-1"
    done = user(environment, "bash", "-ec", f"{program}{job}; scriptmode model download count-1 model; cat model/count")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert done.stdout.endswith("\n3")


@pytest.mark.parametrize("installation", PARAMETERS)
def test_the_test_of_the_guide_passes(installation, install, user):
    environment = install(installation, ("pytest",))
    files = {block.file: block.text for block in blocks(DOCS / "guides" / "testing.md") if block.file}
    steps = f"mkdir first; cd first; {_writing({name: files[name] for name in ('train.py', 'test_train.py')})}"
    # The second run imports the modules that pytest has rewritten in the first.
    done = user(environment, "bash", "-ec", f"{steps}; pytest -W error; cd ..; pytest -W error first")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    program = (
        "import pytest, scriptmode.testing, scriptmode_runtime; raise SystemExit(pytest.main(['-W', 'error', 'first']))"
    )
    imported = user(environment, "python", "-c", program)
    assert imported.returncode == 0, f"{imported.stdout}\n{imported.stderr}"
    assert (done.stdout.count(" passed in "), "skipped" in done.stdout) == (2, False)


def _writing(files):
    return " && ".join(f"cat > {name} <<'END'\n{text}END" + "\n:" for name, text in files.items())
