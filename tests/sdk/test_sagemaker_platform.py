"""Roles of notebooks on Amazon SageMaker, the service's errors as ours, and operations that it does not know."""

from types import SimpleNamespace

import pytest

from scriptmode import (
    CredentialsError,
    JobExistsError,
    JobNotFoundError,
    PlatformError,
    QuotaError,
    RequestError,
    TransientError,
)
from scriptmode._core.aws.error_translation import translate_client_error
from scriptmode._core.aws.iam_role import find_execution_role
from scriptmode._core.platforms.sagemaker.server_details import ServerDetails
from scriptmode.testing import FakeSageMaker


def test_the_execution_role_of_a_notebook_instance_is_queried_from_sagemaker(tmp_path):
    metadata = tmp_path / "resource-metadata.json"
    metadata.write_text('{"ResourceName": "mine"}')
    roles = {"mine": "arn:aws:iam::123456789012:role/of-the-notebook"}
    client = SimpleNamespace(
        describe_notebook_instance=lambda NotebookInstanceName: {"RoleArn": roles[NotebookInstanceName]}  # noqa: N803
    )
    session = SimpleNamespace(boto_session=FakeSageMaker(), sagemaker_client=client)
    assert find_execution_role(session, metadata=metadata) == roles["mine"]


def test_metadata_that_cannot_be_read_are_passed_over(tmp_path):
    metadata = tmp_path / "resource-metadata.json"
    metadata.write_text("[")
    fake = FakeSageMaker()
    fake.caller_arn = "arn:aws:iam::123456789012:user/ada"
    with pytest.raises(CredentialsError, match="which is not a role; give role="):
        find_execution_role(fake, metadata=metadata)


@pytest.mark.parametrize(
    ("code", "message", "error"),
    [
        ("ResourceInUse", "Job name must be unique", JobExistsError),
        ("ValidationException", "Requested resource not found.", JobNotFoundError),
        ("ValidationException", "1 validation error detected", RequestError),
        ("AccessDeniedException", "not authorized", CredentialsError),
        ("ResourceLimitExceeded", "account-level limit", QuotaError),
        ("ThrottlingException", "Rate exceeded", TransientError),
        ("InternalFailure", "we are sorry", TransientError),
        ("SomethingNew", "surprise", PlatformError),
    ],
)
def test_the_services_errors_leave_as_ours(code, message, error):
    found = translate_client_error("training job job-1", {"Error": {"Code": code, "Message": message}})
    assert type(found) is error
    assert "job-1" in str(found)


def test_a_service_that_does_not_know_the_operation_is_asked_once_and_amazon_never():
    asked, errors = [], [RequestError("a wrong filter"), PlatformError("UnknownOperationException")]

    def refuse(subject, _call):
        asked.append(subject)
        raise errors.pop(0)

    def details(url):
        meta = SimpleNamespace(endpoint_url=url)
        return ServerDetails(SimpleNamespace(client=lambda _: SimpleNamespace(meta=meta), call=refuse))

    amazon, other = details("https://api.sagemaker.us-east-1.amazonaws.com"), details("http://lab:5000")
    assert [service.read("job", "Events") for service in (amazon, other, other, other)] == [None] * 4
    assert (asked, amazon.are_known, other.are_known) == (["training job job"] * 2, False, False)
