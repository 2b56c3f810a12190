"""The pages that list arguments, settings, variables and what v2 has in addition list exactly those of the code."""

import importlib
import inspect
import json
import re
import subprocess
import sys
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner
from docs.documents import DOCS
from references import SAGEMAKER_V2, environment

import scriptmode
import scriptmode_cli
from scriptmode import SpecError, TensorFlow, TrainingJob
from scriptmode._core.request import service_model, violation_texts as texts
from scriptmode._core.request.fields import FIELDS, SOURCES
from scriptmode._core.spec import instance_types
from scriptmode._core.spec.estimator_arguments import EstimatorArguments
from scriptmode._core.spec.older_names import GONE, MISSING_METHODS
from scriptmode.v2 import _name_table as names_of_v2
from scriptmode_slurm._engine.settings import REFUSED, SlurmSettings


def rows(page):
    """Return the cells of each row of a page's tables whose first cell is code."""
    lines = (DOCS / page).read_text().splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| `")]


def test_public_names_lists_each_package_with_a_list_of_names():
    listed = {row[0].strip("`"): row[1] for row in rows("reference/public_names.md")}
    for module, names in listed.items():
        if module.startswith("scriptmode_runtime.tensorflow"):  # imports TensorFlow
            assert find_spec(module), module
            continue
        public = importlib.import_module(module)
        named = ["__all__"] if "`__all__`" in names else re.findall(r"`(\w+)`", names.partition(", for")[0])
        assert named, module
        assert [name for name in named if not hasattr(public, name)] == [], module
    package = Path(scriptmode.__file__).parent
    stating = [
        path for path in package.rglob("__init__.py") if "Public are the names in ``__all__``" in path.read_text()
    ]
    modules = {".".join(("scriptmode", *path.relative_to(package).parts[:-1])) for path in stating}
    assert {"scriptmode", "scriptmode.testing"} <= modules
    assert modules - listed.keys() == set()


ARGUMENTS = [row for row in rows("reference/arguments.md") if len(row) == 4]
WITHOUT_ARGUMENT = [row for row in rows("reference/arguments.md") if len(row) == 2]


def test_the_page_has_every_argument_once_with_a_default():
    named = [name for row in ARGUMENTS for name in re.findall(r"`(\w+)`", row[0])]
    taken = [name for name in inspect.signature(scriptmode.Estimator).parameters if name != "older_names"]
    assert len(named) == len(set(named))
    assert set(taken) == set(EstimatorArguments._fields)
    assert not set(taken) ^ set(named), "give each argument a row in reference/arguments.md"
    assert [row[0] for row in ARGUMENTS if not row[2]] == []
    assert "`False`" in next(row[2] for row in ARGUMENTS if row[0] == "`use_spot_instances`")


LISTS_OF_KINDS = ("../../README.md", "guides/getting_started.md", "guides/serve.md", "reference/estimators.rst")


def test_every_kind_of_host_is_where_kinds_are_listed():
    forms = instance_types.local_forms()
    row = next(row for row in ARGUMENTS if row[0] == "`instance_type`")
    assert [form for form in forms if f"`{form}`" not in row[1]] == []
    assert [form for form in forms if f"``{form}``" not in scriptmode.Estimator.__doc__] == []
    for page in LISTS_OF_KINDS:
        text = (DOCS / page).read_text()
        named = {kind.title for form, kind in forms.items() if re.search(rf'[`"]{form}[`"]', text)}
        assert named == {kind.title for kind in forms.values()}, page
    main, run = (CliRunner().invoke(scriptmode_cli.scriptmode, [*verb, "--help"]).output for verb in ([], ["run"]))
    first_sentences = (DOCS / "../../README.md").read_text().split("\n\n")[1], main
    elsewhere = {kind.system for kind in forms.values() if not kind.is_here}
    assert [place for place in elsewhere for text in first_sentences if place not in text] == []
    assert "slurm or slurm:PARTITION (nodes of a Slurm cluster)" in " ".join(run.split())
    assert [form for form in forms if form not in run] == []
    with pytest.raises(SpecError, match="instance_type is missing; give local_process .*kubernetes:gpu=N"):
        scriptmode.Estimator(entry_point="train.py")


