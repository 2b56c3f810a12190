"""CBOR (RFC 8949) as far as AWS's protocol Smithy RPC v2 uses it: botocore asks CloudWatch by it since 1.40. Pure."""

from __future__ import annotations

import struct
from datetime import datetime

from scriptmode.serve.aws_json import ApiError, to_seconds

_UNSIGNED, _NEGATIVE, _BYTES, _TEXT, _LIST, _MAP, _TAG, _SIMPLE = range(8)
_FALSE, _TRUE, _NULL, _UNDEFINED, _BREAK = 20, 21, 22, 23, 31
_HALF, _SINGLE, _DOUBLE = 25, 26, 27
_FLOATS = {_HALF: struct.Struct(">e"), _SINGLE: struct.Struct(">f"), _DOUBLE: struct.Struct(">d")}
_INDEFINITE = 31
#: Additional information up to which it is the number itself, and the sizes of longer numbers.
_LARGEST_SHORT, _SIZES = 23, {24: 1, 25: 2, 26: 4, 27: 8}
#: The tag of seconds since the epoch.
_EPOCH = 1
_DEEPEST = 32
_END = object()


def encode(value: object) -> bytes:
    """Return a value of an answer in CBOR; a time is seconds since the epoch."""
    if isinstance(value, list):
        return _head(_LIST, len(value)) + b"".join(map(encode, value))
    if isinstance(value, dict):
        return _head(_MAP, len(value)) + b"".join(encode(key) + encode(each) for key, each in value.items())
    if isinstance(value, str):
        text = value.encode()
        return _head(_TEXT, len(text)) + text
    if isinstance(value, datetime):
        return _head(_TAG, _EPOCH) + _encode_number(to_seconds(value))
    return _encode_number(value)


def _encode_number(value: object) -> bytes:
    if isinstance(value, bool):
        return _head(_SIMPLE, _TRUE if value else _FALSE)
    if isinstance(value, int):
        return _head(_UNSIGNED, value) if value >= 0 else _head(_NEGATIVE, -1 - value)
    if isinstance(value, float):
        return bytes([_SIMPLE << 5 | _DOUBLE]) + struct.pack(">d", value)
    raise TypeError(f"{value!r} is not a value of an answer")


def decode(content: bytes) -> object:
    """Return the value of a request in CBOR; raise `ApiError` for other bytes. A tag is left out."""
    try:
        value, end = _Decoder(content).read(0, 0)
    except (IndexError, struct.error, UnicodeDecodeError, TypeError) as error:
        raise _invalid() from error
    if end != len(content) or value is _END:
        raise _invalid()
    return value


def _head(kind: int, number: int) -> bytes:
    if number <= _LARGEST_SHORT:
        return bytes([kind << 5 | number])
    info, size = next((info, size) for info, size in _SIZES.items() if number < 1 << 8 * size)
    return bytes([kind << 5 | info]) + number.to_bytes(size, "big")


class _Decoder:
    """A decoder of one request."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def read(self, position: int, depth: int) -> tuple[object, int]:
        """Return the value at a position, and the position after it."""
        if depth > _DEEPEST:
            raise _invalid()
        kind, info = self._content[position] >> 5, self._content[position] & 31
        position += 1
        if kind == _SIMPLE:
            return self._simple(info, position)
        if info == _INDEFINITE:
            return self._indefinite(kind, position, depth)
        number, position = self._number(info, position)
        if kind in (_UNSIGNED, _NEGATIVE):
            return (number if kind == _UNSIGNED else -1 - number), position
        if kind in (_BYTES, _TEXT):
            end = position + number
            if end > len(self._content):
                raise _invalid()
            content = self._content[position:end]
            return (content.decode() if kind == _TEXT else content), end
        if kind == _TAG:
            return self.read(position, depth + 1)
        items: list[object] = []
        for _ in range(number * (2 if kind == _MAP else 1)):
            item, position = self.read(position, depth + 1)
            items.append(item)
        return (dict(zip(items[::2], items[1::2])) if kind == _MAP else items), position

    def _number(self, info: int, position: int) -> tuple[int, int]:
        if info <= _LARGEST_SHORT:
            return info, position
        if info not in _SIZES:
            raise _invalid()
        end = position + _SIZES[info]
        if end > len(self._content):
            raise _invalid()
        return int.from_bytes(self._content[position:end], "big"), end

    def _simple(self, info: int, position: int) -> tuple[object, int]:
        if info in _FLOATS:
            return _FLOATS[info].unpack_from(self._content, position)[0], position + _FLOATS[info].size
        values = {_FALSE: False, _TRUE: True, _NULL: None, _UNDEFINED: None, _BREAK: _END}
        if info not in values:
            raise _invalid()
        return values[info], position

    def _indefinite(self, kind: int, position: int, depth: int) -> tuple[object, int]:
        """Return a list, map or text whose parts end with a break."""
        items: list[object] = []
        while True:
            item, position = self.read(position, depth + 1)
            if item is _END:
                break
            items.append(item)
        if kind == _MAP:
            return dict(zip(items[::2], items[1::2])), position
        if kind == _LIST:
            return items, position
        if kind == _TEXT:
            return "".join(map(str, items)), position
        raise _invalid()


def _invalid() -> ApiError:
    return ApiError("SerializationException", "The body is not CBOR.")
