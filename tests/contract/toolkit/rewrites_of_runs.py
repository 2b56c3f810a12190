"""What each difference does to the toolkit's record of a run: its launcher's end, and what the script saw."""

import json
import os
import string
from pathlib import Path
from typing import Any

from contract.explained import AND_MORE

#: ``exit``, ``failure``, ``success``, ``given`` and ``script`` of a run; ``cluster`` of an answer.
Record = dict[str, Any]


def env(record):
    """Give the script's variables, to be changed; none where no script was started."""
    return (record.get("script") or {}).get("env", {})


def given(record):
    return record.get("given", {})


def started(record):
    return bool(record.get("script"))


def run(record, *argv):
    """Promise that the script runs well, where the toolkit refuses."""
    record.update(exit=0, failure=False, script={AND_MORE: "", **({"argv": [*argv]} if argv else {})})


def refuse(record):
    record.update(exit=1, failure=True, script=None)


def edit_training_env(record, edit):
    variables = env(record)
    if "SM_TRAINING_ENV" in variables:
        document = json.loads(variables["SM_TRAINING_ENV"])
        edit(document)
        variables["SM_TRAINING_ENV"] = spelled(document)


def spelled(document):
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


TUNING, MODEL_DIR = "_tuning_objective_metric", "model_dir"
ADAPTERS = ("S3_REGION", "S3_USE_HTTPS", "TF_CPP_MIN_LOG_LEVEL")
#: What the toolkit takes in a program's name, if neither "-" nor "/" comes first and no part is "." or "..".
PLAIN = {*string.ascii_letters, *string.digits, *"._+-/"}
#: Where our launcher has modules of AWS's images.
FALLBACK = Path(__file__).parents[3] / "entrypoints" / "scriptmode_runtime" / "fallback"
NO_INTERPRETER = "executable: no interpreter named"


def _is_plain(program):
    odd_parts = {"", ".", ".."} & {*program.split("/")}
    return {*program} <= PLAIN and not odd_parts and not program.startswith(("-", "+"))


def _arguments(case):
    """Give the script's arguments where every hyperparameter is a text or a number."""
    values = {key: json.loads(text) for key, text in case.hyperparameters.items() if not key.startswith("sagemaker_")}
    return [word for key in sorted(values) for word in (f"--{key}" if len(key) > 1 else f"-{key}", str(values[key]))]


# --- the script's variables --------------------------------------------------------------------
def python_path(_case, record):
    theirs = env(record).get("PYTHONPATH", "").split(os.pathsep)
    promise = [theirs[0], *given(record).get("PYTHONPATH", "").split(os.pathsep)]
    if "PYTHONPATH" in env(record) and set(promise) <= set(theirs):
        env(record)["PYTHONPATH"] = os.pathsep.join([*promise, str(FALLBACK)])


def path(_case, record):
    if "PATH" in env(record):
        env(record)["PATH"] = f"{Path(given(record)['PYTHON']).parent}:{given(record)['PATH']}"


def unbuffered(_case, record):
    if given(record) and started(record):
        env(record)["PYTHONUNBUFFERED"] = "1"


def unproxied(case, record):
    if given(record) and started(record):
        hosts = ",".join([*case.resources["hosts"], "localhost", "127.0.0.1"])
        env(record).update(dict.fromkeys(("no_proxy", "NO_PROXY", "no_grpc_proxy"), hosts))


def threads(case, record):
    if case.cpus == 1 and started(record):
        env(record).update(OMP_NUM_THREADS="1", TF_NUM_INTRAOP_THREADS="1", TF_NUM_INTEROP_THREADS="2")


def name(case, record):
    variables = env(record)
    known = case.variables.get("TRAINING_JOB_NAME") or variables.get("SAGEMAKER_JOB_NAME")
    if known and variables:
        variables["SAGEMAKER_JOB_NAME"] = known
        edit_training_env(record, lambda document: document.update(job_name=known))


def region(case, record):
    if env(record).get("SAGEMAKER_REGION") == "":
        env(record)["SAGEMAKER_REGION"] = case.variables.get("AWS_REGION", "")


def processors(case, record):
    if case.cpus:
        env(record)["SM_NUM_CPUS"] = str(case.cpus)
        edit_training_env(record, lambda document: document.update(num_cpus=case.cpus))


