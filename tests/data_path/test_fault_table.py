"""Every fault of S3 in an input mode, in one object or two of nine: exact bytes, or an error with the true cause."""

from __future__ import annotations

import itertools
import random
import re
from dataclasses import dataclass
from functools import partial
from typing import Callable

import pytest
from fakes.faulty_s3 import Fault
from fakes.processes import until
from fakes.views import tree

from scriptmode.errors import DataError
from scriptmode_local._data import staging
from scriptmode_local._data.prefetch import prefetch
from scriptmode_local._data.s3_store import S3Store

#: The longest limit of the product is that of a read of a mount, two minutes.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SIZE = 40_000
BAD = ("2", "7")
CONTENTS = {str(number): random.Random(number).randbytes(SIZE) for number in range(9)}
#: Seconds of retries and of a connection without a byte; generous where no fault waits for them.
SETTINGS = {"retry_seconds": 20.0, "stall": 8.0}
WAITING = ("stalls", "bytes a second")
#: Faults that end with the retries.
RETRIED = ("each time", "bytes a second", "no answer", "each byte", "150 headers", "too few")


@dataclass(frozen=True)
class Row:
    """A fault of each damaged object: ``respond`` gets the server, the request and the number of this object's GETs."""

    respond: Callable
    #: The error's text, a regular expression; "" where the bytes must be exact.
    cause: str = ""
    #: Whether the bytes may be exact as well, where one of the two clients does not need what is wrong.
    may_be_exact: bool = False


def always(fault):
    return lambda _server, _request, _count: fault


def once(fault):
    return lambda _server, _request, count: fault if count == 1 else None


def rest(fault):
    """Break the first response, and answer the request for the rest with a fault."""
    return lambda _server, request, count: (
        Fault(cut=True, at=1000) if count == 1 else fault if request.span else Fault(cut=True, at=1000)
    )


def delete(server, request, _):
    server.contents.pop(request.key, None)


def overwrite(server, request, count):
    if count == 1:
        server.contents[request.key] = CONTENTS[request.key][::-1]


ROWS = {
    "a bit flips once": Row(once(Fault(flip=77))),
    "a bit flips alike at each read": Row(always(Fault(flip=77)), r"bytes are not the object's: their MD5 is \w+, but the ETag is \"\w+\""),
    "another bit flips at each read": Row(lambda _s, _r, count: Fault(flip=count), r"their MD5 is \w+, but the ETag is \"\w+\", twice|their MD5 is \w+, but the ETag"),
    "the connection closes once": Row(once(Fault(cut=True, at=30_000))),
    "the connection closes each time": Row(always(Fault(cut=True, at=0)), rf"broke: .*\b0 (bytes )?read, .*{SIZE}"),
    "the connection closes after each byte": Row(always(Fault(cut=True, at=1)), r"broke: .*\b1 (bytes )?read, "),
    "the connection stalls once": Row(once(Fault(stall=True, at=30_000))),
    "the connection stalls each time": Row(always(Fault(stall=True, at=0)), "broke: .*Read timed? ?out|the answer was not complete after"),
    "some bytes a second": Row(always(Fault(rate=20)), r"too slow: \d+ bytes came in \d+ s, and at least 1,024 a second were expected"),
    "no answer": Row(always(Fault(cut=True)), "broke: Connection was closed before"),
    "throttled once": Row(once(Fault(status=503, code="SlowDown"))),
    "throttled each time": Row(always(Fault(status=503, code="SlowDown")), "S3 answered SlowDown"),
    "access denied": Row(always(Fault(status=403, code="AccessDenied")), "access denied"),
    "a page with status 200": Row(always(Fault(page=b"<html>Log in</html>")), rf"S3 returned 19 bytes, status 200 and type text/html, where {SIZE:,} bytes were expected"),
    "a page as long as the object": Row(always(Fault(page=b"x" * SIZE)), r"their MD5 is \w+, but the ETag is"),
    "150 headers": Row(always(Fault(headers=150)), "broke: Connection was closed before", may_be_exact=True),
    "no ETag": Row(always(Fault(etag=""))),
    "a weak ETag": Row(lambda server, request, _: Fault(etag=f"W/{server.etag(request.key)}"), r"S3 returned a weak ETag, W/\"\w+\" where \"\w+\" was expected"),
    "another ETag": Row(always(Fault(etag='"other"')), r"the object was changed .*\(ETag \"\w+\" at first; it has the ETag \"other\" now\)"),
    "no length": Row(always(Fault(endless=True))),
    "no length, and too few bytes": Row(always(Fault(endless=True, cut=True, at=0)), rf"\b0 (bytes )?read, .*{SIZE}"),
    "no length, and too many bytes": Row(always(Fault(endless=True, excess=b"?" * 50)), rf"S3 returned more than {SIZE:,} bytes where {SIZE:,} bytes were expected"),
    "a range without Content-Range": Row(rest(Fault(without_range=True)), rf"S3 returned an answer without a range, status 206, where bytes \d+-{SIZE - 1} were expected"),
    "all of it instead of a range": Row(rest(Fault(ignores_range=True)), rf"S3 returned an answer without a range, status 200, where bytes \d+-{SIZE - 1} were expected"),
    "another range": Row(rest(Fault(shift=-1)), rf"S3 returned the range 'bytes \d+-\d+/{SIZE}' where bytes \d+-{SIZE - 1} were expected"),
    "another size": Row(rest(Fault(resize=7)), rf"the object was changed .*; it has {SIZE + 7:,} bytes now, and had {SIZE:,}\)", may_be_exact=True),
    "deleted": Row(lambda *given: Fault(act=lambda: delete(*given)), "the object was deleted while the job read its channel"),
    "deleted in the middle": Row(
        lambda *given: Fault(cut=True, at=1000) if given[2] == 1 else Fault(act=lambda: delete(*given)),
        "the object was deleted while the job read its channel",
    ),
    "overwritten": Row(lambda *given: Fault(act=lambda: overwrite(*given)), r"the object was changed .*; it has the ETag \"\w+\" now\)"),
}  # fmt: skip


