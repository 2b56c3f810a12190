"""Objects of an S3 server below a mount, named and sharded as in a channel's listing."""

import errno
import random
import subprocess

import pytest
from fakes.processes import until

from scriptmode.data import listing
from scriptmode.data.channel_source import ChannelSource
from scriptmode.data.fast_file import ObjectTree
from scriptmode.data.stores import Stores

pytestmark = pytest.mark.slow

MIB = 1024 * 1024


@pytest.fixture
def mounted(views, tmp_path):
    """Mount what one of some hosts gets of a prefix; give the place and the view."""

    def mount(uri, host=0, count=1, **fields):
        source = ChannelSource("train", "FastFile", "S3Prefix", uri, **fields)
        place = tmp_path / f"algo-{host + 1}" / "train"
        place.parent.mkdir()

        def make():
            store_of = Stores().store_of
            entries = listing.entries(source, store_of, epoch=0, host=host, count=count, spool=tmp_path)
            return ObjectTree(entries, store_of)

        return place, views.mount(make, place)

    return mount


def test_files_are_the_objects_byte_for_byte(s3, mounted):
    contents = {
        "data/large": random.Random(1).randbytes(21 * MIB + 3),
        "data/below/a b+c%20ü": b"odd",
        "data/empty": b"",
        "other/x": b"not of the channel",
    }
    s3.bucket("fast-files", contents)
    place, view = mounted("s3://fast-files/data/")
    found = {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}
    assert found == {key[len("data/") :]: content for key, content in contents.items() if key.startswith("data/")}
    done = subprocess.run(["tail", "-c", "1000", place / "large"], capture_output=True, check=True)
    assert done.stdout == contents["data/large"][-1000:]
    view.poll()
    assert (view.unreadable, view.error) == ([], None)


def test_hosts_of_a_sharded_channel_see_their_own_objects(s3, mounted):
    s3.bucket("fast-shards", {f"data/{number}": b"x" for number in range(5)})
    shares = []
    for host in range(2):
        place, _ = mounted("s3://fast-shards/data", host, 2, is_sharded=True)
        shares.append({path.name for path in place.iterdir()})
    assert shares[0] | shares[1] == set("01234")
    assert not shares[0] & shares[1]


@pytest.mark.parametrize("change", ["changed", "deleted"])
def test_a_changed_object_is_the_jobs_failure_reason(s3, mounted, change):
    bucket = s3.bucket(f"fast-{change}", {"data/a": b"content", "data/b": b"content"})
    place, view = mounted(f"s3://{bucket}/data/")
    assert (place / "b").read_bytes() == b"content"
    if change == "changed":
        s3.client.put_object(Bucket=bucket, Key="data/a", Body=b"CONTENT")
    else:
        s3.client.delete_object(Bucket=bucket, Key="data/a")
    with pytest.raises(OSError) as caught:
        (place / "a").read_bytes()
    assert caught.value.errno == errno.EIO
    until(lambda: view.poll() or view.unreadable)
    assert len(view.unreadable) == 1
    assert view.unreadable[0].startswith(f"s3://{bucket}/data/a: ")
