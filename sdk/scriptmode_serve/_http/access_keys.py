"""The access keys of a server: once there is one, each request must be signed with one of them."""

from __future__ import annotations

import json
import secrets
import string
from pathlib import Path
from typing import NamedTuple

from scriptmode._core.machine.data_dir import default_data_dir, make_private, unwritable_error
from scriptmode._core.text.messages import did_you_mean
from scriptmode.errors import DataError
from scriptmode_local._data import regular_files
from scriptmode_local._data.durable import replace_file

#: The length and the characters of AWS's own keys. (IAM User Guide, "IAM identifiers")
_ID_PREFIX, _ID_CHARACTERS, _ID_LENGTH = "AKIA", string.ascii_uppercase + "234567", 16
_SECRET_BYTES = 30


class AccessKey(NamedTuple):
    """An access key, as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY have it."""

    identifier: str
    secret: str


def random_key() -> AccessKey:
    """Return a key of random characters, which no server knows yet."""
    name = "".join(secrets.choice(_ID_CHARACTERS) for _ in range(_ID_LENGTH))
    return AccessKey(_ID_PREFIX + name, secrets.token_urlsafe(_SECRET_BYTES))


class AccessKeys:
    """The access keys of one data directory, by default this user's, in a file that only its user can read."""

    def __init__(self, data_dir: Path | None = None) -> None:
        self._data_dir = data_dir = data_dir or default_data_dir()
        self._file = data_dir / "server" / "keys.json"

    def create(self) -> AccessKey:
        """Create a key, which a running server accepts at once; raise `DataError`."""
        key = random_key()
        self._write({**self.read(), key.identifier: key.secret})
        return key

    def delete(self, identifier: str) -> None:
        """Delete a key; raise `DataError` where it does not exist."""
        keys = self.read()
        if identifier not in keys:
            raise DataError(f"there is no access key {identifier!r}", advice=did_you_mean(identifier, keys))
        self._write({name: secret for name, secret in keys.items() if name != identifier})

    def read(self) -> dict[str, str]:
        """Return the secrets by the keys' identifiers; raise `DataError` for a file that cannot be read."""
        try:
            return {str(name): str(secret) for name, secret in regular_files.read_json(self._file).items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError) as error:
            raise DataError(
                f"the access keys cannot be read: {self._file}: {error}", advice="remove the file, and create new keys"
            ) from error

    def _write(self, keys: dict[str, str]) -> None:
        try:
            make_private(self._file.parent, self._data_dir)
            replace_file(self._file, json.dumps(keys).encode(), directory=True)
        except OSError as error:
            raise unwritable_error(self._data_dir, error) from error
