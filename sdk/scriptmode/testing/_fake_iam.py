"""The fake's AWS IAM and AWS STS: its roles, and the caller's identity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scriptmode.testing._fake_account import FakeAccount
from scriptmode.testing._service_calls import ServiceError
from scriptmode_serve._http.other_services import describe_role


def get_role(account: FakeAccount, arguments: Mapping[str, Any]) -> dict[str, object]:
    """Return a role of the account."""
    name = arguments["RoleName"]
    if name not in account.roles:
        raise ServiceError("NoSuchEntity", f"The role with name {name} cannot be found.", 404)
    return {"Role": {**describe_role(account.roles[name]), "CreateDate": account.clock.start}}


def get_caller_identity(account: FakeAccount, _arguments: Mapping[str, Any]) -> dict[str, object]:
    """Return the caller of the account."""
    return {"UserId": "AIDAFAKEFAKEFAKEFAKE", "Account": account.account, "Arn": account.caller_arn}
