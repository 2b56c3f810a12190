"""AWS's pipe mode: its own dataset of TFRecords, imported only where the channel's mode asks for it."""

import argparse
import json
import os

import tensorflow as tf


def _input(args, channel_name):
    channel_input_dir = args.training_env["channel_input_dirs"][channel_name]
    mode = args.data_config[channel_name]["TrainingInputMode"]
    if mode == "Pipe":
        from sagemaker_tensorflow import PipeModeDataset

        dataset = PipeModeDataset(channel=channel_name, record_format="TFRecord")
    else:
        dataset = tf.data.TFRecordDataset(tf.io.gfile.glob(f"{channel_input_dir}/*.tfrecords"))
    dataset = dataset.repeat(args.epochs)
    dataset = dataset.map(_dataset_parser, num_parallel_calls=10)
    return dataset.shuffle(64).batch(args.batch_size, drop_remainder=True).prefetch(10)


def _dataset_parser(value):
    features = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
    example = tf.io.parse_single_example(value, features)
    image = tf.io.decode_raw(example["image"], tf.uint8)
    image.set_shape([4])
    return tf.cast(image, tf.float32), tf.one_hot(tf.cast(example["label"], tf.int32), 2)


def main(args):
    model = tf.keras.Sequential([tf.keras.layers.Dense(2, activation="softmax", input_shape=(4,))])
    model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
    history = model.fit(_input(args, "train"), epochs=1, verbose=2)
    print("batches", history.params["steps"] or len(history.epoch))
    model.save_weights(args.model_output_dir + "/model.h5")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--model_dir", type=str, required=True)
    parser.add_argument("--model_output_dir", type=str, default=os.environ.get("SM_MODEL_DIR"))
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--data-config", type=json.loads, default=os.environ.get("SM_INPUT_DATA_CONFIG"))
    parser.add_argument("--training-env", type=json.loads, default=os.environ.get("SM_TRAINING_ENV"))
    main(parser.parse_args())
