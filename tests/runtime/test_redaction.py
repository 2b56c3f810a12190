"""What is a secret, and that nothing of it is left in what the launcher says."""

import json
from urllib.parse import quote

import pytest
from hypothesis import assume, given, strategies as st

from scriptmode_runtime._report.redaction import _EVERYDAY, MASK, Redaction, is_secret

SECRETS = [
    "DB_PASS", "MYSQL_PWD", "passphrase", "client_secret", "secret_id", "apiKey", "APIKey", "apikey", "hf_token",
    "HF-Token", "GITHUB_PAT", "access.key", "AWS_SECRET_ACCESS_KEY", "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "ssh_private_key", "credentials", "SCRIPTMODE_JOB_SECRET", "SM_HP_API_TOKEN", "storage-account-key", "tokens",
    "PGPASSWORD", "mypassword", "PGPASSWD", "keypassphrase", "clientsecret", "authtoken", "APITOKEN", "accesstoken",
    "ENCRYPTIONKEY", "SSHKEY", "awssecretkey", "KAGGLE_KEY", "license_key", "REDISCLI_AUTH", "oauth_bearer",
    "X-Amz-Signature",
]  # fmt: skip
NO_SECRETS = [
    "", "epochs", "learning_rate", "tokenizer", "max_tokens", "pad_token", "eos_token", "num_new_tokens", "token_type",
    "special_tokens", "secret_name", "secret_arn", "password_file", "private_key_path", "key", "sort_key", "keyboard",
    "passes", "forward_pass_count", "PWD", "OLDPWD", "SM_CHANNEL_SECRETS", "GOOGLE_APPLICATION_CREDENTIALS",
    "AWS_SHARED_CREDENTIALS_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "compass", "secretary", "num_tokens",
    "token_count", "maxtokens", "padtoken", "tokenizers", "keys", "monkey", "primary_key", "partition_key", "public_key",
    "author", "authors", "auth_type", "SSH_AUTH_SOCK", "GIT_ASKPASS", "bypass", "signature_def", "tokenfile",
]  # fmt: skip


@pytest.mark.parametrize("name", [*SECRETS, *NO_SECRETS])
def test_a_name_tells_whether_its_value_is_a_secret(name):
    assert is_secret(name, "correct-horse") is (name in SECRETS)


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [("token", 512, False), ("tokens", 0.5, False), ("password", 12345678, True), ("use_secret", True, False),
     ("secret", None, False)],
)  # fmt: skip
def test_switches_and_counts_are_not_secrets_and_numbers_may_be_passwords(name, value, secret):
    assert is_secret(name, value) is secret


VALUES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0*"), min_size=6, max_size=60).filter(
    lambda value: len(value.strip()) >= 6 and value.lower() not in _EVERYDAY
)


@given(VALUES, st.sampled_from(["{}", "a {} b", "--password {} --epochs 3", "PASSWORD={}", "https://h/?p={}&x=1"]))
def test_a_value_is_hidden_wherever_it_stands_and_however_it_is_written(value, text):
    redaction = Redaction({"password": value})
    spelled = [value, repr(value)[1:-1], json.dumps(value)[1:-1], json.dumps(json.dumps(value))[3:-3], quote(value)]
    spelled += [quote(value, safe=""), json.dumps({"p": value}, ensure_ascii=False)[7:-2]]
    for each in spelled:
        assert redaction(text.format(each)) == text.format(MASK), each


@given(st.text())
def test_a_text_without_secrets_is_left_as_it_is(text):
    assume("://" not in text)
    assert Redaction({"epochs": 10, "name": "resnet50", "token": 3, "password": ""})(text) == text


