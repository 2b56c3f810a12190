"""Streams of records, written from the formats' descriptions."""

import struct

MAGIC = struct.pack("<I", 0xCED7230A)


def crc32c(data):
    """Bit by bit, so that it shares nothing with what is tested."""
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = (register >> 1) ^ (0x82F63B78 * (register & 1))
    return register ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17 & 0xFFFFFFFF)) + 0xA282EAD8) & 0xFFFFFFFF)


def tf_record(record):
    length = struct.pack("<Q", len(record))
    return length + masked(length) + record + masked(record)


def recordio_part(flag, data):
    return MAGIC + struct.pack("<I", flag << 29 | len(data)) + data + bytes(-len(data) % 4)


def recordio(record):
    """One record; where a multiple of 4 holds the magic it is split there."""
    parts, begin = [], 0
    for at in range(0, len(record) - 3, 4):
        if at >= begin and record[at : at + 4] == MAGIC:
            parts.append(record[begin:at])
            begin = at + 4
    parts.append(record[begin:])
    if len(parts) == 1:
        return recordio_part(0, record)
    flags = [1, *[2] * (len(parts) - 2), 3]
    return b"".join(map(recordio_part, flags, parts))


def line(record):
    return record + b"\n"


FORMATS = {"TFRecord": tf_record, "RecordIO": recordio, "TextLine": line}


def stream(record_format, records):
    return b"".join(map(FORMATS[record_format], records))
