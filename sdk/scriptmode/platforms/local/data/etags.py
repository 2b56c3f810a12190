"""Whether what was read is what the store has, by the one checksum that S3 always gives: the ETag.

The ETag of an object that was stored in one go is its content's MD5, unless it is encrypted with a key of KMS or of
the client's; then it looks the same (Object, S3 API). Some stores that are not S3 write other ETags.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Callable

from scriptmode.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scriptmode.platforms.local.data.objects import Buffer, Stored

_MD5 = re.compile(r'"([0-9a-f]{32})"')


class ETags:
    """What is known of a store's ETags after some objects; safe to share between threads.

    ``is_plain`` asks the store whether an object is stored so that its ETag is an MD5.
    """

    def __init__(self, is_plain: Callable[[Stored], bool]) -> None:
        self._is_plain = is_plain
        self._are_md5s = False
        self._are_others = False

    def check(self, item: Stored, content: Callable[[], Iterable[Buffer]], read_again: Callable[[], None]) -> None:
        """Raise `DataError` unless ``content`` is the object's; where it seems not to be, ``read_again``."""
        if not self.tells(item):
            return
        first = _etag(content())
        if first == item.version:
            self._are_md5s = True
            return
        if not self._is_plain(item):
            self._are_others = True
            return
        read_again()
        second = _etag(content())
        if second == first and not self._are_md5s:
            # The same content twice, and no ETag of this store was an MD5 yet: so they are something else.
            self._are_others = True
        elif second != item.version:
            raise DataError(
                f"{item.uri}: the bytes that came are not the object's: their MD5 is {second} where the ETag is "
                f"{item.version}, twice; store the object anew"
            )

    def tells(self, item: Stored) -> bool:
        """Say whether an object's content can be checked."""
        return not self._are_others and _MD5.fullmatch(item.version) is not None


def _etag(content: Iterable[Buffer]) -> str:
    # MD5 tells broken bytes from whole ones here; nothing secret hangs on it.
    digest = hashlib.new("md5", usedforsecurity=False)
    for part in content:
        digest.update(part)
    return f'"{digest.hexdigest()}"'
