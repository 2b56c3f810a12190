"""The import alias of ``scriptmode.v2``: programs of sagemaker v2 and v1 import scriptmode's own objects."""

import re
import subprocess
import sys
import textwrap
from contextlib import nullcontext

import pytest
from fakes.sagemaker_jobs import started

import scriptmode
import scriptmode.aws
from scriptmode._core.spec.older_names import MISSING_METHODS
from scriptmode.errors import SpecError
from scriptmode.testing import Life
from scriptmode.v2 import _name_table as name_table, adapters, load_ipython_extension, unload_ipython_extension

#: A statement of v2 or v1, and what it binds to ``found``.
SAME = {
    "from sagemaker.tensorflow import TensorFlow as found": adapters.TensorFlow,
    "from sagemaker import Session as found": scriptmode.Session,
    "import sagemaker; found = sagemaker.inputs.TrainingInput": scriptmode.TrainingInput,
    "import sagemaker.tuner as t; found = t.HyperparameterTuner": scriptmode.HyperparameterTuner,
    "import sagemaker; found = sagemaker.s3_input": scriptmode.TrainingInput,
    "from sagemaker.s3 import *; found = S3Downloader": scriptmode.aws.S3Downloader,
    "from sagemaker.exceptions import UnexpectedStatusException as found": scriptmode.TrainingJobFailed,
}
#: A statement whose use of a name is refused, and what its error has. What is imported alone is not refused.
REFUSED = {
    "from sagemaker.pytorch import PyTorch; PyTorch(1)": "scriptmode has no sagemaker.pytorch.PyTorch; give Estimator the",
    "import sagemaker.workflow.steps as s; s.TrainingStep()": "no sagemaker.workflow.steps.TrainingStep; build pipelines",
    "import sagemaker; sagemaker.predictor.Predictor": "scriptmode has no sagemaker.predictor; serve the model with the",
    "from sagemaker import Predictor\nclass Own(Predictor): pass": "scriptmode has no sagemaker.Predictor; serve the model",
    "import sagemaker; sagemaker.image_uris.retrieve('xgboost', 'us-east-1')": "not xgboost for 'training'; write the URI",
    "from sagemaker.inputs import TraningInput": "scriptmode has no sagemaker.inputs.TraningInput; did you mean 'Train",
    "import sagemaker.tensorflw": "scriptmode has no sagemaker.tensorflw; did you mean 'tensorflow'?",
}


@pytest.fixture
def aliased():
    load_ipython_extension(None)
    yield
    unload_ipython_extension(None)


def run(statement):
    variables = {}
    exec(statement, variables)
    return variables


@pytest.mark.parametrize("statement", SAME)
def test_a_name_of_v2_or_v1_is_scriptmodes_object(aliased, statement):
    assert run(statement)["found"] is SAME[statement]


def test_every_counterpart_exists(aliased):
    for module, found in name_table.COUNTERPARTS.items():
        for name in found:
            assert run(f"from {module} import {name} as found")["found"] is not None


@pytest.mark.parametrize("statement", REFUSED)
def test_what_is_not_included_is_refused_with_what_to_do_instead(aliased, statement):
    # Libraries that use sagemaker where it is installed catch these.
    with pytest.raises((ModuleNotFoundError, AttributeError)) as caught:
        run(statement)
    assert REFUSED[statement] in str(caught.value)


def test_a_program_derives_an_estimator_of_its_own_from_framework(aliased, code):
    found = run(f"""
from sagemaker.estimator import Framework
class Own(Framework):
    def __init__(self, entry_point, source_dir=None, hyperparameters=None, **named):
        super().__init__(entry_point, source_dir, hyperparameters, **named)
own = Own("train.py", {str(code)!r}, {{"steps": 2}}, instance_count=1, instance_type="local_process")
own.entry_point = "train.py"; found = own.request()["HyperParameters"]
""")
    assert {"steps": "2", "sagemaker_program": '"train.py"'}.items() <= found["found"].items()


@pytest.mark.parametrize("end", ["Completed", "Stopped", "Failed"])
def test_attach_shows_the_statuses_of_a_job_until_its_end_as_in_v2(end, capsys):
    fake, job = started(Life(ends=end, logs={"algo-1": [(100, "a line")]}))
    with pytest.raises(scriptmode.TrainingJobFailed) if end == "Failed" else nullcontext() as caught:
        assert adapters.TensorFlow.attach(job.name, fake, model_channel_name="model").latest_training_job.status == end
    if caught:
        assert (caught.value.actual_status, caught.value.allowed_statuses) == (end, ["Completed", "Stopped"])
    shown = capsys.readouterr().out
    assert (f"-- {end}: Training job" in shown, "a line" in shown) == (True, False)


