"""A SavedModel with a signature of its own, exported to a version below /opt/ml/model and read back."""

import tensorflow as tf

EXPORT = "/opt/ml/model/00000001"


class Scaler(tf.Module):
    def __init__(self):
        super().__init__()
        self.factor = tf.Variable(3.0)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    def serve(self, x):
        return {"y": self.factor * x}


module = Scaler()
tf.saved_model.save(module, EXPORT, signatures={"serving_default": module.serve})
signature = tf.saved_model.load(EXPORT).signatures["serving_default"]
print("served", signature(x=tf.constant([2.0]))["y"].numpy().tolist())
