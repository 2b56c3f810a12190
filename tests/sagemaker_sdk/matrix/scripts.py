"""Cases of the program: where its source is, its hyperparameters, how it is spread, which TensorFlow runs it."""

from __future__ import annotations

from sagemaker_sdk.matrix.case import LEFT_OUT, Case, Maker, image, script, tensorflow
from sagemaker_sdk.matrix.hosts import NO_INSTANCES, SERVERS, WORKERS

PACKED = "s3://bucket/code/sourcedir.tar.gz"
SOURCES = {
    "one file": {"entry_point": "code/train.py", "source_dir": LEFT_OUT},
    "a program below the folder": {"entry_point": "inner/other.py", "source_dir": "code"},
    "dependencies": {"dependencies": ["library", "single.py"]},
    "one file and dependencies": {"entry_point": "code/train.py", "source_dir": LEFT_OUT, "dependencies": ["library"]},
    "packed already": {"source_dir": PACKED},
    "packed already under isolation": {"source_dir": PACKED, "enable_network_isolation": True},
    "packed by another name under isolation": {
        "source_dir": "s3://bucket/code/model-1.tar.gz", "enable_network_isolation": True,
    },
    "code location": {"code_location": "s3://sources/below"},
    "code location with a slash": {"code_location": "s3://sources/below/"},
    "code location and isolation": {"code_location": "s3://sources", "enable_network_isolation": True},
    "code location and no output path": {"code_location": "s3://sources", "output_path": LEFT_OUT},
    "log level": {"container_log_level": 10},
    "shell script": {"entry_point": "train.sh"},
}  # fmt: skip

#: What v2 takes for each class: without a script any key and value by str(), with one what JSON carries.
HYPERPARAMETERS = {
    "numbers": {"epochs": 5, "rate": 0.001, "tiny": 1e-12, "huge": 10**30, "negative": -0.0},
    "texts": {
        "name": "données-图-😀", "clé": "ü", "empty": "", "json": '{"a": 1}', "number": "5", "quotes": 'it\'s "so"',
    },
    "booleans": {"yes": True, "no": False},
    "nothing": {"none": None},
    "lists": {"units": [64, 32, 0.5], "mixed": [1, "a", None, True, [2]], "empty": []},
    "dicts": {"optimizer": {"name": "adam", "betas": [0.9, 0.999], "nested": {"a": None}}, "empty": {}},
    "names": {"k": 1, "with-dash": 2, "with.dot": 3, "UPPER_case": 4, "learning rate": 5},
    "NumPy's floats": {"rate": Maker("numpy.float64")(0.1)},
    "of the toolkit": {"sagemaker_s3_output": "s3://b/o", "sagemaker_requirements": "other.txt"},
}  # fmt: skip
IN_A_SCRIPT = {**HYPERPARAMETERS, "tuples": {"shape": (28, 28)}}
ALONE = {**HYPERPARAMETERS, "NumPy's numbers": {"n": Maker("numpy.int64")(3)}, "reserved": {"sagemaker_program": "x"}}

MPI = {"enabled": True}
DISTRIBUTIONS = {
    "parameter servers": {"parameter_server": {"enabled": True}},
    "MPI": {"mpi": MPI},
    "MPI with options": {"mpi": {**MPI, "processes_per_host": 4, "custom_mpi_options": "-x A='b c' --NCCL_DEBUG=INFO"}},
    "MPI disabled": {"mpi": {"enabled": False, "processes_per_host": 2}},
    "parameter servers disabled": {"parameter_server": {"enabled": False}},
}
#: v2 wants to know the version even where an image is given.
MIRRORED = {"mirrored": {"multi_worker_mirrored_strategy": {"enabled": True}}}
MODEL_DIRS = {
    "model_dir": {"model_dir": "s3://bucket/models/a"},
    "model_dir on the host": {"model_dir": "/opt/ml/model"},
    "no model_dir": {"model_dir": False},
    "model_dir under MPI": {"distribution": {"mpi": MPI}},
    "model_dir as a hyperparameter": {"hyperparameters": {"model_dir": "s3://bucket/mine"}},
    "model_dir in the default bucket": {"output_path": LEFT_OUT},
}
#: framework_version, py_version, instance_type
IMAGES = [
    ("2.19.0", "py312", "ml.m5.xlarge"), ("2.19.0", "py312", "ml.g5.xlarge"), ("2.18.0", "py310", "ml.p4d.24xlarge"),
    ("2.16", "py310", "ml.c5.xlarge"), ("2.14", "py310", "ml.p3.2xlarge"), ("2.11.0", "py39", "ml.m5.xlarge"),
    ("2.9.2", "py39", "ml.p3.16xlarge"), ("2.4.1", "py37", "ml.m5.xlarge"), ("2.1.0", "py3", "ml.p2.xlarge"),
    ("1.15.5", "py37", "ml.p3.2xlarge"), ("1.15.2", "py2", "ml.m5.xlarge"), ("1.14", "py3", "ml.m5.xlarge"),
]  # fmt: skip


def cases() -> list[Case]:
    old = {"image_uri": LEFT_OUT, "framework_version": "2.14.1", "py_version": "py310"}
    groups = {**NO_INSTANCES, "instance_groups": [WORKERS, SERVERS]}
    return [
        *(kind(f"source: {name}", given) for name, given in SOURCES.items() for kind in (script, tensorflow)),
        *(image(f"hyperparameters: {name}", {"hyperparameters": given}) for name, given in ALONE.items()),
        *(kind(f"hyperparameters: {name}", {"hyperparameters": given})
          for name, given in IN_A_SCRIPT.items() for kind in (script, tensorflow)),
        script("hyperparameters and one file", {**SOURCES["one file"], "hyperparameters": {
            key: value for given in IN_A_SCRIPT.values() for key, value in given.items()}}),
        *(tensorflow(f"distribution: {name}", {"distribution": given, "instance_count": 2})
          for name, given in DISTRIBUTIONS.items()),
        *(tensorflow(f"distribution: {name}", {"distribution": given, "framework_version": "2.9", "py_version": "py39"})
          for name, given in MIRRORED.items()),
        tensorflow("MPI in one group", {**groups, "distribution": {"mpi": MPI, "instance_groups": [WORKERS]}}),
        *(tensorflow(name, given) for name, given in MODEL_DIRS.items()),
        *(tensorflow(f"TensorFlow {version} on {type_}", {
            "image_uri": LEFT_OUT, "framework_version": version, "py_version": python, "instance_type": type_})
          for version, python, type_ in IMAGES),
        tensorflow("a version and an image", {"framework_version": "2.14.1", "py_version": "py310"}),
        tensorflow("a Python and an image", {"py_version": "py310"}),
        tensorflow("AWS's own library disabled", {
            **old, "instance_type": "ml.p3.16xlarge",
            "distribution": {"smdistributed": {"dataparallel": {"enabled": False}}}}),
        tensorflow("a version and metrics not stored", {**old, "enable_sagemaker_metrics": False}),
        tensorflow("the job's name by a version", old, fit={}),
    ]  # fmt: skip
