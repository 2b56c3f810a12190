"""Where scriptmode sends something else than the SageMaker SDK v2, and why: all of it, in one table."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from contract.explained import Difference, promise
from sagemaker_sdk.matrix.case import Case, Made

from scriptmode._core.source import source_archive
from scriptmode._core.spec.hyperparameters import encode_hyperparameters
from scriptmode._core.spec.training_job import Script

Request = dict[str, Any]
#: Where v2 puts a source: a folder of the job's own.
_V2_SOURCE = re.compile(r"s3://[^\"]+/source/sourcedir\.tar\.gz")
#: Where v2 puts a rule's program: below a folder for each upload, and by its name if it is one file.
_V2_PROGRAM = re.compile(r"s3://sagemaker-us-east-1-\d+/[a-z]+/[0-9a-f-]{36}(/(?P<name>[^/]+))?")
_SUBMIT, _MODEL_DIR = "sagemaker_submit_directory", "model_dir"
#: What v2's distributions are called among its hyperparameters.
_LIBRARY = "sagemaker_distributed_dataparallel_"
_SWITCHES = (
    "sagemaker_mpi_", "sagemaker_parameter_server_", "sagemaker_multi_worker_mirrored_strategy_", _LIBRARY,
)  # fmt: skip


def promised(case: Case, request: Request) -> tuple[Request, set[str]]:
    """Return what scriptmode promises for a case, and which differences to v2's request that takes."""
    return promise(DIFFERENCES, case, request)


def _rules(case: Case, kind: str) -> list[Made]:
    return [rule for rule in case.arguments.get("rules", ()) if rule.name.startswith(kind)]


def _modules(case: Case, section: str) -> dict[str, Any]:
    modules = (case.config or {}).get("SageMaker", {}).get("PythonSDK", {}).get("Modules", {})
    return dict(modules.get(section, {}))


def _job_of_config(case: Case) -> dict[str, Any]:
    return dict((case.config or {}).get("SageMaker", {}).get("TrainingJob", {}))


def _no_hook(case: Case, request: Request) -> None:
    asked = case.arguments.get("debugger_hook_config") or _rules(case, "Rule") or _modules(case, "Estimator")
    if not asked:
        request.pop("DebugHookConfig", None)


def _no_profiler(case: Case, request: Request) -> None:
    asked = {"profiler_config", "disable_profiler"} & case.arguments.keys() or _rules(case, "ProfilerRule")
    if not asked and "ProfilerConfig" not in _job_of_config(case):
        request.pop("ProfilerConfig", None)


def _profiler_of_config(case: Case, request: Request) -> None:
    said = {"profiler_config", "disable_profiler"} & case.arguments.keys()
    if not said and _job_of_config(case).get("ProfilerConfig", {}).get("DisableProfiler"):
        request["ProfilerConfig"] = {"DisableProfiler": True}


def _hook_as_asked(case: Case, request: Request) -> None:
    hook = case.arguments.get("debugger_hook_config")
    servers = "parameter_server" in case.arguments.get("distribution", {})
    if hook and case.estimator == "TensorFlow" and (servers or "checkpoint_local_path" in case.arguments):
        (collection,) = hook.named["collection_configs"]
        name, parameters = collection.positional
        request["DebugHookConfig"] = {
            "S3OutputPath": hook.named["s3_output_path"],
            "LocalPath": hook.named["container_local_output_path"],
            "HookParameters": hook.named["hook_parameters"],
            "CollectionConfigurations": [{"CollectionName": name, "CollectionParameters": parameters}],
        }


def _collections_in_order(_case: Case, request: Request) -> None:
    """The cases give them in the order of their names."""
    collections = request.get("DebugHookConfig", {}).get("CollectionConfigurations", [])
    collections.sort(key=lambda collection: collection["CollectionName"])


def _source(case: Case, request: Request) -> None:
    """Name the archive by what is in it, below the code location or the output path."""
    given = case.constructor()
    folder = given.get("source_dir")
    if "entry_point" not in given or str(folder).startswith("s3://"):
        return
    script = Script(given["entry_point"], folder, tuple(given.get("dependencies", ())))
    output = request["OutputDataConfig"]["S3OutputPath"].rstrip("/")
    where = given.get("code_location", f"{output}/scriptmode/source").rstrip("/")
    uri = f"{where}/{source_archive.read_source(script).digest}/sourcedir.tar.gz"
    hyperparameters = request["HyperParameters"]
    hyperparameters[_SUBMIT] = _V2_SOURCE.sub(uri, hyperparameters[_SUBMIT])
    for channel in request.get("InputDataConfig", ()):
        stored = channel["DataSource"].get("S3DataSource", {})
        if channel["ChannelName"] == "code":
            stored["S3Uri"] = _V2_SOURCE.sub(uri, stored["S3Uri"])


def _program_of_rule(case: Case, request: Request) -> None:
    """Name a rule's program by what is in it, below the code location or the output path."""
    place = case.constructor().get("code_location", f"{request['OutputDataConfig']['S3OutputPath']}/scriptmode/source")
    rules = [*request.get("DebugRuleConfigurations", ()), *request.get("ProfilerRuleConfigurations", ())]
    for rule in rules:
        uri = rule.get("RuleParameters", {}).get("source_s3_uri", "")
        found = _V2_PROGRAM.fullmatch(uri)
        if found:
            file = Path(found["name"] or "part.py")
            root = file if found["name"] else Path("library", file)
            content = root.read_bytes()
            digest = hashlib.sha256(f"{file}\0{len(content)}\0".encode() + content).hexdigest()
            end = f"/{file}" if found["name"] else ""
            rule["RuleParameters"]["source_s3_uri"] = f"{place}/{digest}{end}"


