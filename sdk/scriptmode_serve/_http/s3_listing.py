"""Lists of objects and of uploads in S3's order, that of the UTF-8 bytes of keys, from a server that has directories.

SeaweedFS lists ``a/b`` before ``a-b``, because it compares the names ``a`` and ``a-b`` of one directory; S3 compares
``a/`` and ``a-b``. Directories are listed one by one here. Each waits until no name before its own can follow.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, islice
from typing import Callable, NamedTuple
from urllib.parse import parse_qs, quote, quote_plus, unquote_plus, urlencode
from xml.etree import ElementTree as ET

from scriptmode_serve._http.error_answers import add_texts, encode
from scriptmode_serve._http.s3_requests import SIGNED_URL
from scriptmode_serve._http.wsgi import Environ
from scriptmode_serve._operations.aws_json import ApiError

#: Returns the other server's answer to parameters of ListObjectsV2.
Fetch = Callable[[Mapping[str, str]], ET.Element]
_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
#: Parameters that the answer repeats, by their elements there.
_REPEATED = {
    "prefix": "Prefix",
    "delimiter": "Delimiter",
    "marker": "Marker",
    "key-marker": "KeyMarker",
    "upload-id-marker": "UploadIdMarker",
    "start-after": "StartAfter",
    "continuation-token": "ContinuationToken",
    "encoding-type": "EncodingType",
}
_PARAMETERS = frozenset({*_REPEATED, "list-type", "max-keys", "fetch-owner", "x-id", "uploads", "max-uploads"})
_MOST_KEYS = 1000
#: It follows each character of a key.
_LAST = "\U0010ffff"


class _Item(NamedTuple):
    """An object with its element of the other server's answer, or a common prefix."""

    key: str
    element: ET.Element | None


class Listing(NamedTuple):
    """A request of ListObjects, ListObjectsV2 or ListMultipartUploads."""

    bucket: str
    parameters: Mapping[str, str]

    @property
    def after(self) -> str:
        """The key after which the list begins, or the last one that a common prefix of the page before stands for."""
        delimiter = self.parameters.get("delimiter", "")
        if self.parameters.get("list-type") != "2":
            last = self.parameters.get("key-marker" if "uploads" in self.parameters else "marker", "")
        elif token := self.parameters.get("continuation-token"):
            last = unquote_plus(token)
        else:
            return self.parameters.get("start-after", "")
        is_prefix = delimiter and last.endswith(delimiter) and len(last) > len(self.parameters.get("prefix", ""))
        return f"{last}{_LAST}" if is_prefix else last


def parse_listing(environ: Environ) -> Listing | None:
    """Return the request for a list of objects or uploads; ``None`` for others, such as one for a bucket's policy."""
    path, _, query = environ["REQUEST_URI"].partition("?")
    bucket, _, key = path.lstrip("/").partition("/")
    parameters = {name: values[0] for name, values in parse_qs(query, keep_blank_values=True).items()}
    is_listing = all(name in _PARAMETERS or name.lower() in SIGNED_URL for name in parameters)
    if environ["REQUEST_METHOD"] == "GET" and bucket and not key and is_listing:
        return Listing(bucket, parameters)
    return None


def ordered(listing: Listing, answer: bytes, get: Callable[[str], bytes]) -> bytes:
    """Return an answer of the other server in S3's order, where it is another: of a list that is whole, its own.

    ``get`` returns the other server's answer to a GET.
    """
    if "uploads" in listing.parameters:
        return _list_uploads(listing, get)
    root = ET.fromstring(answer)  # noqa: S314 - of a server that this one started
    is_encoded = "encoding-type" in listing.parameters
    paths = ("{*}Contents/{*}Key", "{*}CommonPrefixes/{*}Prefix")
    lists = [[element.text or "" for element in root.iterfind(path)] for path in paths]
    is_whole = root.findtext("{*}IsTruncated") == "false" and not listing.after
    if is_whole and all(keys == sorted(keys, key=unquote_plus if is_encoded else str) for keys in lists):
        return answer

    def fetch(parameters: Mapping[str, str]) -> ET.Element:
        return ET.fromstring(get(f"/{listing.bucket}?{urlencode(parameters, quote_via=quote)}"))  # noqa: S314 - as above

    return _list_objects(listing, fetch)


