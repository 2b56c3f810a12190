"""Train as on Cloud ML Engine: a master, workers and parameter servers on separate hosts, described by ``TF_CONFIG``.

    python -m trainer.task --max_steps 1000 --job-dir DIR

Every trainer, master or worker, reads its own shard of the images and updates the shared variables without waiting
for the other trainers. The master also initializes and checkpoints the variables, writes summaries and evaluates. At
the end it builds the graph again for one node and exports it. Without a cluster in ``TF_CONFIG`` one process does all
of this.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

# TensorFlow reads this when it is imported. It hides the messages of its servers about connections.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow.compat.v1 as tf

from trainer import mnist

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MASTER = ("master", "chief")


class Task(NamedTuple):
    """The task of this process, and the addresses of all tasks by job name; no addresses without a cluster."""

    job: str
    index: int
    cluster: Mapping[str, Sequence[str]]

    @property
    def is_master(self) -> bool:
        """Whether this task initializes, saves, evaluates and exports."""
        return self.job in MASTER

    @property
    def trainers(self) -> int:
        """Number of trainers: the master and the workers."""
        return max(1, sum(len(hosts) for job, hosts in self.cluster.items() if job != "ps"))

    @property
    def position(self) -> int:
        """Index of this task among the trainers; the master's is 0."""
        return 0 if self.is_master else self.index + sum(job in MASTER for job in self.cluster)


class Graph(NamedTuple):
    """The tensors and operations that a trainer's session runs."""

    inputs: mnist.Inputs
    loss: tf.Tensor
    accuracy: tf.Tensor
    #: Makes a step and returns the number of steps of all trainers, including this one.
    step: tf.Tensor
    global_step: tf.Variable
    summaries: tf.Tensor

    def feed(self, images: mnist.Images) -> dict[tf.Tensor, Any]:
        """Return the feed dictionary for images."""
        return {self.inputs.images: images.x, self.inputs.labels: images.y}


def read_task(environ: Mapping[str, str] = os.environ) -> Task:
    """Read ``TF_CONFIG``."""
    config = json.loads(environ.get("TF_CONFIG") or "{}")
    own = config.get("task", {})
    return Task(own.get("type", "master"), int(own.get("index", 0)), config.get("cluster", {}))


def build(arguments: argparse.Namespace, task: Task) -> Graph:
    """Build this trainer's graph: variables on the parameter servers in turn, everything else on this host."""
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


def create_supervisor(arguments: argparse.Namespace, task: Task, graph: Graph) -> Any:
    """Create the supervisor: the master's initializes, restores and saves; a worker's waits for the master."""
    devices = f"/job:{task.job}/task:{task.index}" if task.cluster else None
    with tf.device(devices):
        # With a sharded saver each parameter server would write to the disk of its own host.
        saver = tf.train.Saver(sharded=False, max_to_keep=2)
        return tf.train.Supervisor(
            is_chief=task.is_master,
            logdir=str(arguments.job_dir) if task.is_master else None,
            saver=saver,
            summary_op=None,  # written with the steps below, because the summaries need their inputs
            global_step=graph.global_step,
            save_model_secs=arguments.save_secs,
            # A worker that started before the master checks again after this many seconds.
            recovery_wait_secs=1,
        )


def session_config(task: Task) -> Any:
    """Return a configuration that connects a trainer only to parameter servers: it never waits for a trainer."""
    filters = ["/job:ps", f"/job:{task.job}/task:{task.index}"] if task.cluster else []
    return tf.ConfigProto(device_filters=filters)


def evaluate(session: Any, graph: Graph, held_out: mnist.Images) -> float:
    """Return the fraction of the held-out images that the current variables classify correctly."""
    right = 0.0
    for first in range(0, len(held_out.y), mnist.SCORING_BATCH):
        piece = slice(first, first + mnist.SCORING_BATCH)
        images = mnist.Images(held_out.x[piece], held_out.y[piece])
        right += session.run(graph.accuracy, graph.feed(images)) * len(images.y)
    return right / len(held_out.y)