def _name_of_packed_source(case: Case, request: Request) -> None:
    packed = str(case.arguments.get("source_dir"))
    if packed.startswith("s3://") and case.arguments.get("enable_network_isolation"):
        request["HyperParameters"][_SUBMIT] = json.dumps(f"/opt/ml/input/data/code/{packed.rpartition('/')[2]}")


def _code_as_files(_case: Case, request: Request) -> None:
    for channel in request.get("InputDataConfig", ()):
        if channel["ChannelName"] == "code" and request["AlgorithmSpecification"]["TrainingInputMode"] != "File":
            channel["InputMode"] = "File"


def _mode_of_the_channel(case: Case, request: Request) -> None:
    if isinstance(case.inputs, Made) and "input_mode" in case.inputs.named:
        request["AlgorithmSpecification"]["TrainingInputMode"] = case.arguments.get("input_mode", "File")


def _json_for_one_file(case: Case, request: Request) -> None:
    given = case.constructor()
    if case.estimator == "Estimator" and "entry_point" in given and "source_dir" not in given:
        values = {
            key: getattr(value, "positional", [value])[0] for key, value in given.get("hyperparameters", {}).items()
        }
        request["HyperParameters"].update(encode_hyperparameters(values, script_mode=True))


def _enabled_alone(_case: Case, request: Request) -> None:
    hyperparameters = request.get("HyperParameters", {})
    for switch in _SWITCHES:
        if hyperparameters.get(f"{switch}enabled") == "false":
            options = [key for key in hyperparameters if key.startswith(switch)]
            for key in [*options, *(["sagemaker_instance_type"] if switch == _LIBRARY else [])]:
                del hyperparameters[key]


def _own_model_dir(case: Case, request: Request) -> None:
    own = case.arguments.get("hyperparameters", {})
    if case.estimator == "TensorFlow" and _MODEL_DIR in own:
        request["HyperParameters"][_MODEL_DIR] = json.dumps(own[_MODEL_DIR])


def _no_encryption(case: Case, request: Request) -> None:
    if case.arguments.get("encrypt_inter_container_traffic") is False:
        request.pop("EnableInterContainerTrafficEncryption", None)


def _no_slash(_case: Case, request: Request) -> None:
    for field in ("OutputDataConfig", "DebugHookConfig", "ProfilerConfig"):
        place = request.get(field, {})
        if "S3OutputPath" in place:
            place["S3OutputPath"] = place["S3OutputPath"].rstrip("/")


def _nothing_empty(_case: Case, request: Request) -> None:
    for key, value in list(request.items()):
        if isinstance(value, dict):
            _nothing_empty(_case, value)
        if value in ({}, []):
            del request[key]


DIFFERENCES = [
    Difference("debugger's hook unasked", "v2 sends a DebugHookConfig with every job; we when asked",
               "the hook is code in the image, which AWS's images of today lack, and it writes to the user's bucket",
               _no_hook),
    Difference("profiler unasked", "v2 sends a ProfilerConfig with every job; we when asked",
               "it makes the service sample every host and write to the user's bucket", _no_profiler),
    Difference("profiler by the config file", "v2's Estimator passes over DisableProfiler in the config file; its "
               "TensorFlow obeys it, and so do we", "the file's author said it for every job", _profiler_of_config),
    Difference("debugger's hook taken away", "v2's TensorFlow drops the hook of a job with parameter servers or with a "
               "checkpoint_local_path; we send it", "what was asked for in so many words does not go in silence",
               _hook_as_asked),
    Difference("order of collections", "v2 sends the hook's collections in a set's order; we as they were given",
               "the same call gives the same request", _collections_in_order),
    Difference("place of the source", "v2 stores the source once a job; we once a content, below the output path",
               "a second job with the same source uploads nothing", _source),
    Difference("place of a rule's program", "v2 stores a rule's local program once a job, in the default bucket; we once a "
               "content, where the source goes", "a second job uploads nothing, and no other bucket is needed",
               _program_of_rule),
    Difference("name of a packed source", "under network isolation v2 looks for sourcedir.tar.gz; we for its own name",
               "the channel brings the object by its own name, so v2's job does not find it", _name_of_packed_source),
    Difference("one input's mode", "v2 makes the mode of an only TrainingInput the job's too; we leave it the channel's",
               "the channel's mode decides; the model's and the code's channels keep the job's", _mode_of_the_channel),
    Difference("code in Pipe mode", "v2 has the code channel in the job's input mode; we in File mode",
               "a source that arrives in a pipe cannot be unpacked by the container", _code_as_files),
    Difference("hyperparameters of one file", "v2's Estimator spells them by str() without a source_dir; we in JSON",
               "it writes its own in JSON beside them, and the container decodes all of them as JSON",
               _json_for_one_file),
    Difference("distributions that are disabled", "v2 says that they are, options and all; we say nothing",
               "the container reads a missing switch as false", _enabled_alone),
    Difference("model_dir among the hyperparameters", "v2's TensorFlow overwrites the caller's; we keep it",
               "it is the caller's", _own_model_dir),
    Difference("encryption refused", "v2 lets the config file's encryption win over the caller's False; we do not",
               "an argument says it for this job, the file for all", _no_encryption),
    Difference("slash at the end", "v2 sends a place as it is; we without the slash at its end",
               "the service puts one of its own behind it", _no_slash),
    Difference("empty members", "v2 sends empty lists and objects; we leave them out", "they say nothing",
               _nothing_empty),
]  # fmt: skip
