"""``scriptmode migrate``: programs and notebooks of sagemaker v2 and v1 become those of scriptmode."""

import ast
import json
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
    "import boto3, sagemaker": "import boto3, scriptmode",
    "import sagemaker as sm\nsm.Session()": "import scriptmode\nscriptmode.Session()",
    "import sagemaker.inputs as i\nx = i.TrainingInput": "import scriptmode\nx = scriptmode.TrainingInput",
    "import sagemaker\nsagemaker.s3.S3Uploader.upload": "import scriptmode.aws\nscriptmode.aws.S3Uploader.upload",
    "from sagemaker import inputs, Session\ninputs . TrainingInput": (
        "import scriptmode\nfrom scriptmode import Session\nscriptmode.TrainingInput"
    ),
    "from sagemaker.session import s3_input\nf(s3_input('s3://b'), s3_input)": (
        "from scriptmode import TrainingInput\nf(TrainingInput('s3://b'), TrainingInput)"
    ),
    "from sagemaker.session import s3_input as TrainingInput": "from scriptmode import TrainingInput",
    "from sagemaker.local import LocalSession\nx = LocalSession()": (
        "from scriptmode import Session\nx = Session(local_mode=True)"
    ),
    "import sagemaker\nsagemaker.TrainingJobAnalytics(\n  name).dataframe()": (
        "import scriptmode\nscriptmode.TrainingJob.attach(\n  name).analytics().dataframe()"
    ),
    "import sagemaker\nx = f's3://{sagemaker.Session().default_bucket()}/é', sagemaker.Session": (
        "import scriptmode\nx = f's3://{scriptmode.Session().default_bucket()}/é', scriptmode.Session"
    ),
    "from sagemaker.inputs import (\n    TrainingInput,  # data\n    FileSystemInput,\n)": (
        "from scriptmode import (\n    TrainingInput,  # data\n    FileSystemInput,\n)"
    ),
    'from sagemaker.local import LocalSession as L\nx = f"""é\n\n{L()}"""': (
        'from sagemaker.local import LocalSession as L\nx = f"""é\n\n{L()}"""'
    ),
    "try:\n  from sagemaker.session import s3_input\nexcept ImportError:\n"
    "  from sagemaker.inputs import TrainingInput as s3_input\ns3_input('x')": (
        "try:\n  from scriptmode import TrainingInput as s3_input\nexcept ImportError:\n"
        "  from scriptmode import TrainingInput as s3_input\ns3_input('x')"
    ),
    "try:\n  from sagemaker.inputs import TrainingInput as s3_input\nexcept ImportError:\n"
    "  from sagemaker import (\n    s3_input,  # v1\n    Session,\n  )\ns3_input('x')": (
        "try:\n  from scriptmode import TrainingInput as s3_input\nexcept ImportError:\n"
        "  from scriptmode import (\n    TrainingInput as s3_input,  # v1\n    Session,\n  )\ns3_input('x')"
    ),
    "if True:\n    from sagemaker.tensorflow import TensorFlow, TensorFlowModel  # both\nTensorFlow()": (
        "if True:\n    from scriptmode import TensorFlow\n"
        "    from sagemaker.tensorflow import TensorFlowModel  # both\nTensorFlow()"
    ),
    "import sagemaker as sm\nimport sagemaker.tensorflow\nsm.processing.A()\nsagemaker.tensorflow.TensorFlow()": (
        "import sagemaker as sm\nimport scriptmode\nsm.processing.A()\nscriptmode.TensorFlow()"
    ),
    "import sagemaker as sm\nimport sagemaker.tensorflow\nsm.processing.A()\nsm.tensorflow.TensorFlow()": (
        "import scriptmode\nimport sagemaker as sm\nsm.processing.A()\nscriptmode.TensorFlow()"
    ),
    "import sagemaker\nfrom sagemaker import tuner, Session\nimport sagemaker.inputs": (
        "import scriptmode\nfrom scriptmode import Session"
    ),
    "import sagemaker; import sagemaker.s3\nimport sagemaker.inputs  # data\nsagemaker.Session()": (
        "import scriptmode; import scriptmode\nimport scriptmode  # data\nscriptmode.Session()"
    ),
    "import sagemaker\nsagemaker.tensorflow.TensorFlow()\nsagemaker.processing.Processor()": (
        "import scriptmode\nimport sagemaker\nscriptmode.TensorFlow()\nsagemaker.processing.Processor()"
    ),
}
#: Arguments of a call in v1, and what they become.
ARGUMENTS = {
    "train_instance_count=1, train_instance_type='ml.p3.2xlarge'": "instance_count=1, instance_type='ml.p3.2xlarge'",
    "image_name='i', distributions={'mpi': {}}": "image_uri='i', distribution={'mpi': {}}",
    "script_mode=True, role='r'": "role='r'",
    "role='r', script_mode=True": "role='r'",
    "script_mode=True": "",
    "role='r', script_mode=True, training_steps=None, py_version='py3',": "role='r', py_version='py3',",
    "role='r', script_mode=True,\n  # version\n  py_version='py3'": "role='r',\n  # version\n  py_version='py3'",
    "'i',\n  script_mode=True,  # v1\n  role='r',\n  evaluation_steps=None,\n": "'i',\n  role='r',\n",
    "role='r', compiler_config=None": "role='r'",
    "\n  # one\n  script_mode=True,  # v1\n  # two\n  role='r'": "\n  # one\n  # two\n  role='r'",
    "role='r',  # one\n  # two\n  script_mode=True": "role='r',  # one\n  # two\n  ",
    "role='r',\n  # one\n  script_mode=True,\n  # two\n  training_steps=None,\n  # three\n": (
        "role='r',\n  # one\n  # two\n  # three\n"
    ),
    "script_mode=True,\n  # one\n  training_steps=None, role='r'": "# one\n  role='r'",
    "training_steps=TensorFlow(train_max_run=1), role='r'": "role='r'",
}


