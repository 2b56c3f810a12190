"""``scriptmode migrate``: programs and notebooks of sagemaker v2 and v1 become those of scriptmode."""

import ast
import json
import re
import subprocess
import textwrap

import pytest
from fakes.command_line import invoke


@pytest.fixture
def migrate(tmp_path, monkeypatch):
    """A function that runs the command in a directory; returns the exit code, the output and the errors."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        done = invoke("migrate", *map(str, words))
        return done.exit_code, done.stdout, done.stderr

    return run


def changed(migrate, folder, text):
    """Return a program after the changes, which leave nothing to change."""
    path = folder / "program.py"
    path.write_text(textwrap.dedent(text))
    assert migrate("program.py", "--write")[0] == 0
    new = path.read_text()
    ast.parse(new)
    assert "+++" not in migrate("program.py")[1]
    return new


#: Statements of v2 and v1, and those of scriptmode.
CHANGES = {
    "from sagemaker.tensorflow import TensorFlow": "from scriptmode import TensorFlow",
    "from sagemaker.tensorflow.estimator import TensorFlow as TF": "from scriptmode import TensorFlow as TF",
    "from sagemaker.s3 import S3Uploader  # upload": "from scriptmode.aws import S3Uploader  # upload",
    "from sagemaker.local import LocalSession": "from scriptmode.v2.adapters import LocalSession",
    "from sagemaker.instance_group import *": "from scriptmode import InstanceGroup",
    "import boto3, sagemaker": "import boto3, scriptmode as sagemaker",
    "import sagemaker\nprint(sagemaker.__version__)": "import scriptmode as sagemaker\nprint(sagemaker.__version__)",
    "import sagemaker as sm\nsm.Session()": "import scriptmode as sm\nsm.Session()",
    "import sagemaker.inputs as i\nx = i.TrainingInput": "import scriptmode as i\nx = i.TrainingInput",
    "import sagemaker\nsagemaker.s3.S3Uploader.upload": (
        "import scriptmode as sagemaker, scriptmode.aws\nsagemaker.aws.S3Uploader.upload"
    ),
    "from sagemaker import inputs, Session\ninputs.s3_input('é'); 'é', inputs.s3_input": (
        "import scriptmode as inputs\nfrom scriptmode import Session\ninputs.TrainingInput('é'); 'é', inputs.TrainingInput"
    ),
    "from sagemaker import s3, tuner\ntuner = tuner.HyperparameterTuner()\ntuner.analytics()": (
        "import scriptmode.aws as s3, scriptmode as tuner\ntuner = tuner.HyperparameterTuner()\ntuner.analytics()"
    ),
    "from sagemaker.session import s3_input": "from scriptmode import TrainingInput as s3_input",
    "from sagemaker.session import s3_input as TrainingInput": "from scriptmode import TrainingInput",
    "from sagemaker.inputs import (\n    TrainingInput,  # data\n    FileSystemInput,\n)": (
        "from scriptmode import (\n    TrainingInput,  # data\n    FileSystemInput,\n)"
    ),
    "try:\n  from sagemaker.session import s3_input\nexcept ImportError:\n"
    "  from sagemaker.inputs import TrainingInput as s3_input": (
        "try:\n  from scriptmode import TrainingInput as s3_input\nexcept ImportError:\n"
        "  from scriptmode import TrainingInput as s3_input"
    ),
    "if True:\n    from sagemaker.tensorflow import TensorFlow, TensorFlowModel  # both": (
        "if True:\n    from scriptmode import TensorFlow\n    from sagemaker.tensorflow import TensorFlowModel  # both"
    ),
    "x = 1; from sagemaker.debugger import Rule as R; from sagemaker.tuner import *": (
        "x = 1; from scriptmode.v2.debugger import Rule as R; from scriptmode import HyperparameterTuner, "
        "ContinuousParameter, IntegerParameter, CategoricalParameter, WarmStartConfig, WarmStartTypes, "
        "TuningJobCompletionCriteriaConfig, InstanceConfig, StrategyConfig, HyperbandStrategyConfig"
    ),
    "import sagemaker as sm\nimport sagemaker.tensorflow\nsm.processing.A()\nsagemaker.tensorflow.TensorFlow()": (
        "import sagemaker as sm\nimport scriptmode as sagemaker\nsm.processing.A()\nsagemaker.TensorFlow()"
    ),
    "import sagemaker\nf'{sagemaker.Session()}', sagemaker.image_uris.retrieve, sagemaker.session.LocalSession": (
        "import scriptmode as sagemaker, scriptmode.v2.adapters\n"
        "f'{sagemaker.Session()}', sagemaker.v2.adapters.retrieve, sagemaker.v2.adapters.LocalSession"
    ),
}


@pytest.mark.parametrize("old", CHANGES)
def test_an_import_and_its_uses_are_changed(migrate, tmp_path, old):
    assert changed(migrate, tmp_path, f"{old}\n") == f"{CHANGES[old]}\n"


@pytest.mark.parametrize("old", [old for old in CHANGES if "processing" not in old and "Model" not in old])
def test_a_changed_program_finds_what_it_imports(old):
    exec(re.sub(r"\('?[\wé]*'?\)", "", CHANGES[old]).replace("\ntuner.analytics", ""), {"name": ""})


def test_what_is_not_included_is_listed_with_its_line_and_what_to_do_instead(migrate, tmp_path):
    text = """\
        import sagemaker
        from sagemaker.tensorflow import TensorFlow
        from sagemaker.workflow.steps import TrainingStep
        estimator = TensorFlow(train_instance_count=1)
        estimator.fit("s3://b/x")
        estimator.deploy(1, "ml.m5.large")
        print(sagemaker.__version__)
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(text))
    code, output, errors = migrate("program.py")
    assert (code, errors) == (0, "")
    assert "+import scriptmode as sagemaker\n+from scriptmode import TensorFlow\n from sagemaker.workflow" in output
    listed = re.findall(r"\n  (\w+) .*\n    program.py:(\d+): (\S+)", output)
    assert listed == [
        ("build", "3", "sagemaker.workflow.steps.TrainingStep"),
        ("serve", "6", "estimator.deploy"),
        ("this", "7", "sagemaker.__version__"),
    ]
    assert output.endswith("\n1 file to change; --write changes them\n")


