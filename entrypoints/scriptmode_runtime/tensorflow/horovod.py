"""Horovod for Keras 3: ``import scriptmode_runtime.tensorflow.horovod as hvd`` instead of ``horovod.tensorflow``.

Horovod 0.28.1 is older than Keras 3: its tape calls ``ref()``, which only TensorFlow's own variables have, its
optimizer overrides methods that Keras 3 does not call, its callbacks use a removed backend. The parts that use Keras
are replaced here; the rest is Horovod's own (``hvd.init``, ``hvd.rank``, ``hvd.allreduce``, ...). Keras 2 works too.

XLA cannot compile Horovod's operations: where there are GPUs, ``model.compile(..., jit_compile=False)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import horovod.tensorflow as _horovod
import tensorflow as tf


def __getattr__(name: str) -> Any:
    """Return an attribute of Horovod that this module does not define."""
    return getattr(_horovod, name)


def _tensorflow_variable(variable: Any) -> Any:
    """Return the TensorFlow variable of a Keras 3 variable; any other object unchanged."""
    value = getattr(variable, "value", None)
    return value if isinstance(value, tf.Variable) else variable


def broadcast_variables(variables: Iterable[Any], root_rank: int) -> None:
    """Copy the root's values of the same variables, Keras's or TensorFlow's, to every rank."""
    _horovod.broadcast_variables([_tensorflow_variable(variable) for variable in variables], root_rank)


class DistributedGradientTape:
    """A ``tf.GradientTape`` with the gradients of all ranks; the arguments are those of Horovod's.

    The sources may be Keras's variables, in any structure.
    """

    def __init__(self, gradtape: tf.GradientTape, **options: Any) -> None:
        self._tape = _horovod.DistributedGradientTape(gradtape, **options)

    def __enter__(self) -> DistributedGradientTape:  # noqa: PYI034 - Python 3.9 and 3.10 have no Self
        """Start to record."""
        self._tape.__enter__()
        return self

    def __exit__(self, *failure: object) -> None:
        """Stop to record."""
        self._tape.__exit__(*failure)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the wrapped tape."""
        return getattr(self._tape, name)

    def gradient(self, target: Any, sources: Any, output_gradients: Any = None) -> Any:
        """Return the mean of the gradients over all ranks (or another ``op``), in the structure of the sources."""
        flat = [_tensorflow_variable(source) for source in tf.nest.flatten(sources)]
        return tf.nest.pack_sequence_as(sources, self._tape.gradient(target, flat, output_gradients))


class _Distributed:
    """A mix-in for optimizers of Keras 3, which reduces gradients before it applies them."""

    _reduction: dict[str, Any]

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None) -> Any:
        """Apply the gradients of all ranks. Variables without a gradient have none on any rank."""
        present = [grad for grad in grads if grad is not None]
        reduced = iter(
            _horovod.grouped_allreduce(present, **self._reduction) if present and _horovod.size() > 1 else present
        )
        everywhere = [None if grad is None else next(reduced) for grad in grads]
        return super().apply(everywhere, trainable_variables)  # type: ignore[misc]


def DistributedOptimizer(optimizer: Any, **options: Any) -> Any:  # noqa: N802 - Horovod's name
    """Return an optimizer with the same settings that applies the gradients of all ranks.

    With Keras 3 the options are ``op`` (``hvd.Average``) and ``compression``, with Keras 2 Horovod's; with Keras 2 only
    ``fit`` and ``minimize`` reduce gradients, and custom loops use the tape. The class has the optimizer's
    own name: a saved model is loaded without Horovod.
    """
    if not _is_keras_3(optimizer):
        import horovod.tensorflow.keras as keras_2

        distributed = keras_2.DistributedOptimizer(optimizer, **options)
        # Otherwise loading a saved model would import Horovod's module.
        type(distributed).__module__ = type(optimizer).__module__
        return distributed
    unknown = sorted(set(options) - {"op", "compression"})
    if unknown:
        raise TypeError(
            f"DistributedOptimizer with Keras 3 takes op and compression, not {', '.join(unknown)}; remove that"
        )
    own = type(optimizer)
    made = type(own.__name__, (_Distributed, own), {"__module__": own.__module__})
    distributed = made.from_config(optimizer.get_config())  # type: ignore[attr-defined]
    distributed._reduction = {"op": _horovod.Average, **options}  # noqa: SLF001 - made here
    return distributed


def _is_keras_3(optimizer: Any) -> bool:
    return any(base.__module__.partition(".")[0] == "keras" for base in type(optimizer).__mro__) and hasattr(
        optimizer, "apply"
    )


class BroadcastGlobalVariablesCallback(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """A callback that copies the root's weights and optimizer state to every rank after the first batch."""

    def __init__(self, root_rank: int = 0) -> None:
        super().__init__()
        self._root_rank = root_rank
        self._done = False

    def on_train_batch_end(self, batch: int, logs: object = None) -> None:  # noqa: ARG002 - Keras passes them by name
        """Broadcast once."""
        if self._done:
            return
        variables = self.model.optimizer.variables
        # A method in the older of Keras 2's optimizers.
        state = variables() if callable(variables) else variables
        broadcast_variables([*self.model.weights, *state], self._root_rank)
        self._done = True


class MetricAverageCallback(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """A callback that replaces each epoch's metrics with the mean over all ranks, before later callbacks see them."""

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:  # noqa: ARG002 - Keras's
        """Average in place."""
        if not logs or _horovod.size() == 1:
            return
        names = sorted(logs)
        mine = tf.constant([float(logs[name]) for name in names], tf.float64)
        means = _horovod.allreduce(mine, op=_horovod.Average, name="scriptmode_metrics").numpy()
        logs.update((name, float(mean)) for name, mean in zip(names, means))


callbacks = SimpleNamespace(
    BroadcastGlobalVariablesCallback=BroadcastGlobalVariablesCallback, MetricAverageCallback=MetricAverageCallback
)
