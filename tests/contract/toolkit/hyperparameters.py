"""Hyperparameters of every type, of odd names and of odd texts."""

from __future__ import annotations

import json

from contract.toolkit.case import Case, encoded

TEXTS = {
    "blanks": " two  blanks ",
    "quotes": 'it\'s "quoted" `here`',
    "shell": "$HOME; $(touch x) && a | b > c * ? [a-z] {1,2} ~ # !",
    "backslash": "back\\slash \\n",
    "percent": "100%20 %s %d {0}",
    "newline": "first\nsecond\r\n\tthird",
    "unicode": "données-図-😀-\u00a0-\u202e",
    "option": "--help",
    "dash": "-",
    "equals": "a=b,c=d",
    "empty": "",
    "long": "x" * 2500,
}
RAW = {
    "plain": "words as they are",
    "broken": "{broken",
    "python": "None",
    "capital": "True",
    "commas": "1,2,3",
    "path": "s3://bucket/key",
    "zeros": "007",
    "hexadecimal": "0x10",
    "underscore": "1_000",
    "quote": '"open',
    "blank": " ",
    "nothing": "",
    "padded": ' {"a": 1} ',
}
NUMBERS = {
    "whole": "3",
    "minus": "-3",
    "minus_zero": "-0",
    "fraction": "0.10",
    "round": "1.0",
    "exponent": "1e-07",
    "large_exponent": "1E+22",
    "large": str(2**70),
    "endless": "9" * 4400,
    "not_a_number": "NaN",
    "endless_float": "-Infinity",
    "whole_text": '"3"',
    "fraction_text": '"0.10"',
    "true_text": '"true"',
    "null_text": '"null"',
}
NAMES = [
    "a",
    "Z",
    "9",
    "learning-rate",
    "a.b.c",
    "UPPER",
    "with blank",
    "größe",
    "ß",
    "図",
    "a/b",
    "-x",
    "--y",
    "semi;colon",
    "it's",
]
NESTED = {"b": [1, 2.5, None, True, "x y"], "a": {"z": None, "y": {"x": "'"}}, "é": False, "": 0}

CASES = [
    Case("hyperparameters: none"),
    Case("hyperparameters: types", encoded(t=True, flag=False, none=None, number=3, rate=0.1, text="words")),
    Case("hyperparameters: lists", encoded(empty=[], numbers=[1, 2.5], texts=["a b", "it's", "図"], deep=[[1], {"a": [2]}])),
    Case("hyperparameters: objects", encoded(empty={}, unsorted={"b": 2, "a": 1}, nested=NESTED)),
    Case("hyperparameters: texts", encoded(**TEXTS)),
    Case("hyperparameters: texts that are no JSON", RAW),
    Case("hyperparameters: numbers", NUMBERS),
    Case("hyperparameters: not texts in the file", {"number": 3, "flag": True, "none": None, "list": [1, "a"], "object": {"a": 1}}),
    Case("hyperparameters: names", {name: json.dumps(name) for name in NAMES}),
    Case("hyperparameters: names that differ in case", encoded(Rate=1, rate=2, RATE=3)),
    Case("hyperparameters: names that differ in case, turned round", encoded(rate=1, RATE=2, Rate=3)),
    Case("hyperparameters: a name that is empty", {"": '"value"', "z": "1"}),
    Case("hyperparameters: a name with an equals sign", {"a=b": "1", "z": "2"}),
    Case("hyperparameters: names like variables of the toolkit's", encoded(hosts="mine", channels=1, num_cpus=99, hps="x")),
    Case("hyperparameters: surrogates that stand for bytes", {"text": '"\\udc80"'}),
    Case("hyperparameters: half a character", {"text": '"\\ud800"'}),
    Case("hyperparameters: a zero byte", {"text": '"a\\u0000b"'}),
    Case("hyperparameters: too many for one variable", {f"key{n}": json.dumps("x" * 2400) for n in range(90)}),
    Case("hyperparameters: reserved", {
        **encoded(sagemaker_enable_cloudwatch_metrics=False, sagemaker_instance_type="ml.m5.large", sagemaker_=1),
        **encoded(sagemaker_estimator_class_name="TensorFlow", sagemaker_mpi_enabled=False, default_user_module_name="m"),
    }),
    Case("hyperparameters: log level", encoded(sagemaker_container_log_level=10)),
    Case("hyperparameters: log level by name", encoded(sagemaker_container_log_level="DEBUG")),
    Case("hyperparameters: model_dir", encoded(model_dir="s3://bucket/job/model")),
    Case("hyperparameters: tuning", encoded(_tuning_objective_metric="loss", rate=0.5)),
    Case(
        "hyperparameters: tuning with a model_dir",
        encoded(_tuning_objective_metric="loss", model_dir="s3://bucket/model", sagemaker_job_name="tuner"),
        variables={"TRAINING_JOB_NAME": "tuning-7"},
    ),
    Case(
        "hyperparameters: tuning with a model_dir of the host's",
        encoded(_tuning_objective_metric="loss", model_dir="/opt/ml/model"),
    ),
]  # fmt: skip
