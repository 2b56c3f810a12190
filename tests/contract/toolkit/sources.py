"""Where the source comes from: archives, folders, S3, what the image has already."""

import io
import tarfile

from contract.toolkit.case import CODE, FOLDER, RECORDER, SCRIPT, Case, encoded
from fakes.host_folders import write_files

RECORD = RECORDER.read_text()
FILES = {"train.py": RECORD, "inner/part.py": "", "tool": "#!/bin/sh\n"}


def archive(mode="w:gz", prefix="", **links):
    """Give an archive of `FILES`, one of them executable, and of symbolic links."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode=mode) as tar:
        for name, text in FILES.items():
            member = tarfile.TarInfo(prefix + name)
            member.size, member.mode = len(text.encode()), 0o755 if name == "tool" else 0o644
            tar.addfile(member, io.BytesIO(text.encode()))
        for name, target in links.items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            tar.addfile(member)
    return content.getvalue()


def stored(content):
    return lambda folder: (folder / "source").write_bytes(content)


def source(name, prepare, place=f"{FOLDER}/source", **rest):
    return Case(f"source: {name}", encoded(sagemaker_submit_directory=place), prepare=prepare, **{"code": {}, **rest})


def nothing(_folder):
    """Bring no source."""


def in_a_folder(folder):
    write_files(folder / "source", FILES)


def alone(folder):
    write_files(folder, {"elsewhere/train.py": RECORD})


CASES = [
    source("archive", stored(archive())),
    source("archive with dots in front", stored(archive(prefix="./"))),
    source("archive that is not compressed", stored(archive("w:"))),
    source("archive with a link", stored(archive(**{"inner/link.py": "../train.py"}))),
    source("archive that leads outside", stored(archive(prefix="../../"))),
    source("archive with a link that leads outside", stored(archive(**{"link.py": "/etc/passwd"}))),
    source("archive that is cut off", stored(archive()[:-40])),
    source("not there", nothing),
    source("folder", in_a_folder),
    source("folder with a slash", in_a_folder, f"{FOLDER}/source/"),
    source("script alone", alone, f"{FOLDER}/elsewhere/train.py"),
    source("as a file:// address", stored(archive()), f"file://{FOLDER}/source"),
    source("the code folder itself", nothing, CODE, code=SCRIPT),
    source("archive, and files of the image", stored(archive()), code={"old.py": ""}),
    source("archive, and the image's program", stored(archive()), code={**SCRIPT, "tool": "old"}),
    Case("source: by the image's variable", prepare=stored(archive()), code={}, variables={"SAGEMAKER_SUBMIT_DIRECTORY": f"{FOLDER}/source"}),
    Case("source: of the image alone"),
]  # fmt: skip
