"""A wheel that needs no package index."""

import io
import os
import zipfile

NAME = "extra-1-py3-none-any.whl"


def extra(requires=(), number=7, version="1", payload=None):
    """Return a wheel with the module ``extra``, whose ``NUMBER`` is the number; ``requires`` are its requirements.

    With a payload it has also the program ``extra-number``, and so many bytes of data.
    """
    required = "".join(f"Requires-Dist: {each}\n" for each in requires)
    content = io.BytesIO()
    information = f"extra-{version}.dist-info"
    with zipfile.ZipFile(content, "w") as wheel:
        wheel.writestr("extra.py", f"NUMBER = {number}")
        if payload is not None:
            program = zipfile.ZipInfo(f"extra-{version}.data/scripts/extra-number")
            program.external_attr = 0o100755 << 16
            wheel.writestr(program, "#!python\nimport extra, sys; print('program', extra.NUMBER, sys.prefix)\n")
            wheel.writestr(f"extra-{version}.data/data/share/extra/data", os.urandom(payload))
        wheel.writestr(f"{information}/METADATA", f"Metadata-Version: 2.1\nName: extra\nVersion: {version}\n{required}")
        wheel.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{information}/RECORD", "")
    return content.getvalue()
