"""What only this project's images know is refused on AWS's, and a plan has the roles of AWS's."""

import pytest
from fakes.estimators import estimator

from scriptmode import MPI, Estimator, InstanceGroup, MultiWorkerMirrored, ParameterServer, SpecError
from scriptmode.testing import FakeSageMaker
from scriptmode_local import LocalPlatform

AWS = "763104351884.dkr.ecr.us-east-1.amazonaws.com/tensorflow-training:2.14.1-cpu-py310"
OLD = "763104351884.dkr.ecr.us-east-1.amazonaws.com/tensorflow-training:2.8-cpu-py39"
OWN = "123456789012.dkr.ecr.us-east-1.amazonaws.com/tensorflow-training:2.14.1-cpu-py310"
GROUPS = [InstanceGroup("train", "ml.m5.large", 2), InstanceGroup("serve", "ml.m5.large", 1)]
THREE = [*GROUPS, InstanceGroup("lead", "ml.m5.large", 1)]
ROLES = {"chief": "lead", "worker": "train", "ps": "serve"}
IN_GROUPS = {"instance_groups": GROUPS, "instance_count": None, "instance_type": None}

UNKNOWN = {
    "a coordinator": ({"distribution": {"parameter_server": {"enabled": True, "coordinator": True}}}, "coordinator=True"),
    "a chief": ({"distribution": ParameterServer(chief=True)}, "chief=True"),
    "an evaluator": ({"distribution": ParameterServer(evaluator=True)}, "evaluator=True"),
    "an evaluator of mirrored": ({"distribution": MultiWorkerMirrored(evaluator=True)}, "evaluator=True"),
    "roles": ({**IN_GROUPS, "instance_groups": THREE, "distribution": ParameterServer(roles=ROLES)}, "roles="),
    "GPUs for ranks": ({"distribution": MPI(bind_gpus=True)}, "bind_gpus=True"),
    "what is no option": ({"arguments": ["--verbose"]}, "arguments="),
    "one of two groups": (
        {**IN_GROUPS, "distribution": ParameterServer(instance_groups=("train",))},
        r"leaves out the instance groups \['serve'\]",
    ),
}  # fmt: skip
KNOWN = {
    "parameter servers in all groups": {
        **IN_GROUPS, "distribution": ParameterServer(instance_groups=("train", "serve")),
    },
    "mirrored in one group": {**IN_GROUPS, "distribution": MultiWorkerMirrored(("train",))},
    "MPI": {"distribution": MPI(processes_per_host=2)},
    "no distribution": {},
}  # fmt: skip


def on(image, code, **arguments):
    fixed = {"platform": None, "sagemaker_session": FakeSageMaker("us-east-1"), "image_uri": image}
    return estimator(code, **{**fixed, "instance_type": "ml.m5.large", **arguments})


@pytest.mark.parametrize(("arguments", "what"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_what_only_our_runtime_knows_is_refused_on_an_image_of_aws(code, arguments, what):
    message = f"{what}.* is known to this project's images alone, but '{AWS}' is one of AWS's.*; give image_uri= of one"
    for ask in (Estimator.request, Estimator.plan, Estimator.fit):
        with pytest.raises(SpecError, match=message):
            ask(on(AWS, code, **arguments))
    assert on(OWN, code, **arguments).request()
    # An entry point, or a training module, of the caller's own starts what it likes.
    assert on(AWS, code, **arguments, container_entry_point=["/bin/own"]).request()
    module = {"SAGEMAKER_TRAINING_MODULE": "scriptmode_runtime.sagemaker_training:main"}
    assert on(AWS, code, **arguments, environment=module).request()


@pytest.mark.parametrize("arguments", KNOWN.values(), ids=KNOWN.keys())
def test_what_their_train_knows_is_taken(code, arguments):
    assert on(AWS, code, **arguments).request()["AlgorithmSpecification"]["TrainingImage"] == AWS


def test_in_containers_of_this_machine_it_is_the_same(code, tmp_path):
    arguments = {"instance_type": "local", "platform": LocalPlatform(data_dir=tmp_path)}
    with pytest.raises(SpecError, match="coordinator=True is known to this project's images alone"):
        estimator(code, image_uri=AWS, distribution=ParameterServer(coordinator=True), **arguments).request()


def test_mirrored_needs_an_adapter_that_knows_it(code):
    with pytest.raises(SpecError, match=r"strategy before TensorFlow 2.9 is known to this.*, but '.*:2.8-cpu-py39' is"):
        on(OLD, code, distribution=MultiWorkerMirrored()).request()
    assert on(OLD.replace(":2.8-", ":2.9-"), code, distribution=MultiWorkerMirrored()).request()
    assert on(OLD.replace(":2.8-", ":2.10-"), code, distribution=MultiWorkerMirrored()).request()
    assert on(OLD, code, distribution=ParameterServer()).request()


def test_an_image_of_aws_needs_a_script(code):
    no_script = {"entry_point": None, "source_dir": None}
    with pytest.raises(SpecError, match="entry_point is missing; give it: AWS's image .* has no program of its own"):
        on(AWS, code, **no_script).request()
    assert on(OWN, code, **no_script).request()
    assert on(AWS, code, **no_script, container_entry_point=["/bin/own"]).request()
    assert on(AWS, code, **no_script, hyperparameters={"sagemaker_program": "train.py"}).request()


@pytest.mark.parametrize(
    ("image", "is_one"),
    [
        (AWS, True),
        (f"{AWS.partition(':')[0]}@sha256:{'0' * 64}", True),
        ("727897471807.dkr.ecr.cn-north-1.amazonaws.com.cn/tensorflow-training:2.14.1-gpu-py310-cu118", True),
        ("763104351884.dkr.ecr-fips.us-east-1.amazonaws.com/tensorflow-training:2.14", True),
        ("520713654638.dkr.ecr.us-west-2.amazonaws.com/sagemaker-tensorflow-scriptmode:1.13-cpu-py3", True),
        ("public.ecr.aws/deep-learning-containers/tensorflow-training:2.19.0-cpu-py312-ubuntu22.04-sagemaker", True),
        ("763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.1", False),
        ("763104351884.dkr.ecr.us-east-1.amazonaws.com/tensorflow-inference:2.14", False),
        (OWN, False),
    ],
)
def test_an_image_is_known_by_its_registry_and_name(code, image, is_one):
    made = on(image, code, distribution=ParameterServer(coordinator=True))
    if is_one:
        with pytest.raises(SpecError, match="known to this project's images alone"):
            made.request()
    else:
        assert made.request()


def test_a_plan_shows_the_layout_of_aws(code):
    plan = on(AWS, code, distribution=ParameterServer(), hyperparameters={"epochs": 1}).plan()
    assert [host.roles for host in plan.hosts.values()] == ["master, ps", "worker, ps"]
    assert '"type": "master"' in plan.hosts["algo-1"].launch.main.env["TF_CONFIG"]