@pytest.mark.parametrize("old", CHANGES)
def test_an_import_and_its_uses_are_changed(migrate, tmp_path, old):
    assert changed(migrate, tmp_path, f"{old}\n") == f"{CHANGES[old]}\n"


@pytest.mark.parametrize("old", ARGUMENTS)
def test_arguments_of_v1_are_renamed_or_removed(migrate, tmp_path, old):
    before = "from sagemaker.tensorflow import TensorFlow\nTensorFlow("
    after = "from scriptmode import TensorFlow\nTensorFlow("
    assert changed(migrate, tmp_path, f"{before}{old})\n") == f"{after}{ARGUMENTS[old]})\n"


def test_attributes_of_v1_are_renamed(migrate, tmp_path):
    text = """\
        from sagemaker.tensorflow import TensorFlow
        estimator = TensorFlow(role="r")
        estimator.train_instance_count = 4
        estimator.train_max_run += estimator . train_max_wait + len(f"{estimator.image_name}é")
        print(TensorFlow(role="r").train_image(), estimator.train_image(), job.train_image(), estimator.role)
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(text))
    assert "program.py: TensorFlow, estimator.role\n" in migrate("program.py")[1]
    assert changed(migrate, tmp_path, text).splitlines()[2:] == [
        "estimator.instance_count = 4",
        'estimator.max_run += estimator . max_wait + len(f"{estimator.image_uri}é")',
        'print(TensorFlow(role="r").training_image_uri(), estimator.training_image_uri(), job.train_image(), estimator.role)',
    ]


def test_what_has_no_counterpart_is_listed_with_its_line_and_what_to_do_instead(migrate, tmp_path):
    text = """\
        import sagemaker
        from sagemaker.tensorflow import TensorFlow
        from sagemaker.workflow.steps import TrainingStep
        estimator = TensorFlow(distribution={"smdistributed": {}}, training_steps=100)
        estimator.fit("s3://b/x")
        estimator.deploy(1, "ml.m5.large")
        sagemaker.image_uris.retrieve("tensorflow")
        sagemaker.LocalSession(session)
        print(sagemaker.__version__)
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(text))
    code, output, errors = migrate("program.py", "--json")
    (found,) = json.loads(output)["files"]
    assert (code, errors) == (0, "")
    assert found["unchanged"] == ["TensorFlow", "estimator.fit", "__version__"]
    assert [(each["line"], each["name"], each["instead"].split()[0]) for each in found["missing"]] == [
        (3, "sagemaker.workflow.steps.TrainingStep", "build"),
        (4, "distribution={'smdistributed': ...}", "use"),
        (4, "training_steps=", "give"),
        (6, "estimator.deploy", "serve"),
        (7, "sagemaker.image_uris.retrieve", "give"),
        (8, "sagemaker.LocalSession", "use"),
        (9, "sagemaker.__version__", "this"),
    ]
    assert "+import scriptmode\n import sagemaker\n" in found["diff"]
    _, output, _ = migrate("program.py")
    assert "\n    program.py:6: estimator.deploy\n" in output
    assert output.endswith("\n1 file to change, 0 without sagemaker; --write changes them\n")


