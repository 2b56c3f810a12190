"""What each difference does to the toolkit's record of a cluster of hosts, and of the words of ``mpirun``."""

import json
import shlex

from contract.explained import SOME_TEXT
from contract.toolkit.clusters import NOT_OURS, STRATEGIES

#: Every rank has them from its own host.
OF_THE_HOST = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
OURS_TOO = ("CURRENT_HOST", "PYTHONUNBUFFERED", "SAGEMAKER_JOB_NAME", "SAGEMAKER_REGION")
ALONE = ("btl_tcp_if_include", "oob_tcp_if_include", "plm_rsh_no_tree_spawn")
#: Instance types with an Elastic Fabric Adapter that the toolkit does not know.
NEWER = ("ml.p5en.", "ml.p6-", "ml.trn2.")


def index_of_a_group(case, record):
    server = record.get("cluster", {}).get("ps")
    if server and "sagemaker_distribution_instance_groups" in case.hyperparameters:
        here = f"{case.resources['current_host']}:2223"
        server["task"]["index"] = server["cluster"]["ps"].index(here)


def beside_the_group(_case, record):
    if record.get("cluster", {}).get("error", "").startswith("UnboundLocalError"):
        record["cluster"] = {"TF_CONFIG": None, "ps": None, "mpirun": False}


def not_ours(case, record):
    if any(f"sagemaker_{name}_enabled" in case.hyperparameters for name in NOT_OURS):
        record["cluster"] = {"error": SOME_TEXT}


def two_at_once(case, record):
    switches = {switch for strategy in STRATEGIES.values() for switch in strategy}
    if sum(case.hyperparameters.get(switch) == "true" for switch in switches) > 1:
        record["cluster"] = {"error": SOME_TEXT}


def _mpirun(record):
    return record.get("mpirun", {})


def _without(record, part, *names):
    for name in names:
        _mpirun(record).get(part, {}).pop(name, None)


def wrapper(_case, record):
    if "program" in _mpirun(record):
        _mpirun(record)["program"] = [_mpirun(record)["program"][0], "-m", "scriptmode_runtime.rank"]


def more_variables(_case, record):
    if _mpirun(record):
        _mpirun(record)["exports"].update(dict.fromkeys(OURS_TOO))


def other_hosts(_case, record):
    if len(_mpirun(record).get("hosts", {})) > 1:
        _mpirun(record)["flags"] = sorted({*_mpirun(record)["flags"], "leave-session-attached"})
        _mpirun(record)["mca"]["plm_rsh_agent"] = "/tmp/scriptmode/rsh"
        _mpirun(record)["mca"]["orte_keep_fqdn_hostnames"] = "1"


def only_host(_case, record):
    hosts = _mpirun(record).get("hosts", {})
    if len(hosts) == 1:
        _mpirun(record)["hosts"] = {"localhost": next(iter(hosts.values()))}
        _without(record, "mca", *ALONE)


def more_ranks_than_processors(_case, record):
    if _mpirun(record):
        _mpirun(record)["flags"] = sorted({*_mpirun(record)["flags"], "oversubscribe"})


def no_map(_case, record):
    if _mpirun(record):
        _mpirun(record)["flags"].remove("display-map")


def own_host_name(_case, record):
    _without(record, "exports", "LD_PRELOAD")


def rings(_case, record):
    if _mpirun(record).get("exports", {}).get("NCCL_MIN_NRINGS") == "4":
        _without(record, "exports", "NCCL_MIN_NRINGS")


def library_path(case, record):
    if "LD_LIBRARY_PATH" not in case.variables:
        _without(record, "exports", "LD_LIBRARY_PATH")


def credentials(_case, record):
    _without(record, "exports", *OF_THE_HOST)


def quotes(case, record):
    options = json.loads(case.hyperparameters.get("sagemaker_mpi_custom_mpi_options", '""'))
    if _mpirun(record) and '"' in options:
        # The second half of the value was taken for the program, and all that follows for its arguments.
        _, *rest = _mpirun(record)["program"]
        variable, _, value = shlex.split(options)[1].partition("=")
        exports = _mpirun(record)["exports"]
        exports[variable] = value
        while rest[0] == "-x":
            exports[rest[1]] = None
            rest = rest[2:]
        _mpirun(record)["program"] = rest


def newer_fabric(case, record):
    if _mpirun(record) and str(case.resources.get("current_instance_type")).startswith(NEWER):
        _mpirun(record)["exports"]["FI_PROVIDER"] = "efa"
