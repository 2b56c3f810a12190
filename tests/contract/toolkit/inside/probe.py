"""Answers, in the toolkit's environment, what its parts make of a host's files: one JSON line for each line asked.

    SAGEMAKER_BASE_DIR=... python probe.py     # in the toolkit's environment

It asks the toolkit's own functions, the ones its ``train`` goes through, where a whole run needs other machines.
"""

import json
import os
import sys
from types import ModuleType

ADAPTERS_SERVER = []


def tensorflow():
    """Give what the adapter's parameter server takes of TensorFlow: a note of its call, and no server."""

    class Server:
        def __init__(self, cluster, job_name, task_index, config):
            ADAPTERS_SERVER.append({"cluster": cluster, "task": {"type": job_name, "index": task_index}})

        def join(self):
            pass

    module = ModuleType("tensorflow")
    for name in ("train", "distribute", "compat", "compat.v1"):
        parent, _, last = name.rpartition(".")
        setattr(getattr(module, parent) if parent else module, last, ModuleType(name))
    module.train.ClusterSpec = dict
    module.distribute.Server = Server
    module.compat.v1.ConfigProto = dict
    return module


def script():
    from sagemaker_training import environment

    env = environment.Environment()
    told = env.to_env_vars()
    own = ("SAGEMAKER_JOB_NAME", "SAGEMAKER_REGION", "CURRENT_HOST")
    return {"argv": env.to_cmd_args(), "env": {**told, **{name: os.environ[name] for name in own}}}


def cluster():
    """Give what the TensorFlow adapter starts on this host, as its ``train`` does it, short of starting it."""
    sys.modules["tensorflow"] = tensorflow()
    from sagemaker_tensorflow_container import training
    from sagemaker_training import environment

    started = []
    training.entry_point.run = lambda **arguments: started.append(arguments)
    training._wait_until_master_is_down = lambda _master: None
    ADAPTERS_SERVER.clear()
    env = environment.Environment()
    training.train(env, env.to_cmd_args())
    (script,) = started
    config = script["env_vars"].get("TF_CONFIG")
    return {
        "TF_CONFIG": json.loads(config) if config else None,
        "ps": ADAPTERS_SERVER[0] if ADAPTERS_SERVER else None,
        "mpirun": "MPI" in str(script.get("runner_type")),
    }


def main():
    variables = dict(os.environ)
    answers = sys.stdout
    # The toolkit's output is not part of the answer.
    sys.stdout = sys.stderr
    for line in sys.stdin:
        question = json.loads(line)
        os.environ.clear()
        os.environ.update(variables, **question["variables"])
        try:
            answer = {"answer": globals()[question["about"]]()}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
