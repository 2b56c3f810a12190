"""Notebooks with what public ones have, as the suite of programs for the SageMaker SDK v2 runs them."""

import json

import pytest
from tests.foreign_suites import sources, v2_programs_suite

pytestmark = pytest.mark.slow

TRAINS = """
!pip install some-package
import os, sys, some_package.data as data
import sagemaker
from sagemaker.predictor import Predictor
%store -r rate
own = {'name': '<a name>', 'data': '<your-s3-path>', 'words': sys.argv[1:], 'place': os.environ['PLACE']}
bucket = # your bucket
(x_train, _), _ = data.load_data()
steps = len(absent)
"""
FITS = """
%%time
from sagemaker.tensorflow import TensorFlow
inputs = sagemaker.Session().upload_data('data', bucket=bucket)
estimator = TensorFlow(entry_point='train.py', role='any', instance_count=1, instance_type='ml.m5.large',
                       framework_version='2.12', py_version='py310', hyperparameters={'rate': rate, **own})
display(estimator.fit(inputs))
raise SystemExit('not reached')
"""
REFUSED = "from sagemaker.processing import Processor\nProcessor()\n"
OTHERS = "def main():\n    open('absent')\n\nif __name__ == '__main__':\n    main()\n"


def notebook(*cells):
    found = [{"cell_type": "code", "source": cell.strip().splitlines(keepends=True)} for cell in cells]
    return json.dumps({"cells": found})


def test_programs_pass_fail_or_have_another_reason(tmp_path, monkeypatch):
    checkout = tmp_path / "checkouts" / "notebooks"
    (checkout / "code").mkdir(parents=True)
    (checkout / "code" / "train.py").write_text("print(1)\n")
    (checkout / "code" / "passes.ipynb").write_text(notebook(TRAINS, FITS))
    (checkout / "code" / "own failure.ipynb").write_text(notebook(TRAINS, REFUSED, FITS))
    (checkout / "code" / "another.py").write_text(OTHERS)
    given = {"rate": 0.5, "argv": ["-x"], "environment": {"PLACE": "here"}}
    programs = ["code/passes.ipynb", "code/own failure.ipynb", "code/another.py"]
    repository = {"name": "owner/notebooks", "revision": "0123456789", "programs": programs, "given": given}
    monkeypatch.setattr(v2_programs_suite, "read_repositories", lambda: [repository])
    monkeypatch.setenv(sources.CHECKOUTS, str(tmp_path / "checkouts"))
    (tmp_path / "work").mkdir()
    found = v2_programs_suite.run(tmp_path / "work")
    assert found["notebooks@0123456:code/passes.ipynb"] is None
    assert found["notebooks@0123456:code/own failure.ipynb"].startswith("'Processor()': NotIncludedError: scriptmode")
    assert found["notebooks@0123456:code/another.py"].startswith("no request; \"open('absent')\": FileNotFoundError")
    (results,) = [json.loads((tmp_path / "work" / "results.json").read_text())]
    request = results[0]["request"]
    own = {"rate": "0.5", "name": '"filled-in"', "data": '"s3://filled-in"', "words": '["-x"]', "place": '"here"'}
    assert own.items() <= request["HyperParameters"].items()
    assert request["InputDataConfig"][0]["DataSource"]["S3DataSource"]["S3Uri"] == "s3://filled-in/data"
    assert [failure["own"] for failure in results[0]["failures"]] == [False]
