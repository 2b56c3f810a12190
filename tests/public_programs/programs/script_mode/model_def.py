import tensorflow as tf


def get_model(learning_rate, optimizer, momentum, size):
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
    if optimizer.lower() == "sgd":
        opt = tf.keras.optimizers.SGD(learning_rate * size, momentum=momentum)
    else:
        opt = tf.keras.optimizers.Adam(learning_rate * size)
    model.compile(loss="mse", optimizer=opt, metrics=["mae"])
    return model
