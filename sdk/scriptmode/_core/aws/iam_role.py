"""IAM roles: the ARN that a name stands for, and the role that this notebook or instance has."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from scriptmode._core.aws.session import Connection
from scriptmode._core.spec.hosts import LOCAL_ROLE_ARN
from scriptmode._core.spec.names import account_of_role
from scriptmode.errors import CredentialsError, JobNotFoundError, invalid

_ASSUMED = re.compile(r"arn:aws[a-z-]*:sts::\d{12}:assumed-role/([^/]+)/.+")
_ROLE_NAME = re.compile(r"[\w+=,.@/-]+", re.ASCII)
#: Where SageMaker's notebooks and Studio say what they run as.
_METADATA = Path("/opt/ml/metadata/resource-metadata.json")


def resolve_role_arn(role: str, connection: Connection) -> str:
    """Return the ARN of a role given by its ARN, its name or its path and name; a name is looked up in IAM.

    Raises `SpecError` for what cannot be a role, `CredentialsError` where IAM may not be asked.
    """
    if account_of_role(role) is not None:
        return role
    if role in connection.role_arns:
        return connection.role_arns[role]
    if not _ROLE_NAME.fullmatch(role):
        what = f"{role!r} is neither a role's name nor its ARN"
        raise invalid("role", what, "give one, as 'arn:aws:iam::<account>:role/<name>'")
    name = role.rsplit("/", 1)[-1]
    try:
        answer = connection.call(f"role {role!r}", lambda: connection.client("iam").get_role(RoleName=name))
    except JobNotFoundError as error:
        raise invalid("role", f"{role!r} is not a role of this account", "give its name or its ARN") from error
    except CredentialsError as error:
        if error.argument == "region":  # which a job with the role's ARN needs too
            raise
        advice = "or give the role's ARN, which is not looked up"
        raise CredentialsError(f"{error}", advice, argument=error.argument) from error
    return connection.role_arns.setdefault(role, str(answer["Role"]["Arn"]))


def get_execution_role(sagemaker_session: object = None) -> str:
    """Return the ARN of the IAM role of this SageMaker notebook, or of the session's credentials.

    Without AWS credentials it is the role of jobs on this machine, which Amazon SageMaker does not accept.

    Args:
        sagemaker_session: A session as the estimators take it; by default boto3's own settings.

    Raises:
        CredentialsError: The credentials are those of an IAM user, or AWS does not accept them.
    """
    return find_execution_role(sagemaker_session)


def find_execution_role(sagemaker_session: Any = None, *, metadata: Path = _METADATA) -> str:
    """Return the role of `get_execution_role`; ``metadata`` is the file that SageMaker writes on its notebooks."""
    is_local = getattr(sagemaker_session, "local_mode", False)
    connection = Connection(None if is_local else sagemaker_session)
    about: Any = {}
    with suppress(OSError, ValueError):
        about = json.loads(metadata.read_text(encoding="utf-8"))
    about = about if isinstance(about, dict) else {}
    if about.get("ExecutionRoleArn"):
        return str(about["ExecutionRoleArn"])
    if is_local or (sagemaker_session is None and not connection.credentials_source):
        return LOCAL_ROLE_ARN
    notebook = about.get("ResourceName")
    if notebook and "DomainId" not in about:
        description = connection.call(
            f"notebook instance {notebook}",
            lambda: connection.client("sagemaker").describe_notebook_instance(NotebookInstanceName=notebook),
        )
        return str(description["RoleArn"])
    arn = connection.caller_identity()["Arn"]
    if account_of_role(arn) is not None:
        return arn
    assumed = _ASSUMED.fullmatch(arn)
    if assumed is None:
        raise CredentialsError(f"the credentials in use are {arn}, which is not a role", "give role= to the estimator")
    return resolve_role_arn(assumed.group(1), connection)
