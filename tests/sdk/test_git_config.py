import pytest

from scriptmode._core.spec.git_source import GitSource, parse_git_config
from scriptmode.errors import SpecError


def test_the_keys_of_the_sagemaker_sdk_are_taken():
    config = {"repo": "https://h/r", "branch": "b", "commit": "c", "2FA_enabled": True, "username": "u",
              "password": "p", "token": "t"}  # fmt: skip
    assert parse_git_config(config) == GitSource("https://h/r", "b", "c", "u", "p", "t", two_factor=True)
    assert parse_git_config({}) is None


@pytest.mark.parametrize(
    "repo",
    ["https://github.com/o/r.git", "http://h/r", "https://h:8443/@scope/r", "ssh://git@h/r", "ssh://h:22/r", "git@h:o/r",
     "file:///srv/with space", "https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/r"],
)  # fmt: skip
def test_these_are_urls_of_repositories(repo):
    assert parse_git_config({"repo": repo}).repo == repo


@pytest.mark.parametrize(
    "repo",
    ["/srv/r", "../r", "github.com/o/r", "git://h/r", "ext::sh -c x", "https:///r", "https://[h/r", "ssh://", "file://h/r",
     "HTTPS://h/r", "h:o/r", "ftp://user:secret@h/r"],
)  # fmt: skip
def test_other_forms_of_urls_are_refused(repo):
    with pytest.raises(SpecError, match="^git_config\\['repo'\\] is '.*'; use https://..., ssh://..., git@h") as caught:
        parse_git_config({"repo": repo})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("repo", ["https://secret@h/r", "http://u:s/ecret@h/r", "ssh://u:secret@h/r"])
def test_credentials_in_a_url_are_refused_and_not_repeated(repo):
    with pytest.raises(SpecError) as caught:
        parse_git_config({"repo": repo})
    assert "ecret" not in str(caught.value)
    assert "s/e" in repo or "contains credentials" in str(caught.value)


@pytest.mark.parametrize("key", ["repo", "branch", "commit"])
@pytest.mark.parametrize("value", ["--upload-pack=x", "-x", "a\nb", "a\x00b"])
def test_what_git_would_take_for_an_option_is_refused(key, value):
    with pytest.raises(SpecError, match="remove '-' at its start and control characters"):
        parse_git_config({"repo": "https://h/r", key: value})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("https://secret@h/r", "git_config is a str; pass a dict such as {'repo': 'https://...'}"),
        ({"branch": "main"}, "git_config has no 'repo'; add the repository's URL: https://..."),
        ({"repo": "https://h/r", "brunch": "main"}, "git_config has no key 'brunch'; did you mean 'branch'?"),
        ({"repo": "https://h/r", "2FA_enabled": "yes"}, "git_config['2FA_enabled'] is a str; pass True or False"),
        ({"repo": "https://h/r", "token": None}, "git_config['token'] is a NoneType; pass a string"),
        ({"repo": "https://h/r", "branch": ""}, "git_config['branch'] is empty; pass a string that is not empty, or leave"),
        ({"repo": "https://h/r", "username": "u"}, "git_config has 'username' without 'password'; add 'password', or use a token"),
        ({"repo": "https://h/r", "username": "u", "password": "secret", "2FA_enabled": True}, "git_config['2FA_enabled'] is True, for which a password is not sufficient; add a token"),
        ({"repo": "git@h:r", "token": "secret"}, "git_config['token'] is for https:// URLs, but git uses your SSH keys for 'git@h:r'; leave it out"),
        ({"repo": "ssh://h/r", "username": "u", "password": "secret"}, "git_config['username'] is for https://"),
        ({"repo": "file:///r", "token": "secret"}, "git uses no credentials for 'file:///r'"),
        ({"repo": "http://h/r", "token": "secret"}, "git_config['token'] would be sent unencrypted to 'http://h/r'; use https://"),
    ],
)  # fmt: skip
def test_a_wrong_git_config_is_an_error_before_anything_is_fetched(config, message):
    with pytest.raises(SpecError) as caught:
        parse_git_config(config)
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)


def test_secrets_do_not_show():
    assert "secret" not in repr(GitSource("https://h/r", username="secret", password="secret", token="secret"))