UNCHANGED = {
    "without sagemaker": "import os\n",
    "deploys alone": (
        "import sagemaker\nfrom sagemaker.pytorch import PyTorchModel\nPyTorchModel(role=sagemaker.get_execution_role())\n"
    ),
    "another sagemaker": "from .sagemaker import Session\nimport sagemaker_tensorflow\n",
    "a version of what stays": "import sagemaker\nsagemaker.__version__, sagemaker.processing.Processor\n",
    "a word in text": "'import sagemaker'  # import sagemaker\n",
}


@pytest.mark.parametrize("text", UNCHANGED.values(), ids=UNCHANGED)
def test_a_program_that_cannot_gain_is_left_alone(migrate, tmp_path, text):
    assert changed(migrate, tmp_path, text) == text
    assert "own version" not in migrate("program.py")[1]


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfimport sagemaker\r\nx = sagemaker.Session()\r\n\x0cy = 1",
        "# coding: latin-1\nimport sagemaker; s = 'é'; x = sagemaker.Session()\n\n\n".encode("latin-1"),
    ],
    ids=["a mark, carriage returns, no last line end", "latin-1"],
)
def test_bytes_beside_the_changes_stay(migrate, tmp_path, content):
    path = tmp_path / "a b.py"
    path.write_bytes(content)
    migrate("a b.py", "--write")
    assert path.read_bytes() == content.replace(b"import sagemaker", b"import scriptmode as sagemaker")


CELLS = [
    "!pip install -U sagemaker\n%matplotlib inline\nimport sagemaker\nfrom sagemaker.tensorflow import TensorFlow",
    "%%time\nfiles = !ls \\\n  | head\nrole = sagemaker.get_execution_role()\nrole?",
    "\n%%time\n%%bash\npython -c '\nimport sagemaker\n'",
    "%time estimator = TensorFlow(train_instance_count=1, role=role)\nx = (5\n % 3)\n's3://中文', sagemaker.Session()\n",
    "pip install x\nfrom sagemaker import inputs, jumpstart\nestimator.deploy()",
]


