"""What hosts find that are containers, here or elsewhere: ``/opt/ml`` and a network interface ``eth0``. Pure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from scriptmode.platforms import requested_hosts
from scriptmode.platforms.base import PlannedHost
from scriptmode.platforms.opt_ml import Sandbox
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The first interface of a container ("How Amazon SageMaker Provides Training Information").
INTERFACE = "eth0"
#: What stands for a secret that is made when the job starts.
HIDDEN = "******"


def hosts(request: Mapping[str, Any], region: str) -> dict[str, PlannedHost]:
    """Give what each host of Amazon SageMaker would find: a request's own variables, and the service's."""
    variables = {
        contract.REGION_VARIABLE: region,
        contract.JOB_NAME_VARIABLE: str(request["TrainingJobName"]),
        **request.get("Environment", {}),
    }
    if contract.SECRET_VARIABLE in variables:
        variables[contract.SECRET_VARIABLE] = HIDDEN
    return planned(request, variables)


def planned(
    request: Mapping[str, Any], variables: Mapping[str, str], scriptmode: Mapping[str, Any] | None = None
) -> dict[str, PlannedHost]:
    """Give what each host would find, with these variables and, if there is to be one, this cluster file."""
    root = contract.DEFAULT_BASE_DIR
    found = {}
    for group in requested_hosts.groups(request):
        for name in group.hosts:
            sandbox = Sandbox(name, Path(root), root, INTERFACE)
            found[name] = PlannedHost(group.instance_type, root, sandbox.files(request, scriptmode), variables)
    return found
