"""How TensorFlow is told its cluster. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def tf_config(cluster: Mapping[str, Sequence[str]], role: str, index: int) -> str:
    """Give the value of ``TF_CONFIG`` for task ``index`` of ``role``.

    ``environment: cloud`` is what ``tf.estimator`` asks for to run a cluster with a master.
    """
    document = {"cluster": cluster, "environment": "cloud", "task": {"index": index, "type": role}}
    return json.dumps(document, sort_keys=True)
