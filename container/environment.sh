# Complete the image's Python environment $1: remove headers, adjust metadata. A step of the Dockerfile.
set -eu
cd "$1"/lib/python3.*/site-packages
# Only compilers need the headers.
rm -rf tensorflow/include
"$1/bin/python" - <<'END'
"""Adjust the metadata of distributions to this environment, so that `pip check` passes."""

import base64
import hashlib
import importlib.metadata
import pathlib


def record(path, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    return "%s,sha256=%s,%d" % (path, digest, len(content))


installed = {each.metadata["Name"].lower().replace("_", "-"): each for each in importlib.metadata.distributions()}
name = "tensorflow-cpu" if "tensorflow-cpu" in installed else "tensorflow"
version = installed[name].version

# TensorFlow requires libclang but does not use it; the lock file leaves it out.
folder = pathlib.Path("%s-%s.dist-info" % (name.replace("-", "_"), version))
lines = (folder / "METADATA").read_bytes().splitlines(keepends=True)
content = b"".join(line for line in lines if not line.startswith(b"Requires-Dist: libclang"))
(folder / "METADATA").write_bytes(content)
path = "%s/METADATA" % folder
records = (folder / "RECORD").read_text().splitlines()
records = [record(path, content) if line.startswith(path + ",") else line for line in records]
(folder / "RECORD").write_text("".join(line + "\n" for line in records))

# Other packages require the distribution "tensorflow" by name. An empty distribution of that name, which requires
# tensorflow-cpu, satisfies pip.
if name != "tensorflow":
    folder = pathlib.Path("tensorflow-%s.dist-info" % version)
    folder.mkdir()
    files = {
        "METADATA": "Metadata-Version: 2.1\nName: tensorflow\nVersion: %s\nSummary: Installed as tensorflow-cpu\n"
        "Requires-Dist: tensorflow-cpu (==%s)\n" % (version, version),
        "WHEEL": "Wheel-Version: 1.0\nGenerator: scriptmode\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "INSTALLER": "scriptmode\n",
    }
    for each, text in files.items():
        (folder / each).write_text(text)
    records = [record("%s/%s" % (folder, each), text.encode()) for each, text in files.items()]
    (folder / "RECORD").write_text("\n".join((*records, "%s/RECORD,,\n" % folder)))
END
"$1/bin/python" -m pip check
sh /normalise.sh "$1" "$1/bin/python"
