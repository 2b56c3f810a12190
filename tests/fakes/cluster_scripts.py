"""A small script for each layout of TensorFlow's clusters: two hosts compute a sum together."""

import re

MIRRORED = """
    import tensorflow as tf
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    print("result", float(strategy.reduce("sum", strategy.run(tf.function(lambda: tf.constant(1.0))), axis=None)))
"""
#: With a single thread between operations a server waits for ever in such steps.
COORDINATOR = """
    import tensorflow as tf
    strategy = tf.distribute.ParameterServerStrategy(tf.distribute.cluster_resolver.TFConfigClusterResolver())
    with strategy.scope():
        variables = [tf.Variable(0.0), tf.Variable(0.0)]
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    @tf.function
    def step():
        both = sum(variables)
        for variable in variables:
            variable.assign_add(0.0 * both + 0.0625)
    for _ in range(16):
        coordinator.schedule(step)
    coordinator.join()
    print("result", float(sum(variables)))
"""
BETWEEN_GRAPH = """
    import json, os
    import tensorflow.compat.v1 as tf
    config = json.loads(os.environ["TF_CONFIG"])
    role, index = config["task"]["type"], config["task"]["index"]
    server = tf.distribute.Server(config["cluster"], job_name=role, task_index=index)
    own = f"/job:{role}/task:{index}"
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(worker_device=own, cluster=config["cluster"])):
            tf.train.get_or_create_global_step()
            variables = [tf.get_variable(name, initializer=1.0, use_resource=True) for name in "ab"]
            both = sum(variables)
            step = tf.group(*[variable.assign_add(0.0 * both) for variable in variables])
        settings = tf.ConfigProto(device_filters=["/job:ps", own])
        with tf.train.MonitoredTrainingSession(server.target, is_chief=role == "master", config=settings) as session:
            for _ in range(16):
                session.run(step)
            print("result", float(session.run(both)))
"""
HOROVOD = """
    import horovod.tensorflow as hvd
    import tensorflow as tf
    hvd.init()
    print("result", float(hvd.allreduce(tf.constant(1.0), op=hvd.Sum)))
"""
SERVERS = {"sagemaker_parameter_server_enabled": True}
MPI = {"sagemaker_mpi_enabled": True, "sagemaker_mpi_num_of_processes_per_host": 1}
#: By layout: the script, its hyperparameters, and how many processes of two hosts print the result.
LAYOUTS = {
    "mirrored": (MIRRORED, {"sagemaker_multi_worker_mirrored_strategy_enabled": True}, 2),
    "coordinator": (COORDINATOR, {**SERVERS, "sagemaker_parameter_server_coordinator": True}, 1),
    "between-graph": (BETWEEN_GRAPH, SERVERS, 2),
    "horovod": (HOROVOD, MPI, 2),
}


def compute_together(jobs, layout):
    """Run a layout's script on two hosts; assert that each process has the sum."""
    script, hyperparameters, count = LAYOUTS[layout]
    name = jobs.start(script, hosts=2, hyperparameters=hyperparameters, max_run=300)
    jobs.completed(name)
    lines = jobs.lines(name)
    # TensorFlow's own lines may speak of numerical results.
    results = [line.split()[-1] for line in lines if re.search(r"\bresult \S+$", line)]
    assert results == ["2.0"] * count, "\n".join(lines)
