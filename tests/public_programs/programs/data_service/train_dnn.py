import argparse
import os

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--tf_data_mode", type=str, default="local")
parser.add_argument("--batch_size", type=int)
parser.add_argument("--dispatcher_host", type=str)
parser.add_argument("--num_of_data_workers", type=int, default=1)
parser.add_argument("--model_dir", type=str, default=os.environ.get("SM_MODEL_DIR"))
parser.add_argument("--checkpoint-path", type=str, default="/opt/ml/checkpoints")
args = parser.parse_args()

dataset = tf.data.Dataset.range(40).map(lambda each: each * 2).batch(args.batch_size)
if args.tf_data_mode == "service":
    service = tf.data.experimental.service.distribute("distributed_epoch", f"grpc://{args.dispatcher_host}:6000")
    dataset = dataset.apply(service)
total = dataset.prefetch(tf.data.experimental.AUTOTUNE).reduce(
    tf.constant(0, tf.int64), lambda a, b: a + tf.reduce_sum(b)
)
print("sum", int(total))
with open(os.path.join("/opt/ml/model", "sum"), "w") as f:
    f.write(str(int(total)))