class Master:
    """The master's additional work: it prints the progress of all trainers, writes summaries and evaluates."""

    def __init__(self, arguments: argparse.Namespace, graph: Graph, writer: Any) -> None:
        self.arguments = arguments
        self.graph = graph
        self.writer = writer
        self.held_out = mnist.load(arguments.eval_data)
        self.reported = (0, time.monotonic())
        self.evaluated = 0

    def begin(self, step: int) -> None:
        """Start counting from the step of a checkpoint, or from 0."""
        self.reported = (step, time.monotonic())
        self.evaluated = step

    def after(self, session: Any, step: int, feed: Any) -> None:
        """Print progress and evaluate if they are due after this step; `step` counts the steps of all trainers."""
        if step - self.reported[0] >= self.arguments.log_every:
            self.report(session, step, feed)
        if step - self.evaluated >= self.arguments.eval_every:
            self.evaluate(session, step)

    def report(self, session: Any, step: int, feed: Any) -> None:
        """Print a line of progress and write the batch's summaries."""
        loss, accuracy, summaries = session.run([self.graph.loss, self.graph.accuracy, self.graph.summaries], feed)
        now = time.monotonic()
        rate = (step - self.reported[0]) / max(now - self.reported[1], 1e-9)
        print(f"step {step}: loss={loss:.4f} accuracy={accuracy:.4f} steps/s={rate:.1f}", flush=True)
        self.writer.add_summary(summaries, step)
        self.reported = (step, now)

    def evaluate(self, session: Any, step: int) -> None:
        """Evaluate the held-out images; print the accuracy and write it as a summary."""
        accuracy = evaluate(session, self.graph, self.held_out)
        print(f"evaluation at step {step}: eval_accuracy={accuracy:.4f}", flush=True)
        value = tf.Summary.Value(tag="accuracy/eval", simple_value=accuracy)
        self.writer.add_summary(tf.Summary(value=[value]), step)
        self.writer.flush()
        self.evaluated = step


def train(arguments: argparse.Namespace, task: Task, target: str) -> None:
    """Train until all trainers together have made `max_steps` steps; the master also saves and evaluates."""
    mine = mnist.share(mnist.load(arguments.train_data), task.position, task.trainers)
    batches = mnist.batches(mine, arguments.batch_size, arguments.seed + task.position)
    with tf.Graph().as_default():
        graph = build(arguments, task)
        supervisor = create_supervisor(arguments, task, graph)
        master = Master(arguments, graph, supervisor.summary_writer) if task.is_master else None
        made = 0
        with supervisor.managed_session(target, config=session_config(task), start_standard_services=True) as session:
            step = int(session.run(graph.global_step))
            if master:
                master.begin(step)
            while step < arguments.max_steps and not supervisor.should_stop():
                feed = graph.feed(next(batches))
                step = int(session.run(graph.step, feed))
                made += 1
                if master and step < arguments.max_steps:
                    master.after(session, step, feed)
            if master:
                # Also if other trainers made the last steps at which a line was due.
                master.report(session, step, graph.feed(next(batches)))
                master.evaluate(session, step)
                supervisor.saver.save(session, supervisor.save_path, global_step=graph.global_step)
        print(f"{task.job} {task.index}: made {made} of the first {step} steps", flush=True)


def export(arguments: argparse.Namespace) -> Path:
    """Build the graph again on this node, restore the checkpoint into it, and write it as a SavedModel."""
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
    """Parse the arguments; the default directories are those of the training job."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0], allow_abbrev=False)
    add = parser.add_argument
    outputs, model = environ.get("SM_OUTPUT_DATA_DIR"), environ.get("SM_MODEL_DIR")
    add("--job-dir", type=Path, default=outputs and Path(outputs, "job"), help="checkpoints and summaries")
    add("--export_dir", type=Path, default=model, help="the SavedModel; default: what becomes model.tar.gz")
    add("--train_data", type=Path, default=environ.get("SM_CHANNEL_TRAIN"), help="directory of .npz files")
    add("--eval_data", type=Path, default=environ.get("SM_CHANNEL_EVAL"), help="directory of .npz files")
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
            parser.error(
                f"{option} is required outside a training job; in a job, set --input train=... --input eval=..."
            )
        if str(getattr(arguments, name)).startswith("s3:"):
            parser.error(
                f"{option} is in S3, but this program needs a local directory; omit it to use the job's directory"
            )
    return arguments


def main() -> None:
    """Run the task of this process."""
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_v2_behavior()
    # TensorFlow 1's reference variables have no locks, and can lose concurrent updates and steps.
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
