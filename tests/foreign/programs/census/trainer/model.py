import tensorflow as tf


def input_fn(features, labels, shuffle, num_epochs, batch_size):
    dataset = tf.data.Dataset.from_tensor_slices((features, labels))
    if shuffle:
        dataset = dataset.shuffle(len(features))
    return dataset.repeat(num_epochs).batch(batch_size)


def create_keras_model(input_dim, learning_rate):
    model = tf.keras.Sequential([
        tf.keras.layers.Dense(8, activation=tf.nn.relu, input_shape=(input_dim,)),
        tf.keras.layers.Dense(1, activation=tf.nn.sigmoid),
    ])  # fmt: skip
    optimizer = tf.keras.optimizers.RMSprop(learning_rate=learning_rate)
    model.compile(loss="binary_crossentropy", optimizer=optimizer, metrics=["accuracy"])
    return model
