"""Images of one layer, made without Docker, as archives that ``ctr images import`` reads."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile

_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def archive(name: str, layer: bytes, **config) -> bytes:
    """Return the archive of an image of one layer; ``config`` is what OCI's image configuration has as ``config``."""
    blobs: dict[str, bytes] = {}

    def add(kind: str, content: bytes) -> dict:
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(content)}

    layers = [add(_LAYER, layer)]
    root = {"type": "layers", "diff_ids": [layers[0]["digest"]]}
    about = {"architecture": "amd64", "os": "linux", "config": config, "rootfs": root}
    manifest = {"schemaVersion": 2, "mediaType": _MANIFEST, "layers": layers}
    manifest["config"] = add(_CONFIG, json.dumps(about).encode())
    image = {**add(_MANIFEST, json.dumps(manifest).encode()), "annotations": {"io.containerd.image.name": name}}
    blobs["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [image]}).encode()
    blobs["oci-layout"] = b'{"imageLayoutVersion": "1.0.0"}'
    return tar(blobs)


def tar(files: dict[str, bytes | str | None]) -> bytes:
    """Return an archive of files (bytes), symbolic links (their targets) and directories (None)."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as written:
        for name, content in files.items():
            entry = tarfile.TarInfo(name.lstrip("/"))
            entry.mode = 0o755
            if content is None:
                entry.type = tarfile.DIRTYPE
            elif isinstance(content, str):
                entry.type, entry.linkname = tarfile.SYMTYPE, content
            else:
                entry.size = len(content)
            written.addfile(entry, io.BytesIO(content if isinstance(content, bytes) else b""))
    return buffer.getvalue()