def adapters(_case, record):
    for variable in ADAPTERS:
        env(record).pop(variable, None)


def tuning(case, record):
    shared = json.loads(case.hyperparameters.get(MODEL_DIR, '""'))
    if TUNING not in case.hyperparameters or not shared or shared.startswith("/opt/ml") or _own(case, record, shared):
        return
    own = f"{shared}/{case.variables['TRAINING_JOB_NAME']}/model"
    text = json.dumps(record["script"])
    for before, after in ((f'"{shared}"', f'"{own}"'), (f'\\"{shared}\\"', f'\\"{own}\\"')):
        text = text.replace(before, after)
    record["script"] = json.loads(text)


def _own(case, record, shared):
    return env(record).get("SM_HP_MODEL_DIR") != shared


def tuning_without(case, record):
    if TUNING not in case.hyperparameters or MODEL_DIR in case.hyperparameters or not started(record):
        return
    variables = env(record)
    if variables.pop("SM_HP_MODEL_DIR", None) is None:
        return
    at = record["script"]["argv"].index("--model_dir")
    del record["script"]["argv"][at : at + 2]
    variables["SM_USER_ARGS"] = spelled(record["script"]["argv"][1:])
    left = {key: value for key, value in json.loads(variables["SM_HPS"]).items() if key != MODEL_DIR}
    variables["SM_HPS"] = spelled(left)
    edit_training_env(record, lambda document: document.update(hyperparameters=left))


# --- what is run ---------------------------------------------------------------------------------
def equals_sign(case, record):
    if any("=" in key for key in case.hyperparameters) and not started(record):
        run(record, case.program, *_arguments(case))


def too_large(case, record):
    if sum(len(str(text)) for text in case.hyperparameters.values()) > 128 * 1024 and not started(record):
        run(record, case.program, *_arguments(case))


def level_by_name(case, record):
    if json.loads(case.hyperparameters.get("sagemaker_container_log_level", "20")) == "DEBUG":
        run(record, case.program)


def odd_name(case, record):
    if case.program in case.code and not _is_plain(case.program):
        run(record, f"./{case.program}" if case.program.startswith("-") else case.program, *_arguments(case))


def no_interpreter(case, record):
    if case.id == NO_INTERPRETER:
        refuse(record)


def module_in_a_folder(case, record):
    if "setup.py" in case.code and "/" in case.program and not started(record):
        run(record)


def project(case, record):
    if "pyproject.toml" in case.code and started(record):
        script = record["script"]
        script["argv"][0] = f"{script['cwd']}/{case.program}"


def requirements(case, record):
    if "requirements.txt" in case.code and not case.program.endswith(".py") and started(record):
        record["script"]["required"] = "wanted"


# --- where the source comes from ---------------------------------------------------------------
def not_compressed(case, record):
    if case.id == "source: archive that is not compressed":
        run(record, case.program)


def leads_outside(case, record):
    if case.id.startswith("source: archive") and case.id.endswith("leads outside"):
        refuse(record)


def file_address(case, record):
    if json.loads(case.hyperparameters.get("sagemaker_submit_directory", '""')).startswith("file://"):
        run(record, case.program)


def files_of_the_image(case, record):
    if case.id == "source: archive, and files of the image":
        run(record, case.program)
    elif case.id == "source: archive, and the image's program":
        record["script"]["code"] = ["- inner/part.py", "- train.py", "x tool"]


def by_variable(case, record):
    if "SAGEMAKER_SUBMIT_DIRECTORY" in case.variables and not started(record):
        run(record, case.program)


# --- how it ends -------------------------------------------------------------------------------
def exit_code(case, record):
    if case.ends and record.get("exit") == 1:
        record["exit"] = case.ends


def launchers_failure(_case, record):
    if record.get("exit", 0) > 1 and not started(record):
        record["exit"] = 1


def left_out(case, record):
    if case.id == "platform: no inputdataconfig.json":
        run(record, case.program)


def success(_case, record):
    if "success" in record:
        record["success"] = False


def folders(_case, record):
    if started(record) and "folders" in record["script"]:
        record["script"]["folders"] = ["model", "output/data", "output/intermediate"]


def earlier_failure(case, record):
    if case.id == "end: well, with an earlier failure file":
        record["failure"] = False