def test_hiding_twice_is_hiding_once():
    redaction = Redaction({"password": "correct-horse", "pin_password": "1234"})
    once = redaction("correct-horse https://u:p@h/ --pin_password 1234")
    assert redaction(once) == once == "****** https://******@h/ --pin_password ******"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("--password abc --epochs 3", "--password ****** --epochs 3"),
        ('{"password": "abc"}', '{"password": "******"}'),
        ('["--password","abc"]', '["--password","******"]'),
        ('"{\\"password\\": \\"abc\\"}"', '"{\\"password\\": \\"******\\"}"'),
        ("abc abcdef password", "abc abcdef password"),
        ("password: abcdef", "password: abcdef"),
    ],
)
def test_a_short_secret_is_hidden_behind_its_name_alone(text, shown):
    assert Redaction({"password": "abc"})(text) == shown
    # As an everyday word is.
    hidden = Redaction({"token": "default"})("the default is used: --token default")
    assert hidden == "the default is used: --token ******"


def test_a_key_of_several_lines_is_hidden_line_by_line():
    key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n"
    hidden = Redaction({"private_key": key})("[1,0]<stdout>: MIIEvQIBADANBgkq\n[1,0]<stdout>: hkiG9w0BAQEFAASC\n")
    assert hidden == "[1,0]<stdout>: ******\n[1,0]<stdout>: ******\n"


def test_a_value_with_broken_utf_8_is_hidden_as_the_log_shows_it():
    assert Redaction({"token": "caf\udce9-secret"})("it is caf\ufffd-secret") == "it is ******"


@pytest.mark.parametrize(
    "named",
    [
        {"dbs": [{"password": "correct-horse"}]},
        {"credentials": {"user": "x", "key": ["correct-horse"]}},
        {"sagemaker_mpi_custom_mpi_options": "-x A=b -x API_TOKEN=correct-horse --verbose"},
        {"sagemaker_program_arguments": ["--db-password", "correct-horse"]},
        {"arguments": "--hf-token=correct-horse"},
        {"options": "--x 'API_TOKEN=\"correct-horse\"'"},
        {"connection": "AccountName=x;AccountKey=correct-horse;Suffix=y"},
        {"DATABASE_URL": "postgres://me:correct-horse@db/x"},
        {"PIP_EXTRA_INDEX_URL": "https://a/simple https://__token__:correct-horse@b/simple"},
        {"PIP_INDEX_URL": "https://me:correct%2Dhorse@b/simple"},
    ],
    ids=lambda named: next(iter(named)),
)
def test_secrets_inside_of_values_are_found(named):
    assert Redaction(named)("got correct-horse") == "got ******"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://user:token@127.0.0.1:1/simple", "https://******@127.0.0.1:1/simple"),
        ("git+ssh://git@github.com/o/r.git@v1", "git+ssh://******@github.com/o/r.git@v1"),
        ("'redis://:pw@h:6379/0'", "'redis://******@h:6379/0'"),
        ("https://u:p@ss@host/", "https://******@host/"),
        ("https://u:pa/ss@host/", "https://******@host/"),
        ("https://host:8080/a@b", "https://host:8080/a@b"),
        ("https://host me@mail", "https://host me@mail"),
        ("s3://bucket/key@2x.png", "s3://bucket/key@2x.png"),
    ],
)
def test_what_stands_before_the_host_of_a_url_is_hidden(text, shown):
    assert Redaction()(text) == shown


def test_a_document_is_hidden_by_its_names_too():
    document = {
        "env": {"SM_HP_PASSWORD": "abc", "SM_HPS": '{"password":"abc"}', "SM_NUM_CPUS": "2"},
        "argv": ("python", "--password", "abc", "--epochs", "3"), "wait": None, "mode": 0o600,
    }  # fmt: skip
    assert Redaction({"password": "abc"}).document(document) == {
        "env": {"SM_HP_PASSWORD": MASK, "SM_HPS": '{"password":"******"}', "SM_NUM_CPUS": "2"},
        "argv": ("python", "--password", MASK, "--epochs", "3"), "wait": None, "mode": 0o600,
    }  # fmt: skip


@pytest.mark.parametrize("word", ["a://", "a://b:", "x=", "a://b:c/", "://" + "d" * 50])
@pytest.mark.timeout(60)
def test_no_output_keeps_the_report_waiting(word):
    Redaction({"a": (word * 65_536)[:65_536], "password": "correct-horse"})((word * 65_536)[:65_536])