def file_mode(entries, _views, folder):
    names = staging.fetch(entries, folder / "data", lambda *_: None, stores=OneStore())
    return {name: (folder / "data" / name).read_bytes() for name in names}


def pipe_mode(entries, _views, _folder):
    store, found = S3Store(**SETTINGS), {name: b"" for _, name in entries}
    for chunk in prefetch(lambda _: store, iter([item for item, _ in entries])):
        found[chunk.uri.rpartition("/")[2]] += bytes(chunk.data)
    return found


def fast_file_mode(entries, views, folder):
    view = views.mount(partial(tree, entries, partial(S3Store, **SETTINGS)), folder / "train")
    try:
        return {name: (folder / "train" / name).read_bytes() for _, name in entries}
    except OSError as error:
        until(lambda: view.poll() or view.unreadable)
        raise DataError(view.unreadable[0]) from error


class OneStore(staging.Stores):
    """Stores with an `S3Store` that ends its retries soon."""

    def __init__(self):
        super().__init__()
        self._opened[False] = S3Store(**SETTINGS)


MODES = {"File": file_mode, "Pipe": pipe_mode, "FastFile": fast_file_mode}
#: Every fault in one mode, in turns alone and among nine objects; the other cells are for the thorough tier.
CELLS = [
    pytest.param(
        row, mode, count, marks=[] if (number % 3, number % 2) == (at, count == 1) else [pytest.mark.thorough], id=f"{name}-{mode}-{count}"
    )
    for (number, (name, row)), (at, mode), count in itertools.product(enumerate(ROWS.items()), enumerate(MODES), (1, 9))
]  # fmt: skip


@pytest.mark.parametrize(("row", "mode", "count"), CELLS)
def test_a_fault_costs_time_or_fails_with_its_cause(server, views, tmp_path, request, monkeypatch, row, mode, count):  # noqa: PLR0917
    if any(word in request.node.callspec.id for word in WAITING):
        monkeypatch.setitem(SETTINGS, "stall", 1.0)
    if any(word in request.node.callspec.id for word in RETRIED):
        monkeypatch.setitem(SETTINGS, "retry_seconds", 0.8)
    server.contents = {key: CONTENTS[key] for key in (CONTENTS if count > 1 else BAD[:1])}
    store = S3Store()
    entries = [(item, item.uri.rpartition("/")[2]) for item in store.objects("s3://bkt/")]
    gets = dict.fromkeys(BAD, 0)

    def respond(asked):
        if not asked.is_get or asked.key not in BAD:
            return None
        gets[asked.key] += 1
        return row.respond(server, asked, gets[asked.key])

    server.fault = respond
    found, error = outcome(lambda: MODES[mode](entries, views, tmp_path))
    if error is None:
        assert row.may_be_exact or not row.cause
        assert found == {key: CONTENTS[key] for _, key in entries}
    else:
        assert row.cause, error
        assert re.search(rf"^s3://bkt/[{''.join(BAD)}]: .*({row.cause})", str(error)), error


def outcome(read):
    try:
        return read(), None
    except DataError as error:
        return None, error