def test_the_estimator_documents_every_argument():
    documented = set(re.findall(r"^    (\w+): ", inspect.getdoc(scriptmode.Estimator) or "", re.MULTILINE))
    missing = set(EstimatorArguments._fields) - documented
    assert not missing, "describe it in the docstring of Estimator, under Args"


def test_an_argument_sets_the_field_that_the_page_names():
    paths = {row.argument: row.path for row in FIELDS if row.argument}
    wrong = {}
    for row in ARGUMENTS:
        shown = re.findall(r"`([\w.]+)`", row[3])
        known = [paths[name] for name in re.findall(r"`(\w+)`", row[0]) if name in paths]
        if known and shown != known:
            wrong[row[0]] = (shown, known)
    assert not wrong


def leaves(shape=service_model.REQUEST_SHAPE, path=""):
    """The path of each field of a CreateTrainingJob request that has no members."""
    found = service_model.shapes(service_model.REQUEST_SHAPE)[shape]
    if found["type"] == "list":
        yield from leaves(found["member"]["shape"], path)
    elif found["type"] == "structure":
        for name, member in found["members"].items():
            yield from leaves(member["shape"], f"{path}.{name}".lstrip("."))
    else:
        yield path


def test_the_page_has_each_field_that_no_argument_sets_with_its_reason():
    sources = tuple(f"InputDataConfig.{row.path}" for _, table in SOURCES.values() for row in table)
    set_by_none = {path for path in leaves() if not texts.argument_of(path)}
    of_sources = {path for path in leaves() if path.startswith("InputDataConfig.DataSource.")}
    set_by_none |= {path for path in of_sources if not path.startswith(sources)}
    named = [name.strip("`") for name, reason in WITHOUT_ARGUMENT if reason]
    assert len(named) == len(WITHOUT_ARGUMENT)
    assert {path for path in leaves() if path.startswith(tuple(named))} == set_by_none
    assert all(any(path.startswith(name) for path in set_by_none) for name in named)


def test_the_page_of_slurm_has_every_setting_and_every_refused_option():
    found = {row[0].strip("`"): row for row in rows("reference/slurm.md")}
    page = (DOCS / "reference" / "slurm.md").read_text()
    assert [name for name in sorted(REFUSED) if f"`{name}`" not in page] == []
    assert {field.name for field in fields(SlurmSettings)} - {"options"} <= found.keys()


#: Set where the platform says it, or by a strategy.
CONDITIONAL = {"SM_TOPOLOGY", "TF_CONFIG", "RANK", "MASTER_ADDR"}
PROGRAM = """
import json, os
names = [name for name in os.environ if name.startswith(("SM_", "SAGEMAKER_JOB", "SAGEMAKER_REGION")) or name == "CURRENT_HOST"]
print("names:", json.dumps(names))
"""


@pytest.mark.slow
def test_the_page_names_the_variables_that_a_script_has(tmp_path, data_dir):
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "points").mkdir()
    (tmp_path / "points" / "a").write_text("1")
    command = (sys.executable, "-m", "scriptmode", "run", "train.py", "--input", "train=points", "-p", "epochs=3")
    said = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=600).stdout
    names = json.loads(re.search(r"names: (\[.*\])", said)[1])
    masked = {re.sub(r"^SM_(CHANNEL|HP)_\w+", r"SM_\1_<NAME>", name) for name in names}
    assert masked == {re.match(r"`([\w<>]+)`", row[0])[1] for row in rows("reference/variables.md")} - CONDITIONAL


