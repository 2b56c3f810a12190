"""Pages of the lists of `scriptmode serve`."""

import pytest

from scriptmode.serve.aws_json import ApiError
from scriptmode.serve.paging import page


@pytest.mark.parametrize("token", ["x", "MQ==", "bnVsbA==", "WzEsIDJd"])
def test_a_wrong_token_is_refused(token):
    with pytest.raises(ApiError, match="pagination token is invalid"):
        page([{"Name": "a"}, {"Name": "b"}], {"NextToken": token}, key="Name", name="Name")