def _list_uploads(listing: Listing, get: Callable[[str], bytes]) -> bytes:
    """Return a page of all uploads, those of one key in the order of their times."""
    parameters = listing.parameters
    prefix, marker = parameters.get("prefix", ""), parameters.get("upload-id-marker")
    answer = ET.fromstring(get(f"/{listing.bucket}?uploads&prefix={quote(prefix, safe='')}"))  # noqa: S314 - as above
    uploads = [_Item(upload.findtext("{*}Key") or "", upload) for upload in answer.iterfind("{*}Upload")]
    uploads.sort(key=lambda upload: (upload.key, _text(upload, "Initiated"), _text(upload, "UploadId")))
    first = next((number for number, upload in enumerate(uploads, 1) if _text(upload, "UploadId") == marker), 0)
    # Of a key whose marker is gone, those that were listed are listed again, and none is left out.
    same = marker and parameters.get("key-marker")
    later = uploads[first:] if first else [item for item in uploads if item.key > listing.after or item.key == same]
    wanted = parameters.get("max-uploads") or str(_MOST_KEYS)
    if not (wanted.isascii() and wanted.isdecimal()):
        raise ApiError("InvalidArgument", f"max-uploads is {wanted!r}; it must be a whole number")
    most = min(int(wanted), _MOST_KEYS)
    items = list(islice(_grouped(later, prefix, parameters.get("delimiter", "")), most + 1))
    last = items[:most][-1] if len(items) > most > 0 else None
    spell = quote if parameters.get("encoding-type") == "url" else str
    root = ET.Element("ListMultipartUploadsResult", xmlns=_NAMESPACE)
    add_texts(root, Bucket=listing.bucket, MaxUploads=str(most), IsTruncated=str(bool(last)).lower())
    for name in parameters.keys() & _REPEATED.keys():
        add_texts(root, **{_REPEATED[name]: spell(parameters[name])})
    if last:
        add_texts(root, NextKeyMarker=spell(last.key), NextUploadIdMarker=_text(last, "UploadId"))
    root.extend(_render(item, spell, has_owner=True) for item in items[:most])
    return encode(root)


def _text(item: _Item, name: str) -> str:
    return "" if item.element is None else item.element.findtext(f"{{*}}{name}") or ""


def _list_objects(listing: Listing, fetch: Fetch) -> bytes:
    parameters = listing.parameters
    most = min(int(parameters.get("max-keys") or _MOST_KEYS), _MOST_KEYS)
    is_second = parameters.get("list-type") == "2"
    prefix, delimiter = parameters.get("prefix", ""), parameters.get("delimiter", "")
    items = list(islice(_items(fetch, prefix, delimiter, listing.after), most + 1)) if most else []
    page, is_truncated = items[:most], len(items) > most
    spell = quote if parameters.get("encoding-type") == "url" else str
    root = ET.Element("ListBucketResult", xmlns=_NAMESPACE)
    add_texts(root, Name=listing.bucket, MaxKeys=str(most), IsTruncated=str(is_truncated).lower())
    for name, element in _REPEATED.items():
        if name in parameters:
            add_texts(root, **{element: spell(parameters[name])})
    if is_second:
        add_texts(root, KeyCount=str(len(page)))
    if is_truncated:
        last = page[-1].key
        add_texts(root, **{"NextContinuationToken": quote_plus(last)} if is_second else {"NextMarker": spell(last)})
    for item in page:
        root.append(_render(item, spell, has_owner=not is_second or parameters.get("fetch-owner") == "true"))
    return encode(root)


