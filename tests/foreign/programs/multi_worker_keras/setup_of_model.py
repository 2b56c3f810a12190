import numpy as np
import tensorflow as tf


def dataset(batch_size):
    inputs = np.random.default_rng(0).random((64, 4), dtype=np.float32)
    return tf.data.Dataset.from_tensor_slices((inputs, inputs.sum(axis=1))).shuffle(64).repeat().batch(batch_size)


def build_and_compile():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
    model.compile(loss="mse", optimizer=tf.keras.optimizers.SGD(learning_rate=0.01))
    return model
