"""When two jobs have the same requirements."""

import os

import pytest
from fakes.host_folders import write_files

from scriptmode_runtime.requirements.content import NoDigestError, read_content

COMMIT = "0123456789" * 4


@pytest.fixture
def code(tmp_path, monkeypatch):
    """A code directory with a package, wheels and files to include; pip has no settings."""
    for name in list(os.environ):
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    files = {
        "extra-1.whl": "wheel",
        "package/setup.py": "setup",
        "package/deep/module.py": "code",
        "wheels/other-1.whl": "wheel",
        "parts/more.txt": "-r most.txt\n",
        "parts/most.txt": "flask==2\n",
        "limits.txt": "numpy==1.26\n",
    }
    return write_files(tmp_path / "code", files)


def content(code, text):
    (code / "requirements.txt").write_text(text)
    return read_content(str(code), ["-r", str(code / "requirements.txt")])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "numpy==1.26.4",
        "numpy[all] == 1.26.4 ; python_version > '3'",
        "numpy===1.26.4+local --hash=sha256:12",
        "numpy>=1,==1.26.4",
        "numpy==1.26.4  # not numpy>=1",
        "numpy \\\n  == 1.26",
        "./extra-1.whl",
        "extra-1.whl",
        "./package[all]",
        "extra @ file:./package",
        "-r parts/more.txt",
        "--requirement=parts/more.txt",
        "-rparts/more.txt",
        "numpy\n-c limits.txt",
        "NumPy>=1\n--constraint limits.txt",
        "--index-url https://host/simple --extra-index-url=https://other/simple\n--no-index\n--pre\nnumpy==1.26",
        "--find-links wheels\nother==1",
        f"git+https://github.com/a/b@{COMMIT}",
        f"b @ git+https://github.com/a/b@{COMMIT}#egg=b",
        "https://host/extra-1.whl#sha256=" + "0" * 64,
    ],
)
def test_requirements_of_one_version_each_are_pinned(code, text):
    assert content(code, text).is_pinned


@pytest.mark.parametrize(
    "text",
    [
        "numpy",
        "numpy>=1.26",
        "numpy~=1.26",
        "numpy!=1.26",
        "numpy==1.*",
        "numpy  # numpy==1.26",
        "# a comment that goes on \\\nnumpy",
        "pandas\n-c limits.txt",
        "https://host/extra-1.whl",
        "extra @ https://host/extra-1.whl",
        "flask==2\n-r parts/loose.txt",
    ],
)
def test_requirements_that_leave_a_version_open_are_not_pinned(code, text):
    (code / "parts" / "loose.txt").write_text("numpy")
    assert not content(code, text).is_pinned


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("-e ./package", "'-e ./package' cannot be shared by jobs"),
        ("--editable=./package", "cannot be shared by jobs"),
        ("git+https://github.com/a/b", "'git\\+https://github.com/a/b' names no commit"),
        ("git+https://user:tok@github.com/a/b@main", "'git\\+https://github.com/a/b@main' names no commit"),
        ("b @ git+ssh://git@host/b.git", "names no commit"),
        (".", "'.' is the source itself"),
        ("./package/..", "is the source itself"),
        ("..", "is the source itself"),
        ("./missing", "'./missing' does not exist"),
        ("missing.whl", "'missing.whl' does not exist"),
        ("-r missing.txt", "missing.txt' cannot be read: No such file or directory"),
        ("-c https://host/limits.txt", "'https://host/limits.txt' is not a file of this machine"),
        ("-r https://user:tok@host/more.txt", "'https://host/more.txt' is not a file of this machine"),
        ("--unknown", "'--unknown' cannot be shared by jobs"),
        ("--index-url 'https://host", "cannot be parsed: No closing quotation"),
    ],
)
def test_requirements_without_a_known_content_say_why(code, text, reason):
    with pytest.raises(NoDigestError, match=reason):
        content(code, text)


@pytest.mark.parametrize(
    "line",
    [
        "git+https://host/${HELD}/b",
        "b @ git+https://host/${HELD}/b",
        "-r https://host/${HELD}/more.txt",
        "-e https://host/${HELD}",
        "--unknown ${HELD} '",
        "./${HELD}.whl",
    ],
)
def test_a_message_has_the_names_of_variables_and_not_their_values(code, monkeypatch, line):
    monkeypatch.setenv("HELD", "s3cr3t")
    with pytest.raises(NoDigestError) as caught:
        content(code, line)
    assert "${HELD}" in str(caught.value)
    assert "s3cr3t" not in str(caught.value)


def test_a_source_that_is_a_package_has_no_digest(code):
    (code / "requirements.txt").write_text("numpy==1")
    with pytest.raises(NoDigestError, match="the source is a package"):
        read_content(str(code), ["-r", str(code / "requirements.txt"), str(code)])


@pytest.mark.parametrize(
    "name", ["extra-1.whl", "package/deep/module.py", "wheels/other-1.whl", "parts/most.txt", "limits.txt"]
)
def test_the_content_of_every_file_that_is_named_counts(code, name):
    text = "./extra-1.whl\n./package\n-f wheels\n-r parts/more.txt\n-c limits.txt\n"
    first = content(code, text)
    assert content(code, text) == first
    with (code / name).open("a") as file:
        file.write("\n")
    assert content(code, text).digest != first.digest


def test_the_folder_of_the_source_does_not_count(code, tmp_path):
    text = "./extra-1.whl\n./package\n-f wheels\n-r parts/more.txt\n-c limits.txt\n"
    first = content(code, text)
    (code / "train.py").write_text("changed")
    assert content(code.rename(tmp_path / "another"), text) == first


def test_what_the_interpreter_has_counts(code, tmp_path, monkeypatch):
    first = content(code, "numpy")
    monkeypatch.syspath_prepend(str(tmp_path / "added"))
    (tmp_path / "added" / "numpy-1.dist-info").mkdir(parents=True)
    second = content(code, "numpy")
    (tmp_path / "added" / "numpy-1.dist-info").rename(tmp_path / "added" / "numpy-2.dist-info")
    assert len({first, second, content(code, "numpy")}) == 3


def test_settings_of_pip_count_but_no_credentials(code, tmp_path, monkeypatch):
    digests = [content(code, "numpy").digest]
    for variable in ("https://user:one@host/simple", "https://user:two@host/simple", "https://other/simple"):
        monkeypatch.setenv("PIP_INDEX_URL", variable)
        digests.append(content(code, "numpy").digest)
    assert digests[1] == digests[2]
    (tmp_path / "config" / "pip").mkdir(parents=True)
    (tmp_path / "config" / "pip" / "pip.conf").write_text("[global]\nno-binary = :all:\n")
    digests.append(content(code, "numpy").digest)
    assert len(set(digests)) == 4


def test_variables_in_the_text_count_but_no_credentials(code, monkeypatch):
    monkeypatch.setenv("TOKEN", "one")
    monkeypatch.setenv("VERSION", "1")
    text = "--index-url https://${TOKEN}@host/simple\nnumpy==${VERSION}\n"
    first = content(code, text)
    monkeypatch.setenv("TOKEN", "two")
    assert content(code, text) == first
    monkeypatch.setenv("VERSION", "2")
    assert content(code, text).digest != first.digest


@pytest.mark.parametrize("name", ["PIP_TARGET", "PIP_CONSTRAINT", "PIP_REQUIREMENT"])
def test_variables_of_pip_that_name_files_and_places_prevent_a_digest(code, monkeypatch, name):
    monkeypatch.setenv(name, "/somewhere")
    with pytest.raises(NoDigestError, match=f"{name} is set"):
        content(code, "numpy")
