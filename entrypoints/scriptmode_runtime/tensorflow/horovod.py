"""Horovod for Keras 3: ``import scriptmode_runtime.tensorflow.horovod as hvd`` instead of ``horovod.tensorflow``.

Horovod 0.28.1 is older than Keras 3: its tape asks a variable for the ``ref()`` that only TensorFlow's own have, its
optimizer overrides what Keras 3 no longer calls, its callbacks ask a backend that is gone. What of it meets Keras is
here once more; all else is Horovod's own (``hvd.init``, ``hvd.rank``, ``hvd.allreduce``, ...). Keras 2 works too.

XLA cannot compile Horovod's operations: where there are GPUs, ``model.compile(..., jit_compile=False)``.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import horovod.tensorflow as _horovod
import tensorflow as tf

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def __getattr__(name: str) -> Any:
    """Give what Horovod has and this module does not."""
    return getattr(_horovod, name)


def _tensorflow_variable(variable: Any) -> Any:
    """Give TensorFlow's own variable within one of Keras 3's."""
    value = getattr(variable, "value", None)
    return value if isinstance(value, tf.Variable) else variable


def broadcast_variables(variables: Iterable[Any], root_rank: int) -> None:
    """Give every rank the root's values of the same variables, Keras's or TensorFlow's."""
    _horovod.broadcast_variables([_tensorflow_variable(each) for each in variables], root_rank)


class DistributedGradientTape:
    """A ``tf.GradientTape`` whose gradients are those of all ranks; the arguments are those of Horovod's.

    The sources may be Keras's variables, in any structure.
    """

    def __init__(self, gradtape: tf.GradientTape, **options: Any) -> None:
        self._tape = _horovod.DistributedGradientTape(gradtape, **options)

    def __enter__(self) -> DistributedGradientTape:  # noqa: PYI034 - Python 3.9 and 3.10 have no Self
        """Record, as the tape within does."""
        self._tape.__enter__()
        return self

    def __exit__(self, *failure: object) -> None:
        """Record no more."""
        self._tape.__exit__(*failure)

    def __getattr__(self, name: str) -> Any:
        """Give what the tape within has."""
        return getattr(self._tape, name)

    def gradient(self, target: Any, sources: Any, output_gradients: Any = None) -> Any:
        """Give the gradients' mean (or the ``op`` asked for) over all ranks, structured as the sources are."""
        flat = [_tensorflow_variable(each) for each in tf.nest.flatten(sources)]
        return tf.nest.pack_sequence_as(sources, self._tape.gradient(target, flat, output_gradients))


class _Distributed:
    """What an optimizer of Keras 3 does before it applies gradients."""

    _reduction: dict[str, Any]

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None) -> Any:
        """Apply the gradients of all ranks. Variables without a gradient have none on any rank."""
        there = [grad for grad in grads if grad is not None]
        reduced = iter(_horovod.grouped_allreduce(there, **self._reduction) if there and _horovod.size() > 1 else there)
        everywhere = [None if grad is None else next(reduced) for grad in grads]
        return super().apply(everywhere, trainable_variables)  # type: ignore[misc]


def DistributedOptimizer(optimizer: Any, **options: Any) -> Any:  # noqa: N802 - Horovod's name
    """Give an optimizer with the same settings that applies the gradients of all ranks.

    With Keras 3 the options are ``op`` (``hvd.Average``) and ``compression``, with Keras 2 Horovod's; with Keras 2 only
    ``fit`` and ``minimize`` ask the other ranks, and custom loops have the tape for it. The class has the optimizer's
    own name: a saved model is loaded without Horovod.
    """
    if not _is_keras_3(optimizer):
        import horovod.tensorflow.keras as keras_2

        distributed = keras_2.DistributedOptimizer(optimizer, **options)
        # Else a saved model asks for Horovod's module.
        type(distributed).__module__ = type(optimizer).__module__
        return distributed
    unknown = sorted(set(options) - {"op", "compression"})
    if unknown:
        raise TypeError(
            f"DistributedOptimizer with Keras 3 has op and compression, but not {', '.join(unknown)}; leave that out"
        )
    own = type(optimizer)
    made = type(own.__name__, (_Distributed, own), {"__module__": own.__module__})
    distributed = made.from_config(optimizer.get_config())  # type: ignore[attr-defined]
    distributed._reduction = {"op": _horovod.Average, **options}  # noqa: SLF001 - made here
    return distributed


def _is_keras_3(optimizer: Any) -> bool:
    return any(each.__module__.partition(".")[0] == "keras" for each in type(optimizer).__mro__) and hasattr(
        optimizer, "apply"
    )


class BroadcastGlobalVariablesCallback(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """Gives every rank the root's weights, and its optimizer's state, when the first batch has made them."""

    def __init__(self, root_rank: int = 0) -> None:
        super().__init__()
        self._root_rank = root_rank
        self._done = False

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002 - Keras gives them by name
        """Broadcast once."""
        if self._done:
            return
        variables = self.model.optimizer.variables
        # A method in the older of Keras 2's optimizers.
        state = variables() if callable(variables) else variables
        broadcast_variables([*self.model.weights, *state], self._root_rank)
        self._done = True


class MetricAverageCallback(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """Makes each epoch's metrics the mean of all ranks', before later callbacks see them."""

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:  # noqa: ARG002 - Keras's
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