UNCHANGED = {
    "without sagemaker": "import os\n",
    "deploys alone": (
        "import sagemaker\nfrom sagemaker.pytorch import PyTorchModel\nPyTorchModel(role=sagemaker.get_execution_role())\n"
    ),
    "another sagemaker": "from .sagemaker import Session\nimport sagemaker_tensorflow\n",
    "a variable": "from sagemaker import tuner\ntuner = tuner.HyperparameterTuner()\n",
    "a word in text": "'import sagemaker'  # import sagemaker\n",
}


@pytest.mark.parametrize("text", UNCHANGED.values(), ids=UNCHANGED)
def test_a_program_that_cannot_gain_is_left_alone(migrate, tmp_path, text):
    assert changed(migrate, tmp_path, text) == text


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
    assert path.read_bytes() == content.replace(b"sagemaker", b"scriptmode")


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
        CELLS[0].replace("import sagemaker", "import scriptmode").replace("sagemaker.tensorflow", "scriptmode"),
        CELLS[1].replace("sagemaker", "scriptmode"),
        CELLS[2],
        CELLS[3].replace("train_instance", "instance").replace("sagemaker", "scriptmode"),
        CELLS[4].replace("from sagemaker import inputs, ", "import scriptmode\nfrom sagemaker import "),
    ]
    for name in ("cell 2: pip install -U sagemaker", "cell 4: import sagemaker", "cell 6: estimator.deploy"):
        assert f": {name}\n" in output


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
    assert (folder / "program.py").read_text() == "import scriptmode\nscriptmode.Session()"


WRONG = {
    "two.py": ("print 2\n", "two.py:1: it is not Python 3"),
    "cell.ipynb": (
        '{"cells": [{"cell_type": "code", "source": ["x = # TODO"]}, {"cell_type": "code", "source": "import sagemaker"}]}',
        "cell.ipynb:1: cell 1, line 1: it is not Python 3",
    ),
    "cut.ipynb": ('{"cells": [', "cut.ipynb:1: it is not JSON"),
    "three.ipynb": ('{"worksheets": []}', "three.ipynb: it is not a notebook of format 4"),
}


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_changed(migrate, tmp_path):
    for name, (text, _) in WRONG.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "good.py").write_text("import sagemaker\n")
    code, _, errors = migrate(".", "absent.py", "--write")
    assert code == 1
    assert (tmp_path / "good.py").read_text() == "import scriptmode\n"
    assert '"source": "import scriptmode"' in (tmp_path / "cell.ipynb").read_text()
    for _, expected in WRONG.values():
        assert f"scriptmode migrate: {expected}" in errors
    assert "absent.py cannot be read: No such file or directory" in errors
