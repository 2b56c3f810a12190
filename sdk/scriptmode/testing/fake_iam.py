"""The fake's AWS IAM and AWS STS: its roles, and the caller's identity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scriptmode.serve.other_services import describe_role
from scriptmode.testing.fake_account import FakeAccount
from scriptmode.testing.service_calls import Operation, ServiceError


class FakeIdentity:
    """The operations on IAM's roles, and STS's operation on the caller."""

    def __init__(self, account: FakeAccount) -> None:
        self._account = account
        self.role_operations: dict[str, Operation] = {"get_role": self._get}
        self.caller_operations: dict[str, Operation] = {"get_caller_identity": self._caller}

    def _get(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        name = arguments["RoleName"]
        arn = self._account.roles.get(name)
        if arn is None:
            raise ServiceError("NoSuchEntity", f"The role with name {name} cannot be found.", 404)
        return {"Role": {**describe_role(arn), "CreateDate": self._account.clock.start}}

    def _caller(self, _arguments: Mapping[str, Any]) -> dict[str, Any]:
        account = self._account.account
        return {"UserId": "AIDAFAKEFAKEFAKEFAKE", "Account": account, "Arn": self._account.caller_arn}