def test_the_errors_in_the_guide_have_the_attributes_it_lists():
    found = [row for row in rows("guides/failures.md") if row[0].startswith("`TrainingJob")]
    assert len(found) == 2
    description = {"TrainingJobName": "a", "TrainingJobStatus": "Stopped", "SecondaryStatus": "MaxRuntimeExceeded"}
    for classes, said, *_ in found:
        for name in re.findall(r"`(\w+)`", classes):
            error = getattr(scriptmode, name)("text", description)
            assert [word for word in re.findall(r"`(\w+)`", said) if not hasattr(error, word)] == []


REFERENCE = (DOCS / "reference" / "sagemaker_v2.md").read_text()
#: The second column of the table of what is not included by the names in the first.
NOT_INCLUDED = dict(
    [cell.strip().replace("`", "") for cell in line.split("|")[1:3]]
    for line in REFERENCE.partition("## Not included")[2].partition("\n## ")[0].splitlines()
    if line.startswith("| ") and "sagemaker v2" not in line
)


def test_what_is_missing_is_in_the_reference_with_the_advice_of_its_error():
    listed = {name: advice for names, advice in NOT_INCLUDED.items() for name in names.split(", ")}
    assert {name: listed.get(name) for name in MISSING_METHODS} == MISSING_METHODS
    assert listed["compiler_config"] == GONE["compiler_config"]
    found = {name: advice for name, advice in listed.items() if name.startswith("sagemaker.")}
    assert found == names_of_v2.NOT_INCLUDED


def test_the_page_lists_the_modules_of_the_alias():
    section = REFERENCE.partition("## Under the import alias")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| `([\w.]+)` \| (.*) \|$", section, re.MULTILINE)
    found = {module: re.findall(r"`(\w+)`", names) for module, names in listed}
    assert found == {module: list(names) for module, names in names_of_v2.COUNTERPARTS.items()}
    assert f"`{names_of_v2.VERSION}`" in REFERENCE


def test_what_the_guide_has_in_the_place_of_imports_exists():
    names = {"estimator": TensorFlow, "scriptmode": scriptmode, "Tuner": scriptmode.Tuner, "base_job_name": ""}
    for _, here in rows("guides/coming_from_sagemaker_v2.md"):
        for code in re.findall(r"`([\w. ,]+)[^`]*`", here):
            exec(code, names)
    assert names["sagemaker"] is scriptmode


@pytest.mark.parametrize("kind", ["smdistributed", "torch_distributed", "pytorchddp", "pytorchxla"])
def test_a_distribution_of_aws_has_the_advice_of_its_error(kind):
    with pytest.raises(SpecError) as caught:
        TensorFlow(entry_point="train.py", distribution={kind: {}}, instance_type="ml.m5.large")
    (advice,) = [advice for names, advice in NOT_INCLUDED.items() if kind in names]
    assert caught.value.advice.replace("'", '"') == advice.replace("'", '"')


@pytest.mark.slow
def test_each_public_name_of_v2_s_estimators_and_jobs_is_there_or_in_the_list():
    program = (
        "import json, logging; logging.disable(50)\n"
        "from sagemaker.estimator import _TrainingJob\n"
        "from sagemaker.tensorflow import TensorFlow\n"
        "print(json.dumps([[n for n in dir(c) if not n.startswith('_')] for c in (TensorFlow, _TrainingJob)]))"
    )
    printed = subprocess.run(
        [environment(SAGEMAKER_V2) / "python", "-c", program], check=True, capture_output=True, text=True
    ).stdout
    estimator, job = json.loads(printed.splitlines()[-1])
    ours = {*MISSING_METHODS, *dir(TensorFlow), *inspect.signature(TensorFlow).parameters}
    assert [name for name in estimator if name.islower() and name not in ours] == []
    # Internal functions of v2, without an underscore.
    internal = {"get_train_args", "start_new", "update"}
    assert [name for name in job if name not in internal and name not in {"name", *dir(TrainingJob)}] == []
