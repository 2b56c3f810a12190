"""AWS's data parallel library, which is in some of AWS's images alone."""

import tensorflow as tf
import smdistributed.dataparallel.tensorflow as dist  # isort: skip

dist.init()
gpus = tf.config.experimental.list_physical_devices("GPU")
if gpus:
    tf.config.experimental.set_visible_devices(gpus[dist.local_rank()], "GPU")
