"""Every way a channel can arrive, as one table: what is asked for, and what each host must get."""

from __future__ import annotations

import gzip
import itertools
import json
import struct
from dataclasses import dataclass

MAGIC = struct.pack("<I", 0xCED7230A)
OBJECTS = {
    "a/empty": b"", "a/one": b"1", 'b c/it\'s "ü"': "ü".encode() * 700, "b-2": MAGIC + b"abcd" + MAGIC + b"tail",
    "c": bytes(range(256)) * 40, "d": b"unaligned" + MAGIC, "e": b"\x1f\x8b no gzip",
}  # fmt: skip
#: What the manifest names, in its order; an augmented manifest's lines name the same.
NAMED = ("e", "b-2", "a/one", "c", 'b c/it\'s "ü"')
PREFIX, ZIPPED, MANIFEST, AUGMENTED = "plain/", "zipped/", "lists/manifest", "lists/augmented"


@dataclass(frozen=True)
class Cell:
    """One channel of the matrix."""

    mode: str
    data_type: str
    distribution: str
    compression: str = "None"
    wrapper: str = "None"
    seed: int | None = None

    @property
    def name(self):
        """The channel's name, and the test's."""
        parts = [self.mode, self.data_type.removesuffix("File"), self.distribution]
        parts += [part for part in (self.compression, self.wrapper) if part != "None"]
        return "-".join(parts + (["shuffled"] if self.seed is not None else []))

    def channel(self, base):
        """The request's entry; ``base`` is the URI that everything lies below."""
        plain = ZIPPED if self.compression == "Gzip" else PREFIX
        source = {
            "S3DataType": self.data_type,
            "S3Uri": base + {"S3Prefix": plain, "ManifestFile": MANIFEST}.get(self.data_type, AUGMENTED),
            "S3DataDistributionType": self.distribution,
        }
        if self.data_type == "ManifestFile" and self.compression == "Gzip":
            source["S3Uri"] += "-zipped"
        if self.data_type == "AugmentedManifestFile":
            source["AttributeNames"] = ["source-ref", "label"]
        entry = {"ChannelName": self.name, "DataSource": {"S3DataSource": source}, "InputMode": self.mode}
        entry |= {"CompressionType": self.compression, "RecordWrapperType": self.wrapper}
        return entry | ({} if self.seed is None else {"ShuffleConfig": {"Seed": self.seed}})

    def items(self):
        """What the channel holds, in its order: groups of pieces that stay together."""
        if self.data_type == "S3Prefix":
            return [[OBJECTS[name]] for name in sorted(OBJECTS, key=str.encode)]
        if self.data_type == "ManifestFile":
            return [[OBJECTS[name]] for name in NAMED]
        return [[OBJECTS[name], json.dumps(label(name)).encode()] for name in NAMED]

    def share(self, host, count):
        """What one host gets, in order."""
        return self.items()[host::count] if self.distribution == "ShardedByS3Key" else self.items()

    def framed(self, items):
        """The pipe's bytes."""
        pieces = itertools.chain.from_iterable(items)
        return b"".join(wrapped(piece) if self.wrapper == "RecordIO" else piece for piece in pieces)

    def files(self, host, count):
        """The channel's folder: path to bytes."""
        names = sorted(OBJECTS, key=str.encode) if self.data_type == "S3Prefix" else NAMED
        mine = names[host::count] if self.distribution == "ShardedByS3Key" else names
        return {name: OBJECTS[name] for name in mine}


def label(name):
    return {"name": name, "length": len(OBJECTS[name])}


def wrapped(piece):
    """One RecordIO record: cut where the magic stands at a multiple of four."""
    cuts = [at for at in range(0, len(piece) - 3, 4) if piece[at : at + 4] == MAGIC]
    starts, ends = [0, *(at + 4 for at in cuts)], [*cuts, len(piece)]
    parts = [piece[start:end] for start, end in zip(starts, ends)]
    found = b""
    for index, part in enumerate(parts):
        flag = 0 if len(parts) == 1 else 1 if index == 0 else 3 if index == len(parts) - 1 else 2
        found += MAGIC + struct.pack("<I", flag << 29 | len(part)) + part + b"\0" * (-len(part) % 4)
    return found


def stored(base):
    """Everything that lies below ``base``: path to bytes."""
    content = {PREFIX + name: body for name, body in OBJECTS.items()}
    content |= {ZIPPED + name: gzip.compress(body) for name, body in OBJECTS.items()}
    content[MANIFEST] = json.dumps([{"prefix": base + PREFIX}, *NAMED]).encode()
    content[MANIFEST + "-zipped"] = json.dumps([{"prefix": base + ZIPPED}, *NAMED]).encode()
    lines = [{"label": label(name), "source-ref": base + PREFIX + name, "more": 1} for name in NAMED]
    content[AUGMENTED] = "".join(json.dumps(line) + "\n" for line in lines).encode()
    return content


DISTRIBUTIONS = ("FullyReplicated", "ShardedByS3Key")
CELLS = [
    *(Cell(*cell) for cell in itertools.product(("File", "FastFile"), ("S3Prefix", "ManifestFile"), DISTRIBUTIONS)),
    Cell("File", "S3Prefix", "ShardedByS3Key", seed=7),
    Cell("FastFile", "S3Prefix", "ShardedByS3Key", seed=7),
    *(
        Cell("Pipe", *cell)
        for cell in itertools.product(
            ("S3Prefix", "ManifestFile"), DISTRIBUTIONS, ("None", "Gzip"), ("None", "RecordIO"), (None, 7)
        )
    ),
    *(
        Cell("Pipe", "AugmentedManifestFile", distribution, "None", wrapper, seed)
        for distribution, wrapper, seed in itertools.product(DISTRIBUTIONS, ("None", "RecordIO"), (None, 7))
    ),
]
