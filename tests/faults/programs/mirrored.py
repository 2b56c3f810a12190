"""TensorFlow's workers train in step: each step is one allreduce of all of them."""

import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()


@tf.function
def add():
    def of_a_worker():
        return tf.distribute.get_replica_context().all_reduce("sum", tf.ones([1000]))

    return strategy.run(of_a_worker)


def step():
    print(float(strategy.experimental_local_results(add())[0][0]), "workers", flush=True)
