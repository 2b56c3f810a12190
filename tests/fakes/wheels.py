"""A wheel that needs no package index."""

import io
import zipfile

NAME = "extra-1-py3-none-any.whl"


def extra(requires=()):
    """Return a wheel with the module ``extra``, whose ``NUMBER`` is 7; ``requires`` are its requirements."""
    required = "".join(f"Requires-Dist: {each}\n" for each in requires)
    content = io.BytesIO()
    information = "extra-1.dist-info"
    with zipfile.ZipFile(content, "w") as wheel:
        wheel.writestr("extra.py", "NUMBER = 7")
        wheel.writestr(f"{information}/METADATA", f"Metadata-Version: 2.1\nName: extra\nVersion: 1\n{required}")
        wheel.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{information}/RECORD", "")
    return content.getvalue()
