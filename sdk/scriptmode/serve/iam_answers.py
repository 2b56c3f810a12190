"""Answers of IAM that clients need before they start a job: every role exists, and may do everything. Pure.

The SageMaker SDK v3 looks at a role's trust policy, and simulates its policies.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import quote
from xml.etree import ElementTree as ET

from scriptmode.core.spec.hosts import LOCAL_ACCOUNT
from scriptmode.serve.error_answers import add_texts, encode

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMESPACE = "https://iam.amazonaws.com/doc/2010-05-08/"
_TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}


def simulate(fields: Mapping[str, list[str]]) -> bytes:
    """Return the answer to SimulatePrincipalPolicy that every action is allowed."""
    root = ET.Element("SimulatePrincipalPolicyResponse", xmlns=_NAMESPACE)
    result = ET.SubElement(root, "SimulatePrincipalPolicyResult")
    add_texts(result, IsTruncated="false")
    found = ET.SubElement(result, "EvaluationResults")
    for key, values in fields.items():
        if key.startswith("ActionNames.member."):
            member = ET.SubElement(found, "member")
            add_texts(member, EvalActionName=values[0], EvalResourceName="*", EvalDecision="allowed")
    return _render(root)


def describe_role(name: str) -> bytes:
    """Return the answer to GetRole for a role that SageMaker may assume."""
    root = ET.Element("GetRoleResponse", xmlns=_NAMESPACE)
    role = ET.SubElement(ET.SubElement(root, "GetRoleResult"), "Role")
    add_texts(
        role,
        Path="/",
        RoleName=name,
        RoleId="AROASCRIPTMODE",
        Arn=f"arn:aws:iam::{LOCAL_ACCOUNT}:role/{name}",
        CreateDate="2020-01-01T00:00:00Z",
        AssumeRolePolicyDocument=quote(json.dumps(_TRUST)),
    )
    return _render(root)


def _render(root: ET.Element) -> bytes:
    add_texts(ET.SubElement(root, "ResponseMetadata"), RequestId="00000000-0000-0000-0000-000000000000")
    return encode(root)
