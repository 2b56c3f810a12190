"""AWS's script mode: every argument has a default from the environment, some as JSON; /opt/ml is in the text."""

import argparse
import json
import logging
import os
import re

import model_def
import numpy as np
import tensorflow as tf

logging.getLogger().setLevel(logging.INFO)

# The serving container finds the program for requests beside the model.
os.system("mkdir /opt/ml/model/code")
os.system("cp inference.py /opt/ml/model/code")
os.system("cp requirements.txt /opt/ml/model/code")


def main(args):
    if "sourcedir.tar.gz" in args.tensorboard_dir:
        tensorboard_dir = re.sub("source/sourcedir.tar.gz", "model", args.tensorboard_dir)
    else:
        tensorboard_dir = args.tensorboard_dir
    logging.info("Writing TensorBoard logs to %s", tensorboard_dir)
    assert args.data_config["train"]["TrainingInputMode"] == "File"
    assert "sagemaker_mpi_enabled" not in args.fw_params
    inputs = np.load(os.path.join(args.train, "x.npy"))
    model = model_def.get_model(args.learning_rate, args.optimizer, args.momentum, len(args.hosts))
    callbacks = []
    if args.current_host == args.hosts[0]:
        callbacks.append(tf.keras.callbacks.ModelCheckpoint(args.output_data_dir + "/checkpoint-{epoch}.h5"))
    history = model.fit(inputs, inputs.sum(axis=1), args.batch_size, args.epochs, callbacks=callbacks, verbose=2)
    if args.current_host == args.hosts[0]:
        with open(args.model_output_dir + "/history.p", "w") as f:
            f.write(json.dumps(history.history))
        model.save(os.path.join(args.model_output_dir, "1"))
        logging.info("Model successfully saved at: %s", args.model_output_dir)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", type=list, default=json.loads(os.environ.get("SM_HOSTS")))
    parser.add_argument("--current-host", type=str, default=os.environ.get("SM_CURRENT_HOST"))
    parser.add_argument("--train", type=str, required=False, default=os.environ.get("SM_CHANNEL_TRAIN"))
    parser.add_argument("--model_dir", type=str, required=True, help="The directory where the model will be stored.")
    parser.add_argument("--model_output_dir", type=str, default=os.environ.get("SM_MODEL_DIR"))
    parser.add_argument("--output_data_dir", type=str, default=os.environ.get("SM_OUTPUT_DATA_DIR"))
    parser.add_argument("--tensorboard-dir", type=str, default=os.environ.get("SM_MODULE_DIR"))
    parser.add_argument("--learning-rate", type=float, default=0.001)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--data-config", type=json.loads, default=os.environ.get("SM_INPUT_DATA_CONFIG"))
    parser.add_argument("--fw-params", type=json.loads, default=os.environ.get("SM_FRAMEWORK_PARAMS"))
    parser.add_argument("--optimizer", type=str, default="adam")
    parser.add_argument("--momentum", type=float, default="0.9")
    main(parser.parse_args())
