"""What `import scriptmode` gives, and what it does not load."""

import subprocess
import sys

import scriptmode

PROGRAM = """
import sys

def check(what):
    heavy = {"boto3", "botocore", "obstore", "tensorflow", "numpy", "click"} & set(sys.modules)
    assert not heavy, f"{what} imports {heavy}"

import scriptmode
check("import scriptmode")
from scriptmode import Estimator
Estimator(entry_point="x.py", instance_type="local_process").request("file:///x")
check("a local request")
Estimator("img", "arn:aws:iam::123456789012:role/r", 1, "ml.m5.large", output_path="s3://b").request("s3://b/x")
check("a request to SageMaker")
"""


def test_neither_boto3_nor_tensorflow_is_imported_before_it_is_needed(tmp_path):
    environment = {"PATH": "/usr/bin:/bin", "AWS_REGION": "us-east-1", "SCRIPTMODE_DATA_DIR": str(tmp_path)}
    (tmp_path / "x.py").touch()
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, env=environment, cwd=tmp_path)


def test_every_public_name_is_there_once():
    assert len(scriptmode.__all__) == len(set(scriptmode.__all__))
    assert [name for name in scriptmode.__all__ if not hasattr(scriptmode, name)] == []
