"""Damage to the files of a job's folder: by kind, what is done to one file. Seeded: the same seed does the same."""

import json
import os
import shutil

#: Values of every JSON type, and some that are JSON and hardly anything else.
VALUES = [
    None, True, 0, -1, 7, 10**19, -(10**18), 1.5, 1e300, float("inf"), float("nan"), "", "x", "../../x", "\ud800", "\x1b]0;x\x07",
    "file:///nowhere", "s3://", [], ["x"], [[[]]], {}, {"x": 1}, {"": None},
]  # fmt: skip


def erase(path):
    """Remove whatever is at a path."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def replaced(put):
    """Return the damage that puts something else, by ``put(path)``, in a file's place."""
    return lambda path, _: (erase(path), put(path))


def content(change):
    """Return the damage that makes other bytes, by ``change(bytes, rng)``, of a file's."""

    def damage(path, rng):
        changed = change(path.read_bytes() if path.is_file() else b"{}", rng)
        erase(path)
        path.write_bytes(changed)

    return damage


def record(change):
    """Return the damage that makes another text, by ``change(value, rng)``, of a record in JSON."""

    def change_text(text, rng):
        try:
            value = json.loads(text)
        except ValueError:
            value = {"x": 1}
        return change(value, rng).encode()

    return content(change_text)


def flipped(text, rng):
    changed = bytearray(text)
    for _ in range(3):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def mutated(value, rng):
    """Put another value in the place of one of a record's."""
    places = list(_places(value))
    if not places:
        return json.dumps(rng.choice(VALUES))
    parent, key = rng.choice(places)
    if rng.random() < 0.2:
        del parent[key]
    else:
        parent[key] = rng.choice(VALUES)
    return json.dumps(value)


def with_huge_numbers(value, _):
    """Make every number of a record one that no integer and no clock can hold."""
    root = [value]
    for parent, key in _places(root):
        if isinstance(parent[key], (int, float)) and not isinstance(parent[key], bool):
            parent[key] = "HUGE"
    return json.dumps(root[0]).replace('"HUGE"', "9" * 5000)


def nested(value, rng):
    """Nest one value of a record, as deep as the parser just takes."""
    parent, key = rng.choice(list(_places(value)) or [([0], 0)])
    parent[key] = "NESTED"
    return json.dumps(value).replace('"NESTED"', "[" * 900 + "]" * 900)


def directory(path):
    path.mkdir()
    (path / "x").write_text("x")


def sparse(path):
    with path.open("wb") as file:
        file.truncate(2**27)


def drafts(path, _):
    """Leave a draft beside a file, as a process that was killed while it wrote does."""
    if path.parent.is_dir():
        path.with_name(".scriptmode-new-left").write_bytes(b"{")


KINDS = {
    "empty": content(lambda *_: b""), "NUL bytes": content(lambda *_: bytes(4096)),
    "truncated": content(lambda text, rng: text[: rng.randrange(max(1, len(text)))]),
    "noise": content(lambda _, rng: rng.randbytes(rng.randrange(1, 4000))), "flipped bits": content(flipped),
    "not UTF-8": content(lambda *_: b'{"name": "\xff\xfe"}'), "a list": content(lambda *_: b"[]"),
    "a string": content(lambda *_: b'"x"'), "very deep": content(lambda *_: b"[" * 200_000), "nested": record(nested),
    "huge numbers": record(with_huge_numbers), "mutated": record(mutated), "mutated again": record(mutated),
    "missing": lambda path, _: erase(path), "a directory": replaced(directory), "a FIFO": replaced(os.mkfifo),
    "a dangling link": replaced(lambda path: path.symlink_to("nowhere")),
    "a link to itself": replaced(lambda path: path.symlink_to("state.json")),
    "a device": replaced(lambda path: path.symlink_to("/dev/zero")), "128 MB of nothing": replaced(sparse),
    "a draft beside": drafts,
}  # fmt: skip


def _places(value):
    """Yield every place within a record that holds a value."""
    for key, each in list(
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield value, key
        yield from _places(each)
