"""TensorFlow 1's API on TensorFlow 2: placeholders, a session, a saver, an exported model, tf.app.run."""

import os

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
tf.logging.set_verbosity(tf.logging.INFO)
tf.app.flags.DEFINE_integer("training_steps", 10, "")
tf.app.flags.DEFINE_string("model_dir", None, "")
tf.app.flags.DEFINE_bool("verbose", False, "")
FLAGS = tf.app.flags.FLAGS


def main(unused_argv):
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    y = tf.placeholder(tf.float32, [None, 1])
    prediction = (
        tf.layers.dense(x, 1, name="dense")
        if hasattr(tf.layers, "dense")
        else tf.matmul(x, tf.get_variable("w", [2, 1]))
    )
    loss = tf.losses.mean_squared_error(y, prediction)
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, global_step=tf.train.get_or_create_global_step())
    saver = tf.train.Saver()
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(FLAGS.training_steps):
            batch = np.random.rand(8, 2)
            _, value = sess.run([train_op, loss], {x: batch, y: batch.sum(axis=1, keepdims=True)})
        print("verbose", FLAGS.verbose, "loss", float(value))
        saver.save(sess, os.path.join(os.environ["SM_OUTPUT_DATA_DIR"], "model.ckpt"))
        tf.saved_model.simple_save(sess, "/opt/ml/model/1", inputs={"x": x}, outputs={"y": prediction})


if __name__ == "__main__":
    tf.app.run()
