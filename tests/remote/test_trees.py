"""What a `TreeSender` sends, a `TreeReceiver` has: whatever a script does to its files, and nothing outside the roots."""

import os
import shutil

import pytest

from scriptmode_local._remote.frames import FrameReader, send_frame
from scriptmode_local._remote.trees import TreeReceiver, TreeSender


class Ends:
    """Two directories with a stream of frames between them."""

    def __init__(self, folder):
        self.here, self.there = folder / "here", folder / "there"
        (self.here / "out").mkdir(parents=True)
        self.there.mkdir()
        incoming, outgoing = os.pipe()
        os.set_blocking(incoming, False)
        self._outgoing = os.fdopen(outgoing, "wb", buffering=0, closefd=False)
        self._reader = FrameReader(os.fdopen(incoming, "rb", buffering=0, closefd=False))
        self.receiver = TreeReceiver(self.there, folder / "drafts", ["out"])
        self.sender = TreeSender(self.here, self.send)

    def send(self, kind, content=b"", **fields):
        """Send one frame and receive it."""
        # In pieces that a pipe takes.
        for piece, is_last in pieces(content):
            last = {"last": is_last and fields["last"]} if "last" in fields else {}
            send_frame(self._outgoing, kind, piece, **{**fields, **last})
            for frame in self._reader.read():
                self.receiver.receive(frame)

    def sync(self):
        """Send what changed; return both trees, which must be the same."""
        self.sender.send_tree("out")
        here, there = tree(self.here), tree(self.there)
        assert here == there
        return there


def pieces(content, size=32 << 10):
    parts = [content[start : start + size] for start in range(0, len(content), size)] or [b""]
    return [(part, number == len(parts)) for number, part in enumerate(parts, 1)]


def tree(folder):
    """The files, directories and links below a folder, by their paths."""
    found = {}
    for path in folder.rglob("*"):
        key = str(path.relative_to(folder))
        if path.is_symlink():
            found[key] = "link", os.readlink(path)  # noqa: PTH115 - as it is
        elif path.is_dir():
            found[key] = ("directory",)
        else:
            found[key] = "file", path.read_bytes(), path.stat().st_mode
    return found


@pytest.fixture
def ends(tmp_path):
    return Ends(tmp_path)


def test_hostile_names_empty_directories_and_links_arrive(ends):
    out = ends.here / "out"
    (out / "empty" / "deeper").mkdir(parents=True)
    (out / "new\nline 'quoted\" \u00e4\U0001f40d").write_text("x")
    (out / os.fsdecode(b"not \xff\xfe UTF-8")).write_bytes(b"\0" * 100_000)
    (out / "outside").symlink_to("/etc/passwd")
    (out / "above").symlink_to("../../..")
    (out / "to itself").symlink_to("to itself")
    (out / "program").write_text("#!/bin/sh\n")
    (out / "program").chmod(0o750)
    found = ends.sync()
    assert len(found) == 9
    os.mkfifo(out / "pipe")
    ends.sender.send_tree("out")
    assert tree(ends.there) == found


def test_what_comes_below_a_link_out_of_the_tree_replaces_the_link(ends, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    ends.send("link", path="out/link", target=str(outside))
    ends.send("append", b"x", path="out/link/x")
    ends.send("link", path="out/link", target=str(outside))
    ends.send("file", b"x", path="out/link/x", last=True, mode=0o644, mtime=0)
    assert list(outside.iterdir()) == []
    assert tree(ends.there)["out/link"] == ("directory",)


@pytest.mark.parametrize("change", ["file to directory", "directory to file", "directory to link", "link to directory"])
def test_what_has_become_something_else_arrives(ends, change):
    before, after = change.split(" to ")
    made = ends.here / "out" / "it"

    def make(kind):
        if kind == "file":
            made.write_text(kind)
        elif kind == "link":
            made.symlink_to("/etc")
        else:
            (made / "below" / "deep").mkdir(parents=True)
            (made / "below" / "file").write_text(kind)

    make(before)
    ends.sync()
    shutil.rmtree(made) if before == "directory" else made.unlink()
    make(after)
    ends.sync()


def test_a_file_that_is_replaced_before_it_is_at_rest_is_sent_when_the_next_one_has_its_name(ends):
    def replace(content):
        (ends.here / "draft").write_text(content)
        (ends.here / "draft").replace(ends.here / "out" / "checkpoint")
        ends.sender.send_tree("out", at_rest=True)
        return tree(ends.there).get("out/checkpoint")

    # It may be half written until another file replaces it.
    assert (replace("step 1"), replace("step 2")) == (None, None)
    assert replace("step 3")
    assert (ends.there / "out" / "checkpoint").read_text() == "step 2"
    (ends.here / "out" / "checkpoint").unlink()
    ends.sender.send_tree("out", at_rest=True)
    assert "out/checkpoint" not in tree(ends.there)


def test_removed_directories_are_removed(ends):
    (ends.here / "out" / "a" / "b" / "c").mkdir(parents=True)
    (ends.here / "out" / "a" / "b" / "file").write_text("x")
    (ends.here / "out" / "rest").write_text("x")
    ends.sync()
    shutil.rmtree(ends.here / "out" / "a")
    assert sorted(ends.sync()) == ["out", "out/rest"]
    shutil.rmtree(ends.here / "out")
    ends.sender.send_tree("out")
    assert tree(ends.there) == {"out": ("directory",)}


def test_a_file_that_shrinks_while_it_is_sent_is_sent_again(ends):
    file = ends.here / "out" / "file"
    file.write_bytes(b"1" * 1_000_000)
    send = ends.sender._send

    def shrink(kind, content=b"", **fields):
        if kind == "file" and content and file.stat().st_size == 1_000_000:
            os.truncate(file, 10)
        send(kind, content, **fields)

    ends.sender._send = shrink
    ends.sender.send_tree("out")
    ends.sync()
    assert tree(ends.there)["out/file"][1] == b"1" * 10


@pytest.mark.parametrize(
    "path", ["job.json", "", "/etc/passwd", "out/../job.json", "out/../../job.json", "output", "..", "out/sub/../../x"]
)
@pytest.mark.parametrize("kind", ["file", "directory", "link", "remove", "append"])
def test_a_path_outside_of_the_roots_is_refused(ends, kind, path):
    (ends.there / "job.json").write_text("{}")
    fields = {"file": {"last": True, "mode": 0o644, "mtime": 0}, "link": {"target": "x"}}
    with pytest.raises(OSError, match=r"is none of out|leads out"):
        ends.send(kind, path=path, **fields.get(kind, {}))
    assert tree(ends.there).keys() == {"job.json"}


def test_a_file_that_the_other_end_sent_is_sent_once_it_changes(ends):
    path = ends.here / "out" / "restored"
    path.write_bytes(b"1")
    ends.sender.know("out/restored")
    ends.sender.know("out/missing")
    ends.sender.send_tree("out")
    assert tree(ends.there) == {}
    path.write_bytes(b"12")
    assert ends.sync()["out/restored"][1] == b"12"
