"""AWS's data parallel library, which is in some of AWS's images alone."""

import smdistributed.dataparallel.tensorflow as sdp
import tensorflow as tf

sdp.init()
gpus = tf.config.experimental.list_physical_devices("GPU")
if gpus:
    tf.config.experimental.set_visible_devices(gpus[sdp.local_rank()], "GPU")
