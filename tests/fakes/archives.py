"""Archives of files that a test gives."""

import io
import tarfile


def packed(files, mode="w:gz"):
    """Return a tar of texts and bytes by name."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode=mode) as tar:
        for name, text in files.items():
            body = text if isinstance(text, bytes) else text.encode()
            member = tarfile.TarInfo(name)
            member.size = len(body)
            tar.addfile(member, io.BytesIO(body))
    return content.getvalue()
