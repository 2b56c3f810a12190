"""What each difference does to the toolkit's record of a cluster of hosts."""

from contract.explained import SOME_TEXT
from contract.toolkit.clusters import NOT_OURS, STRATEGIES


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
