"""Train as on Cloud ML Engine: a master, workers and parameter servers, each on its own host, as ``TF_CONFIG`` says.

    python -m trainer.task --max_steps 1000 --job-dir DIR

Every trainer, master or worker, reads its own share of the images and updates the shared variables without waiting for
another. The master also initializes and checkpoints them, writes summaries, evaluates, and at the end builds the graph
once more, for one node, and exports it. Without a cluster in ``TF_CONFIG`` it does all of that alone.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

# Read when TensorFlow is imported; its servers tell of each connection.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow.compat.v1 as tf

from trainer import mnist

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MASTER = ("master", "chief")


class Task(NamedTuple):
    """What this process is, and by job the addresses of all; no addresses where it trains alone."""

    job: str
    index: int
    cluster: Mapping[str, Sequence[str]]

    @property
    def is_master(self) -> bool:
        """Whether it initializes, saves, evaluates and exports."""
        return self.job in MASTER

    @property
    def trainers(self) -> int:
        """How many train: the master and the workers."""
        return max(1, sum(len(hosts) for job, hosts in self.cluster.items() if job != "ps"))

    @property
    def position(self) -> int:
        """Its place among them, the master's first."""
        return 0 if self.is_master else self.index + sum(job in MASTER for job in self.cluster)


class Graph(NamedTuple):
    """What a trainer's session runs."""

    inputs: mnist.Inputs
    loss: tf.Tensor
    accuracy: tf.Tensor
    #: Makes a step, and gives how many all trainers have made with it.
    step: tf.Tensor
    global_step: tf.Variable
    summaries: tf.Tensor

    def feed(self, images: mnist.Images) -> dict[tf.Tensor, Any]:
        """Give images to the session's run."""
        return {self.inputs.images: images.x, self.inputs.labels: images.y}


def read_task(environ: Mapping[str, str] = os.environ) -> Task:
    """Read ``TF_CONFIG``."""
    config = json.loads(environ.get("TF_CONFIG") or "{}")
    own = config.get("task", {})
    return Task(own.get("type", "master"), int(own.get("index", 0)), config.get("cluster", {}))


def build(arguments: argparse.Namespace, task: Task) -> Graph:
    """Build this trainer's graph: its variables on the parameter servers in turn, all else here."""
    devices = None
    if task.cluster.get("ps"):
        devices = tf.train.replica_device_setter(
            cluster=tf.train.ClusterSpec(task.cluster), worker_device=f"/job:{task.job}/task:{task.index}"
        )
    with tf.device(devices):
        tf.set_random_seed(arguments.seed)
        global_step = tf.train.get_or_create_global_step()
        inputs = mnist.inputs()
        logits = mnist.inference(inputs.images, arguments.hidden1, arguments.hidden2)
        loss = mnist.loss(logits, inputs.labels)
        accuracy = mnist.accuracy(logits, inputs.labels)
        with tf.control_dependencies([mnist.training(loss, arguments.learning_rate, global_step)]):
            step = global_step.read_value()
        tf.summary.scalar("loss", loss)
        tf.summary.scalar("accuracy/train", accuracy)
        return Graph(inputs, loss, accuracy, step, global_step, tf.summary.merge_all())


def supervisor(arguments: argparse.Namespace, task: Task, graph: Graph) -> Any:
    """Give what makes sessions: the master's initializes, restores and saves, a worker's waits for the master's."""
    devices = f"/job:{task.job}/task:{task.index}" if task.cluster else None
    with tf.device(devices):
        # A sharded saver would let each parameter server write to the disk of its own host.
        saver = tf.train.Saver(sharded=False, max_to_keep=2)
        return tf.train.Supervisor(
            is_chief=task.is_master,
            logdir=str(arguments.job_dir) if task.is_master else None,
            saver=saver,
            summary_op=None,  # written with the steps below, for their inputs are fed
            global_step=graph.global_step,
            save_model_secs=arguments.save_secs,
            # A worker that came first looks again so many seconds later.
            recovery_wait_secs=1,
        )


def session_config(task: Task) -> Any:
    """Let a trainer talk to the parameter servers alone: it needs no other trainer to begin, or to go on."""
    filters = ["/job:ps", f"/job:{task.job}/task:{task.index}"] if task.cluster else []
    return tf.ConfigProto(device_filters=filters)


def evaluate(session: Any, graph: Graph, held_out: mnist.Images) -> float:
    """Give the part of the held-out images that the variables, as they are now, classify right."""
    right = 0.0
    for first in range(0, len(held_out.y), mnist.SCORING_BATCH):
        piece = slice(first, first + mnist.SCORING_BATCH)
        images = mnist.Images(held_out.x[piece], held_out.y[piece])
        right += session.run(graph.accuracy, graph.feed(images)) * len(images.y)
    return right / len(held_out.y)


class Master:
    """What the master does beside its steps: it tells how far all are, summarizes and evaluates."""

    def __init__(self, arguments: argparse.Namespace, graph: Graph, writer: Any) -> None:
        self.arguments = arguments
        self.graph = graph
        self.writer = writer
        self.held_out = mnist.load(arguments.eval_data)
        self.told = (0, time.monotonic())
        self.evaluated = 0

    def begin(self, step: int) -> None:
        """Start from the step of a checkpoint, or from 0."""
        self.told = (step, time.monotonic())
        self.evaluated = step

    def after(self, session: Any, step: int, feed: Any) -> None:
        """Write what is due after a step; `step` counts those of all trainers."""
        if step - self.told[0] >= self.arguments.log_every:
            self.tell(session, step, feed)
        if step - self.evaluated >= self.arguments.eval_every:
            self.evaluate(session, step)

    def tell(self, session: Any, step: int, feed: Any) -> None:
        """Write a line, and the batch's summaries."""
        loss, accuracy, summaries = session.run([self.graph.loss, self.graph.accuracy, self.graph.summaries], feed)
        now = time.monotonic()
        rate = (step - self.told[0]) / max(now - self.told[1], 1e-9)
        print(f"step {step}: loss={loss:.4f} accuracy={accuracy:.4f} steps/s={rate:.1f}", flush=True)
        self.writer.add_summary(summaries, step)
        self.told = (step, now)

    def evaluate(self, session: Any, step: int) -> None:
        """Score the held-out images, and write it down."""
        accuracy = evaluate(session, self.graph, self.held_out)
        print(f"evaluation at step {step}: eval_accuracy={accuracy:.4f}", flush=True)
        value = tf.Summary.Value(tag="accuracy/eval", simple_value=accuracy)
        self.writer.add_summary(tf.Summary(value=[value]), step)
        self.writer.flush()
        self.evaluated = step


