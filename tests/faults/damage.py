"""Damage to the files of a job's folder: by kind, what is done to one file. Seeded: the same seed does the same."""

import json
import os
import shutil

#: Values of every JSON type, and some that are JSON and hardly anything else.
VALUES = [
    None, True, 0, -1, 7, 10**19, -(10**18), 1.5, 1e300, float("inf"), float("nan"), "", "x", "../../x", "\ud800", "\x1b]0;x\x07",
    "file:///nowhere", "s3://", [], ["x"], [[[]]], {}, {"x": 1}, {"": None},
]  # fmt: skip
HUGE = "9" * 5000


def erase(path):
    """Remove whatever is at a path."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def replaced(content):
    def damage(path, _):
        erase(path)
        path.write_bytes(content)

    return damage


def truncated(path, rng):
    content = path.read_bytes() if path.is_file() else b"{}"
    erase(path)
    path.write_bytes(content[: rng.randrange(max(1, len(content)))])


def noise(path, rng):
    erase(path)
    path.write_bytes(rng.randbytes(rng.randrange(1, 4000)))


def flipped(path, rng):
    content = bytearray(path.read_bytes() if path.is_file() else b"{}")
    for _ in range(3):
        if content:
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    erase(path)
    path.write_bytes(content)


def missing(path, _):
    erase(path)


def directory(path, _):
    erase(path)
    path.mkdir()
    (path / "x").write_text("x")


def fifo(path, _):
    erase(path)
    os.mkfifo(path)


def link(target):
    def damage(path, _):
        erase(path)
        path.symlink_to(target)

    return damage


def sparse(path, _):
    erase(path)
    with path.open("wb") as file:
        file.truncate(2**27)


def mutated(path, rng):
    """Put another value in the place of one of a record's."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        content = {}
    places = list(_places(content))
    if not places:
        content = rng.choice(VALUES)
    else:
        parent, key = rng.choice(places)
        if rng.random() < 0.2:
            del parent[key]
        else:
            parent[key] = rng.choice(VALUES)
    erase(path)
    path.write_text(json.dumps(content))


def numbers(path, _):
    """Make every number of a record one that no integer and no clock can hold."""
    text = path.read_text(errors="replace") if path.is_file() else "0"
    try:
        content = json.loads(text)
    except ValueError:
        content = 0
    erase(path)
    path.write_text(json.dumps(_with_numbers(content)).replace('"HUGE"', HUGE))


def nested(path, rng):
    """Nest one value of a record, as deep as the parser just takes."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        content = {"x": 1}
    places = list(_places(content)) or [([0], 0)]
    parent, key = rng.choice(places)
    parent[key] = "NESTED"
    erase(path)
    path.write_text(json.dumps(content).replace('"NESTED"', "[" * 900 + "]" * 900))


def drafts(path, _):
    """Leave a draft beside a file, as a process that was killed while it wrote does."""
    if path.parent.is_dir():
        path.with_name(".new-left").write_bytes(b"{")


KINDS = {
    "empty": replaced(b""),
    "NUL bytes": replaced(bytes(4096)),
    "truncated": truncated,
    "noise": noise,
    "flipped bits": flipped,
    "not UTF-8": replaced(b'{"name": "\xff\xfe"}'),
    "a list": replaced(b"[]"),
    "an object": replaced(b"{}"),
    "a string": replaced(b'"x"'),
    "null": replaced(b"null"),
    "very deep": replaced(b"[" * 200_000),
    "nested": nested,
    "huge numbers": numbers,
    "mutated": mutated,
    "mutated again": mutated,
    "mutated once more": mutated,
    "missing": missing,
    "a directory": directory,
    "a FIFO": fifo,
    "a dangling link": link("nowhere"),
    "a link to itself": link("state.json"),
    "a device": link("/dev/zero"),
    "128 MB of nothing": sparse,
    "a draft beside": drafts,
}


def _places(value):
    """Yield every place within a record that holds a value."""
    for key, each in list(
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield value, key
        yield from _places(each)


def _with_numbers(value):
    if isinstance(value, dict):
        return {key: _with_numbers(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_numbers(each) for each in value]
    return "HUGE" if isinstance(value, (int, float)) and not isinstance(value, bool) else value