def _render(item: _Item, spell: Callable[[str], str], *, has_owner: bool) -> ET.Element:
    if item.element is None:
        element = ET.Element("CommonPrefixes")
        add_texts(element, Prefix=spell(item.key))
        return element
    element = ET.Element(item.element.tag.rpartition("}")[2])
    add_texts(element, Key=spell(item.key))
    for child in item.element:
        child.tag = name = child.tag.rpartition("}")[2]
        if name != "Key" and (has_owner or name != "Owner"):
            for part in child.iter():
                part.tag = part.tag.rpartition("}")[2]
            element.append(child)
    return element


def _items(fetch: Fetch, prefix: str, delimiter: str, after: str) -> Iterator[_Item]:
    """Return the objects, and the common prefixes, that follow ``after``."""
    if delimiter == "/":
        return _below(fetch, prefix, after, is_deep=False)
    return _grouped(_below(fetch, prefix, after, is_deep=True), prefix, delimiter)


def _grouped(items: Iterable[_Item], prefix: str, delimiter: str) -> Iterator[_Item]:
    """Yield items, and the common prefixes in place of those that have one."""

    def common_prefix(item: _Item) -> str:
        end = item.key.find(delimiter, len(prefix)) if delimiter else -1
        return item.key[: end + len(delimiter)] if end >= 0 else ""

    for common, group in groupby(items, common_prefix):
        yield from [_Item(common, None)] if common else group


def _below(fetch: Fetch, prefix: str, after: str, *, is_deep: bool) -> Iterator[_Item]:
    """Yield what begins with ``prefix`` and follows ``after``: objects, and directories or what is below them."""
    folder = prefix[: prefix.rfind("/") + 1]
    path = folder + after[len(folder) :].partition("/")[0] if after.startswith(folder) else ""
    if not path and after > folder:
        return
    earlier = [name for name in _earlier_directories(path, len(folder)) if name.startswith(prefix)]
    if not is_deep:
        earlier = [name for name in earlier if any(True for _ in _below(fetch, name, after, is_deep=True))]
    later = (item for item in _entries(fetch, prefix, path) if item.key > after)
    for item in _in_order(earlier, later):
        if item.element is None and is_deep:
            yield from _below(fetch, item.key, after, is_deep=True)
        else:
            yield item


def _in_order(directories: list[str], entries: Iterator[_Item]) -> Iterator[_Item]:
    """Yield directories and the entries of a directory, each when all that precedes it has been yielded."""
    heapq.heapify(directories)
    for item in entries:
        while directories and directories[0] < item.key:
            yield _Item(heapq.heappop(directories), None)
        if item.element is None:
            heapq.heappush(directories, item.key)
        else:
            yield item
    for name in sorted(directories):
        yield _Item(name, None)


def _earlier_directories(path: str, start: int) -> list[str]:
    """Return the directories that may precede a path in the other server's order, and its names follow in S3's."""
    ends = range(start + 1, len(path) + 1)
    return [f"{path[:end]}/" for end in ends if path[end : end + 1] < "/"]


def _entries(fetch: Fetch, prefix: str, after: str) -> Iterator[_Item]:
    """Yield objects and directories that begin with ``prefix``, in the order of the other server's names."""
    while True:
        page = {"prefix": prefix, "delimiter": "/", "start-after": after, "encoding-type": "url", "list-type": "2"}
        answer = fetch({**page, "fetch-owner": "true"})
        items = [_Item(_key(element, "Key"), element) for element in answer.iterfind("{*}Contents")]
        items += [_Item(_key(element, "Prefix"), None) for element in answer.iterfind("{*}CommonPrefixes")]
        items.sort(key=lambda item: (item.key.removesuffix("/"), item.element is None))
        yield from items
        if not items or answer.findtext("{*}IsTruncated") != "true":
            return
        after = items[-1].key.removesuffix("/")


def _key(element: ET.Element, name: str) -> str:
    return unquote_plus(element.findtext(f"{{*}}{name}") or "")
