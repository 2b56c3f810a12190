import pytest

from scriptmode._core.spec.git_source import GitSource, parse_git_config
from scriptmode.errors import SpecError


def test_the_keys_of_the_sagemaker_sdk_are_taken():
    config = {
        "repo": "https://h/r", "branch": "b", "commit": "c", "2FA_enabled": True, "username": "u", "password": "p",
    }  # fmt: skip
    assert parse_git_config(config) == GitSource("https://h/r", "b", "c", ("u", "p"))
    assert parse_git_config({**config, "token": "t"}).login == ("t", "")
    assert parse_git_config({"repo": "git@h:o/r", "token": None}) == GitSource("git@h:o/r")
    assert parse_git_config({}) is None


@pytest.mark.parametrize(
    "repo",
    ["https://github.com/o/r.git", "http://h/r", "https://h:8443/@scope/r", "ssh://git@h/r", "ssh://h:22/r", "git@h:o/r",
     "file:///srv/with space", "https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/r"],
)  # fmt: skip
def test_these_are_urls_of_repositories(repo):
    assert parse_git_config({"repo": repo}).repo == repo


@pytest.mark.parametrize(
    "repo", ["https://secret@h/r", "HTTPS://secret@h/r", "ssh://u:secret@h/r", "ftp://user:secret@h/r"]
)
def test_credentials_in_a_url_are_refused_and_not_repeated(repo):
    with pytest.raises(SpecError, match="contains credentials") as caught:
        parse_git_config({"repo": repo})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("key", ["repo", "branch", "commit"])
@pytest.mark.parametrize("value", ["--upload-pack=x", "-x", "a\nb", "a\x00b", ""])
def test_what_git_would_take_for_an_option_is_refused(key, value):
    with pytest.raises(SpecError, match=f"^git_config has a '{key}' that is empty, not printable or begins with '-'"):
        parse_git_config({"repo": "https://h/r", key: value})


UNSAFE = "is not an https:// URL to which credentials may be sent"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("https://secret@h/r", "git_config is not a dict with 'repo'; give one such as {'repo': 'https://...'}"),
        ({"branch": "main"}, "git_config is not a dict with 'repo'"),
        ({"repo": "https://h/r", "brunch": "main"}, "git_config has no key 'brunch'; did you mean 'branch'?"),
        ({"repo": "https://h/r", "token": b"secret"}, "git_config has a 'token' that is"),
        ({"repo": "git@h:r", "token": "secret"}, UNSAFE),
        ({"repo": "ssh://h/r", "username": "u", "password": "secret"}, UNSAFE),
        ({"repo": "file:///r", "token": "secret"}, UNSAFE),
        ({"repo": "http://h/r", "token": "secret"}, UNSAFE),
        ({"repo": "http://localhost.h/r", "token": "secret"}, UNSAFE),
    ],
)
def test_a_wrong_git_config_is_an_error_before_anything_is_fetched(config, message):
    with pytest.raises(SpecError) as caught:
        parse_git_config(config)
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)


def test_secrets_do_not_show():
    assert "secret" not in repr(GitSource("https://h/r", login=("u", "secret")))
