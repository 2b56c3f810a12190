"""Keras takes exactly one epoch of the channel for each of its own."""

import warnings

import pytest
from pipe_dataset.framings import line

pytestmark = pytest.mark.tf
ROWS = b"".join(line(b"%d" % number) for number in range(12))


@pytest.fixture
def fit(tf, pipe_host):
    from scriptmode_runtime.tensorflow import PipeModeDataset

    def fitted(change=lambda dataset: dataset, *, is_built=True, **arguments):
        def parse(rows):
            numbers = tf.strings.to_number(rows)[:, tf.newaxis]
            return numbers, 2 * numbers

        seen = []

        class Count(tf.keras.callbacks.Callback):
            def on_train_batch_end(self, batch, logs=None):
                seen.append(batch)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            layers = [tf.keras.Input((1,)), tf.keras.layers.Dense(1)]
            model = tf.keras.Sequential(layers if is_built else layers[1:])
            model.compile("sgd", "mse")
            batches = PipeModeDataset("train", "TextLine", batch_size=4, timeout=60).map(parse)
            model.fit(change(batches), verbose=0, callbacks=[Count()], **arguments)
        return seen

    return fitted


@pytest.mark.parametrize("is_built", [True, False], ids=["built", "built by fit"])
def test_an_epoch_of_fit_is_an_epoch_of_the_channel(pipe_host, fit, is_built):
    pipe_host.feed(ROWS, ROWS, ROWS)
    assert fit(epochs=3, is_built=is_built) == [0, 1, 2] * 3
    assert pipe_host.fed() == ["read"] * 3


def test_with_steps_per_epoch_one_iterator_goes_on_through_the_epochs(pipe_host, fit):
    pipe_host.feed(ROWS, ROWS)
    assert fit(lambda batches: batches.repeat(), epochs=3, steps_per_epoch=2) == [0, 1] * 3
    assert pipe_host.endings[:1] == ["read"]


def test_validation_reads_its_own_channel(pipe_host, fit, tf):
    from scriptmode_runtime.tensorflow import PipeModeDataset

    pipe_host.channels(train="Pipe", test="Pipe")
    pipe_host.feed(ROWS, ROWS)
    pipe_host.feed(ROWS, ROWS, channel="test")
    rows = PipeModeDataset("test", "TextLine", batch_size=4, timeout=60)
    numbers = rows.map(lambda row: (tf.strings.to_number(row)[:, tf.newaxis],) * 2)
    fit(epochs=2, validation_data=numbers)
    assert pipe_host.fed() == ["read"] * 4


def test_a_distributed_dataset_reads_each_epoch_once(pipe_host, tf):
    from scriptmode_runtime.tensorflow import PipeModeDataset

    pipe_host.feed(ROWS, ROWS)
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    rows = strategy.experimental_distribute_dataset(PipeModeDataset("train", "TextLine", batch_size=4, timeout=60))
    for _ in range(2):
        assert sum(len(batch) for batch in rows) == 12
    assert pipe_host.fed() == ["read"] * 2
