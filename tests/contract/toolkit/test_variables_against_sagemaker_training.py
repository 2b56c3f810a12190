"""Whatever stands in the platform's files, AWS's SageMaker Training Toolkit and we make the same of it."""

import json

import pytest
from contract.explained import differing
from contract.toolkit.asking import our_script
from contract.toolkit.case import Case
from contract.toolkit.differences import promised
from hypothesis import HealthCheck, given, settings, strategies as st

pytestmark = [pytest.mark.timeout(1200), pytest.mark.slow]

#: Half characters and zero bytes cannot be part of an argument; a variable's name ends at an equals sign.
CHARACTERS = st.characters(blacklist_categories=("Cs",), blacklist_characters="\0")
TEXT = st.text(CHARACTERS, max_size=12) | st.text("aA1-_. '\"{}[],:\\\n$", max_size=8)
NAMES = (st.text("aAbBsS_-.19 é", max_size=4) | st.text(CHARACTERS, max_size=8)).filter(lambda name: "=" not in name)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(CHARACTERS, max_size=4), inner, max_size=3),
    max_leaves=6,
)
TEXTS = VALUES.map(json.dumps) | VALUES.map(str) | TEXT
HYPERPARAMETERS = st.dictionaries(NAMES, TEXTS, max_size=8)
RESERVED = st.dictionaries(
    st.sampled_from(["sagemaker_x", "sagemaker_", "sagemaker_container_log_level", "sagemaker_s3_output_of"]),
    st.integers(0, 50).map(json.dumps),
)
SWITCHES = st.sampled_from(["parameter_server", "multi_worker_mirrored_strategy", "mpi"]).map(
    lambda name: {f"sagemaker_{name}_enabled": "true"}
)
CHANNEL_NAMES = st.text("aAbB1-_.", min_size=1, max_size=4).filter(lambda name: name.strip("."))
CHANNELS = st.dictionaries(CHANNEL_NAMES, st.dictionaries(st.text(max_size=4), SCALARS, max_size=2), max_size=4)
HOSTS = st.lists(st.text("algo-123.", min_size=1, max_size=6), min_size=1, max_size=5, unique=True)


@st.composite
def resources(draw):
    """A resourceconfig.json of whole groups, of one group or of none, and the groups that train together."""
    hosts = draw(HOSTS)
    current = draw(st.sampled_from(hosts))
    document = {"current_host": current, "hosts": hosts}
    optional = {"network_interface_name": TEXT, "current_instance_type": TEXT, "later": VALUES}
    document.update(draw(st.fixed_dictionaries({}, optional=optional)))
    document.update(draw(st.fixed_dictionaries({}, optional={"topology": st.lists(SCALARS, max_size=2)})))
    names = draw(st.lists(TEXT, max_size=min(3, len(hosts)), unique=True))
    if not names:
        return document, {}
    edges = sorted(draw(st.permutations(range(1, len(hosts))))[: len(names) - 1])
    parts = [hosts[first:last] for first, last in zip([0, *edges], [*edges, len(hosts)])]
    document["instance_groups"] = [
        {"instance_group_name": name, "instance_type": "ml.m5.large", "hosts": part} for name, part in zip(names, parts)
    ]
    document["current_group_name"] = next(name for name, part in zip(names, parts) if current in part)
    together = draw(st.none() | st.lists(st.sampled_from(names), min_size=1, unique=True))
    return document, {} if together is None else {"sagemaker_distribution_instance_groups": json.dumps(together)}


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(HYPERPARAMETERS, RESERVED, st.just({}) | SWITCHES, CHANNELS, resources())
def test_every_variable_and_every_argument_is_the_toolkits(
    toolkit_process, users, reserved, switch, channels, resources
):
    document, together = resources
    case = Case("any", {**users, **reserved, **switch, **together}, document, channels)
    theirs = {"script": toolkit_process.ask("script", case)}
    promise, used = promised(case, theirs)
    assert not used
    assert differing(promise, {"script": our_script(toolkit_process.read(case))}) == {}