def test_what_is_not_included_can_be_checked_for_and_annotate(aliased):
    found = run("""
from sagemaker import Model, Predictor
from typing import Optional
is_one = isinstance(3, Predictor) or isinstance(3, (Predictor, str)) or issubclass(int, Predictor)
is_number = isinstance(3, (Predictor, int))
def load(a: Predictor | None, b: None | Predictor, c: Predictor | Model, d: Optional[Predictor]): return a
result = load(1, 2, 3, 4)
""")
    assert (found["is_one"], found["is_number"], found["result"]) == (False, True, 1)


def test_an_image_is_that_of_the_debuggers_rules_or_is_refused_without_a_version(aliased):
    found = run("import sagemaker; found = sagemaker.image_uris.retrieve(framework='debugger', region='eu-west-1')")
    assert found["found"] == "929884845733.dkr.ecr.eu-west-1.amazonaws.com/sagemaker-debugger-rules:latest"
    with pytest.raises(SpecError, match=r"^version is None; give that of TensorFlow, such as '2\.\d+'$"):
        run("import sagemaker; sagemaker.image_uris.retrieve('tensorflow', 'us-east-1')")


def program(folder, *words, text="import sagemaker\nprint(sagemaker.__file__)\n"):
    """Run Python in a folder that has a program and a package named sagemaker."""
    (folder / "sagemaker").mkdir(exist_ok=True)
    (folder / "sagemaker" / "__init__.py").write_text("Session = 'the installed one'\n")
    (folder / "program.py").write_text(textwrap.dedent(text))
    return subprocess.run([sys.executable, *words], cwd=folder, check=False, capture_output=True, text=True, timeout=99)


@pytest.mark.parametrize("name", MISSING_METHODS)
def test_a_method_that_is_not_included_is_refused_with_what_to_do_instead(name, code):
    estimator = scriptmode.TensorFlow(entry_point=f"{code}/train.py", instance_count=1, instance_type="local_process")
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'; {re.escape(MISSING_METHODS[name])}"):
        getattr(estimator, name)


def test_an_installed_sagemaker_is_imported_before_and_after_but_not_meanwhile(tmp_path):
    text = """
        import scriptmode, sys
        assert not [name for name in sys.modules if name.startswith(("sagemaker", "scriptmode.v2"))]
        from scriptmode.v2 import alias
        alias.activate()
        alias.activate()
        import sagemaker, sagemaker.inputs
        print(sagemaker.Session)
        alias.deactivate()
        import sagemaker
        print(sagemaker.Session)
        alias.activate()
    """
    done = program(tmp_path, "program.py", text=text)
    assert done.stdout.splitlines() == [str(scriptmode.Session), "the installed one"]
    path = tmp_path / "sagemaker" / "__init__.py"
    assert f"cannot stand for sagemaker, which is already imported from {path}; load it before" in done.stderr


@pytest.mark.parametrize("words", [["program.py"], ["-m", "program"]], ids=["a file", "a module"])
def test_a_program_runs_as_python_runs_it(tmp_path, words):
    text = """
        import sys, sagemaker
        from sagemaker.session import Session
        import sibling
        print(__name__, sys.argv[1:], Session.__module__, __file__)
        sys.exit(7)
    """
    (tmp_path / "sibling.py").touch()
    done = program(tmp_path, "-m", "scriptmode.v2", *words, "--epochs", "-m", text=text)
    assert done.stdout.split(maxsplit=4)[:3] == ["__main__", "['--epochs',", "'-m']"], done.stderr
    assert f" {scriptmode.Session.__module__} " in done.stdout
    assert done.stdout.endswith("program.py\n")
    assert done.returncode == 7


@pytest.mark.parametrize(
    "text",
    ["def f():\n    raise ValueError('x')\nf()", "def f(:", "raise KeyboardInterrupt"],
    ids=["error", "syntax", "signal"],
)
def test_an_exception_of_a_program_ends_it_as_python_does(tmp_path, text):
    expected, done = (program(tmp_path, *words, "program.py", text=text) for words in ((), ("-m", "scriptmode.v2")))
    assert done.stderr.replace(f"{tmp_path}/", "") == expected.stderr.replace(f"{tmp_path}/", "")
    assert done.returncode == expected.returncode != 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "name a PROGRAM, or -m and a MODULE"),
        (["--wrong"], "name a PROGRAM, or -m and a MODULE"),
        (["absent.py"], "there is no file 'absent.py'"),
        (["cells.ipynb"], "is a notebook; write %load_ext scriptmode.v2"),
    ],
)
def test_a_wrong_command_line_names_the_next_step(tmp_path, words, expected):
    done = program(tmp_path, "-m", "scriptmode.v2", *words)
    assert done.returncode == 2
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