def notebook(**layout):
    code = {"cell_type": "code", "execution_count": 1, "metadata": {"z": 1, "a": [1.0, 1e-3]}}
    outputs = [{"name": "stdout", "output_type": "stream", "text": ["import sagemaker é"]}]
    cells = [{**code, "outputs": outputs, "source": cell.splitlines(keepends=True)} for cell in CELLS]
    cells[1]["source"] = CELLS[1]
    cells.insert(0, {"cell_type": "markdown", "metadata": {}, "source": ["import sagemaker"]})
    metadata = {"kernelspec": {"name": "conda", "language": "python"}, "about": {"source": "import sagemaker"}}
    return json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": metadata, "cells": cells}, **layout)


@pytest.mark.parametrize("layout", [{"indent": 1, "ensure_ascii": False}, {"indent": 4}, {}], ids=str)
def test_a_notebook_changes_in_the_lines_of_its_source_alone(migrate, tmp_path, layout):
    path = tmp_path / "cells.ipynb"
    path.write_text(notebook(**layout))
    code, output, _ = migrate("cells.ipynb", "--write")
    old, new = json.loads(notebook()), json.loads(path.read_text())
    assert json.dumps(new, **layout) == path.read_text()
    sources = ["".join(cell.pop("source")) for cell in new["cells"]]
    for cell in old["cells"]:
        del cell["source"]
    assert (code, new) == (0, old)
    assert sources[1:] == [
        CELLS[0]
        .replace("import sagemaker", "import scriptmode as sagemaker")
        .replace("sagemaker.tensorflow", "scriptmode"),
        *CELLS[1:4],
        CELLS[4].replace("from sagemaker import inputs, ", "import scriptmode as inputs\nfrom sagemaker import "),
    ]
    assert "cells.ipynb: cell 6, line 2: sagemaker.jumpstart\n" in output


def test_the_diff_applies_to_programs_and_notebooks(migrate, tmp_path):
    folder = tmp_path / "shop" / "inner"
    folder.mkdir(parents=True)
    (folder / "cells.ipynb").write_text(notebook(indent=1))
    (folder / "program.py").write_text("import sagemaker\nsagemaker.Session()")
    for hidden in (".ipynb_checkpoints", "environment"):
        (tmp_path / "shop" / hidden).mkdir()
        (tmp_path / "shop" / hidden / "program.py").write_text("import sagemaker\n")
    (tmp_path / "shop" / "environment" / "pyvenv.cfg").touch()
    _, diff, _ = migrate("shop")
    assert [line for line in diff.splitlines() if line.startswith("+++")] == [
        "+++ b/shop/inner/cells.ipynb", "+++ b/shop/inner/program.py",
    ]  # fmt: skip
    subprocess.run(["git", "apply", "-"], input=diff, text=True, check=True, cwd=tmp_path)
    assert "+++" not in migrate("shop")[1]
    assert (folder / "program.py").read_text() == "import scriptmode as sagemaker\nsagemaker.Session()"


WRONG = {
    "two.py": ("print 2\n", "two.py:1: it is not Python 3"),
    "cut.ipynb": ('{"cells": [', "cut.ipynb is not a notebook of format 4, or not text: Expecting value"),
    "three.ipynb": ('{"worksheets": []}', "three.ipynb is not a notebook of format 4"),
}


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_changed(migrate, tmp_path):
    for name, (text, _) in WRONG.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "good.py").write_text("import sagemaker\n")
    cells = [{"cell_type": "code", "source": source} for source in (["x = # TODO"], "import sagemaker")]
    (tmp_path / "cell.ipynb").write_text(json.dumps({"cells": cells}))
    code, output, errors = migrate(".", "--write")
    assert code == 1
    assert (tmp_path / "good.py").read_text() == "import scriptmode as sagemaker\n"
    assert "cell.ipynb: cell 1, line 1: invalid syntax" in output
    for _, expected in WRONG.values():
        assert f"scriptmode: {expected}" in errors
    assert "'absent.py' does not exist" in migrate("good.py", "absent.py", "--write")[2]