def train(arguments: argparse.Namespace, task: Task, target: str) -> None:
    """Step until all trainers together have made the steps; the master saves and evaluates what they made."""
    mine = mnist.share(mnist.load(arguments.train_data), task.position, task.trainers)
    batches = mnist.batches(mine, arguments.batch_size, arguments.seed + task.position)
    with tf.Graph().as_default():
        graph = build(arguments, task)
        keeper = supervisor(arguments, task, graph)
        master = Master(arguments, graph, keeper.summary_writer) if task.is_master else None
        made = 0
        with keeper.managed_session(target, config=session_config(task), start_standard_services=True) as session:
            step = int(session.run(graph.global_step))
            if master:
                master.begin(step)
            while step < arguments.max_steps and not keeper.should_stop():
                feed = graph.feed(next(batches))
                step = int(session.run(graph.step, feed))
                made += 1
                if master and step < arguments.max_steps:
                    master.after(session, step, feed)
            if master:
                # Also where the other trainers made the steps at which a line was due.
                master.tell(session, step, graph.feed(next(batches)))
                master.evaluate(session, step)
                keeper.saver.save(session, keeper.save_path, global_step=graph.global_step)
        print(f"{task.job} {task.index}: made {made} of the first {step} steps", flush=True)


def export(arguments: argparse.Namespace) -> Path:
    """Build the graph once more, on this node alone, fill it from the checkpoint, and write it as a SavedModel."""
    folder = Path(arguments.export_dir, "1")
    with tf.Graph().as_default(), tf.Session() as session:
        images = tf.placeholder(tf.uint8, [None, 28, 28], name="images")
        logits = mnist.inference(images, arguments.hidden1, arguments.hidden2)
        outputs = {"logits": logits, "probabilities": tf.nn.softmax(logits), "classes": tf.argmax(logits, axis=-1)}
        tf.train.Saver().restore(session, tf.train.latest_checkpoint(str(arguments.job_dir)))
        builder = tf.saved_model.Builder(str(folder))
        signature = tf.saved_model.predict_signature_def({"images": images}, outputs)
        builder.add_meta_graph_and_variables(
            session,
            [tf.saved_model.tag_constants.SERVING],
            signature_def_map={tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY: signature},
        )
        builder.save()
    print(f"exported {folder}", flush=True)
    return folder


def parse(words: Sequence[str] | None = None, environ: Mapping[str, str] = os.environ) -> argparse.Namespace:
    """Read the arguments; folders that are not named are those of the training job."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0], allow_abbrev=False)
    add = parser.add_argument
    outputs, model = environ.get("SM_OUTPUT_DATA_DIR"), environ.get("SM_MODEL_DIR")
    add("--job-dir", type=Path, default=outputs and Path(outputs, "job"), help="checkpoints and summaries")
    add("--export_dir", type=Path, default=model, help="the SavedModel; default: what becomes model.tar.gz")
    add("--train_data", type=Path, default=environ.get("SM_CHANNEL_TRAIN"), help="folder of .npz files")
    add("--eval_data", type=Path, default=environ.get("SM_CHANNEL_EVAL"), help="folder of .npz files")
    add("--max_steps", type=int, default=1000, help="steps of all trainers together")
    add("--batch_size", type=int, default=64)
    add("--learning_rate", type=float, default=0.001)
    add("--hidden1", type=int, default=128, help="units of the first hidden layer")
    add("--hidden2", type=int, default=32, help="units of the second")
    add("--log_every", type=int, default=50, help="steps between two of the master's lines")
    add("--eval_every", type=int, default=500, help="steps between two evaluations")
    add("--save_secs", type=int, default=60, help="seconds between two checkpoints")
    add("--seed", type=int, default=1)
    arguments = parser.parse_args(words)
    arguments.export_dir = arguments.export_dir or (arguments.job_dir and arguments.job_dir / "export")
    for name, option in (("job_dir", "--job-dir"), ("train_data", "--train_data"), ("eval_data", "--eval_data")):
        if getattr(arguments, name) is None:
            parser.error(f"{option} names no folder, and no training job does; give --input train=... --input eval=...")
        if str(getattr(arguments, name)).startswith("s3:"):
            parser.error(f"{option} is in S3, but this program writes files; leave it out for a folder of the job's")
    return arguments


def main() -> None:
    """Do this process's part."""
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_v2_behavior()
    # TensorFlow 1's own variables take no lock, and may lose updates and counts of steps that come at once.
    tf.enable_resource_variables()
    task, arguments = read_task(), parse()
    target = ""
    if task.cluster:
        server = tf.train.Server(tf.train.ClusterSpec(task.cluster), job_name=task.job, task_index=task.index)
        if task.job == "ps":
            server.join()
        target = server.target
    train(arguments, task, target)
    if task.is_master:
        export(arguments)


if __name__ == "__main__":
    main()
