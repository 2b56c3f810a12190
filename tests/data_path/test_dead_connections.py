"""A dead connection to S3 raises, after retries, an error that names the object, the endpoint and the reason."""

import pytest
from fakes.faulty_s3 import Fault, FaultyS3
from fakes.processes import until

from scriptmode.aws import s3
from scriptmode.data import staging
from scriptmode.data.fast_file import ObjectTree
from scriptmode.data.prefetch import prefetch
from scriptmode.data.s3_store import S3Store
from scriptmode.errors import DataError, TransientError
from scriptmode.platforms.local.system.full_disk import is_full
from scriptmode.platforms.sagemaker.sagemaker_platform import _was_retried

pytestmark = pytest.mark.slow

CONTENT = bytes(range(256)) * 40
#: What happens to every request for the object's bytes, and what is said of it.
DEATHS = {
    "closed before an answer": (Fault(cut=True), "it was closed before an answer came"),
    "stalled before an answer": (Fault(stall=True), "no byte came before the time-out"),
    "closed before the body": (Fault(cut=True, at=0), "it was closed after 0 of 10240 bytes"),
    "stalled in the body": (Fault(stall=True, at=0), "no byte came before the time-out"),
}


@pytest.fixture
def server(monkeypatch, no_credentials):
    with FaultyS3({"x": CONTENT}) as running:
        running.use(monkeypatch)
        yield running


class ShortTimeouts:
    """The stores of a process, with short time-outs."""

    def store_of(self, _):
        return S3Store(retry_seconds=1, stall=0.3)


def file_mode(_, tmp_path):
    store = ShortTimeouts().store_of("")
    staging.fetch(
        [(store.find("s3://bkt/x"), "x")], tmp_path / "data", lambda _done, _total: None, stores=ShortTimeouts()
    )


def pipe_mode(_, __):
    store = ShortTimeouts().store_of("")
    for chunk in prefetch(lambda _: store, iter([store.find("s3://bkt/x")])):
        assert not chunk.data


def fast_file_mode(views, tmp_path):
    def make():
        store = ShortTimeouts().store_of("")
        return ObjectTree([(store.find("s3://bkt/x"), "x")], lambda _: store)

    view = views.mount(make, tmp_path / "train")
    with pytest.raises(OSError, match="Input/output error"):
        (tmp_path / "train" / "x").read_bytes()
    until(lambda: view.poll() or view.unreadable)
    raise DataError(view.unreadable[0])


@pytest.mark.parametrize("mode", [file_mode, pipe_mode, fast_file_mode])
@pytest.mark.parametrize(("fault", "reason"), DEATHS.values(), ids=DEATHS.keys())
def test_a_dead_connection_raises_an_error_with_the_reason(server, views, tmp_path, mode, fault, reason):
    server.fault = lambda request: fault if request.is_get else None
    with pytest.raises(DataError) as caught:
        mode(views, tmp_path)
    assert str(caught.value).startswith(
        f"s3://bkt/x: the connection to the S3 endpoint {server.endpoint} broke: {reason}; retry, and check the network"
    )
    assert server.gets > 2


def test_an_error_is_not_its_own_cause(server):
    server.fault = lambda request: Fault(cut=True) if request.is_get else None
    with pytest.raises(DataError) as caught:
        S3Store(retry_seconds=1).read(S3Store().find("s3://bkt/x"), 0, len(CONTENT))
    seen, error = [], caught.value
    while error is not None:
        assert error not in seen
        seen.append(error)
        error = error.__cause__ or error.__context__


def test_an_endless_chain_of_causes_is_not_a_full_disk():
    error = DataError("x")
    error.__cause__ = error
    assert not is_full(error)


@pytest.mark.parametrize(
    "action", [lambda store: store.find("s3://bkt/x"), lambda store: list(store.objects("s3://bkt/"))]
)
@pytest.mark.parametrize("fault", [Fault(cut=True), Fault(stall=True)], ids=["closed", "stalled"])
def test_listing_and_looking_up_raise_the_same_error(server, action, fault):
    server.fault = lambda _: fault
    with pytest.raises(DataError, match=rf"the connection to the S3 endpoint {server.endpoint} broke: "):
        action(S3Store(retry_seconds=1, stall=0.3))


def test_a_small_object_whose_transfer_breaks_once_is_read_again(server):
    left = [Fault(cut=True, at=0)]
    server.fault = lambda request: left.pop() if request.is_get and left else None
    assert s3.S3().read_bytes("s3://bkt/x") == CONTENT


def test_a_small_object_whose_transfer_always_breaks_raises_that_error(server):
    server.fault = lambda request: Fault(cut=True, at=0) if request.is_get else None
    with pytest.raises(DataError) as caught:
        s3.S3().read_bytes("s3://bkt/x")
    assert str(caught.value) == (
        f"s3://bkt/x: the connection to the S3 endpoint {server.endpoint} broke: it was closed after 0 of 10240 bytes; "
        "retry, and check the network to that endpoint if it happens again"
    )


def test_a_large_download_that_always_breaks_is_one_of_our_errors(server, tmp_path):
    content = bytes(s3.SMALL_OBJECT + 1)
    server.contents["large"] = content
    server.fault = lambda request: Fault(cut=True, at=0) if request.is_get else None
    with pytest.raises(DataError, match=r"s3://bkt/large: the connection to the S3 endpoint .* broke"):
        s3.S3().download(s3.S3Object(s3.parse_s3_uri("s3://bkt/large"), len(content)), tmp_path / "target")


@pytest.mark.parametrize("uri", ["s3://UPPER_case!/x", "s3://a/" + "k" * 2_000])
def test_another_librarys_sentence_ends_without_its_full_stop(server, uri):
    with pytest.raises(DataError) as caught:
        s3.S3().read_bytes(uri)
    assert ".;" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_response_is_not_reported_as_a_retried_one():
    from botocore.exceptions import ReadTimeoutError

    error = TransientError("no answer")
    error.__cause__ = ReadTimeoutError(endpoint_url="http://127.0.0.1:1")
    assert _was_retried(error) is False
