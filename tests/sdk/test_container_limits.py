"""What containers may use is checked where it is said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scriptmode.errors import SpecError
from scriptmode.platforms.local.hosts.container_limits import (
    LIMITS_VARIABLE,
    ContainerLimits,
    default_pids,
    parse_limits,
)

KIB, MIB, GIB = 1024, 1024**2, 1024**3


def test_nothing_is_limited_unless_it_is_asked_for():
    assert (
        parse_limits(None, {}) == parse_limits({}, {}) == parse_limits({}, {LIMITS_VARIABLE: ""}) == ContainerLimits()
    )
    assert ContainerLimits() == ContainerLimits(
        shm_size=None, memory=None, cpus=None, pids=None, no_new_privileges=True
    )


@pytest.mark.parametrize(
    ("asked", "size"),
    [
        (64 * MIB, 64 * MIB),
        (str(64 * MIB), 64 * MIB),
        ("65536k", 64 * MIB),
        ("64m", 64 * MIB),
        ("64M", 64 * MIB),
        ("64mb", 64 * MIB),
        ("8g", 8 * GIB),
        ("8GB", 8 * GIB),
    ],
)
def test_sizes_are_bytes_or_dockers_units(asked, size):
    assert parse_limits({"shm_size": asked, "memory": asked}, {}) == ContainerLimits(shm_size=size, memory=size)
    if isinstance(asked, str):
        assert parse_limits(None, {LIMITS_VARIABLE: f"shm_size={asked},memory={asked}"}) == ContainerLimits(size, size)


@pytest.mark.parametrize(("asked", "cpus"), [(2, 2.0), (0.5, 0.5), ("1.5", 1.5), ("0.01", 0.01)])
def test_cpus_may_be_parts_of_one(asked, cpus):
    assert parse_limits({"cpus": asked}, {}).cpus == cpus
    assert parse_limits(None, {LIMITS_VARIABLE: f"cpus={asked}"}).cpus == cpus


@pytest.mark.parametrize(("asked", "pids"), [(32, 32), ("4096", 4096), (10**6, 10**6)])
def test_pids_are_a_number_of_processes_and_threads(asked, pids):
    assert (
        parse_limits({"pids": asked}, {})
        == parse_limits(None, {LIMITS_VARIABLE: f"pids={asked}"})
        == ContainerLimits(pids=pids)
    )


@pytest.mark.parametrize(
    ("asked", "wanted"), [(False, False), (True, True), ("false", False), ("True", True), ("0", False), ("no", False)]
)
def test_new_privileges_may_be_allowed(asked, wanted):
    assert parse_limits({"no_new_privileges": asked}, {}).no_new_privileges is wanted
    assert parse_limits(None, {LIMITS_VARIABLE: f"no_new_privileges={asked}"}).no_new_privileges is wanted


@pytest.mark.parametrize(
    ("hosts", "cpus", "kernel", "pids"),
    [
        pytest.param(1, 2, 32768, 6144, id="a small machine"),
        pytest.param(4, 2, 32768, 4096, id="its hosts together leave half"),
        pytest.param(64, 2, 32768, 1024, id="enough for TensorFlow, however many"),
        pytest.param(8, 96, 4194304, 102400, id="a large machine"),
    ],
)
def test_hosts_may_have_many_processes_and_leave_the_machine_some(hosts, cpus, kernel, pids):
    assert default_pids(hosts, cpus, kernel) == pids
    assert default_pids(hosts) >= 1024


def test_what_is_given_goes_before_the_variable():
    environ = {LIMITS_VARIABLE: " memory = 2g ,cpus=2,"}
    assert parse_limits({"memory": "4g"}, environ) == ContainerLimits(memory=4 * GIB, cpus=2.0)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("8g", "container_limits is '8g'; give a dict: {'memory': '8g', 'cpus': 2, 'shm_size': '4g'}"),
        (
            {"memroy": "8g"},
            "container_limits has no key 'memroy'; did you mean 'memory'?",
        ),
        ({1: "8g"}, "container_limits has no key 1"),
        ({"memory": "8 g"}, "container_limits['memory'] is '8 g'; give a number of bytes, or a size such as '512m'"),
        ({"memory": "8t"}, "container_limits['memory'] is '8t'"),
        ({"memory": "-8g"}, "container_limits['memory'] is '-8g'"),
        ({"memory": 0}, "container_limits['memory'] is 0"),
        ({"memory": True}, "container_limits['memory'] is True"),
        ({"memory": 1e9}, "container_limits['memory'] is 1000000000.0"),
        ({"memory": None}, "container_limits['memory'] is None"),
        ({"shm_size": ""}, "container_limits['shm_size'] is ''"),
        ({"shm_size": "1.5g"}, "container_limits['shm_size'] is '1.5g'"),
        ({"memory": "5m"}, "container_limits['memory'] is '5m'; a container needs 6m, TensorFlow about 1g"),
        ({"cpus": 0}, "container_limits['cpus'] is 0; give the number of CPUs that a host may use, such as 2 or 0.5"),
        ({"cpus": -1}, "container_limits['cpus'] is -1"),
        ({"cpus": "two"}, "container_limits['cpus'] is 'two'"),
        ({"cpus": "nan"}, "container_limits['cpus'] is 'nan'"),
        ({"cpus": "inf"}, "container_limits['cpus'] is 'inf'"),
        ({"cpus": True}, "container_limits['cpus'] is True"),
        ({"cpus": [2]}, "container_limits['cpus'] is [2]"),
        ({"pids": 31}, "container_limits['pids'] is 31; give the number of processes and threads that a host may have"),
        ({"pids": True}, "container_limits['pids'] is True"),
        ({"pids": "4k"}, "container_limits['pids'] is '4k'"),
        ({"pids": -1}, "container_limits['pids'] is -1"),
        ({"pids": 1.5}, "container_limits['pids'] is 1.5"),
        ({"no_new_privileges": "maybe"}, "container_limits['no_new_privileges'] is 'maybe'; give True or False"),
        ({"no_new_privileges": None}, "container_limits['no_new_privileges'] is None"),
    ],
)
def test_what_is_wrong_is_told_with_key_and_value(asked, told):
    with pytest.raises(SpecError) as raised:
        parse_limits(asked, {})
    assert str(raised.value).startswith(told)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("memory", f"{LIMITS_VARIABLE}: 'memory' is not of the form memory=8g; correct the entry"),
        ("ram=8g", f"{LIMITS_VARIABLE} has no key 'ram'"),
        ("memory=", f"{LIMITS_VARIABLE}: memory is ''; give a number of bytes"),
        ("memory=1m", f"{LIMITS_VARIABLE}: memory is '1m'; a container needs 6m"),
        ("cpus=many", f"{LIMITS_VARIABLE}: cpus is 'many'; give the number of CPUs"),
    ],
)
def test_the_variable_is_named_where_it_is_wrong(text, told):
    with pytest.raises(SpecError) as raised:
        parse_limits(None, {LIMITS_VARIABLE: text})
    assert str(raised.value).startswith(told)


@given(
    st.dictionaries(
        st.sampled_from(["memory", "cpus", "shm_size", "pids", "x"]), st.text() | st.integers() | st.floats()
    )
)
def test_whatever_is_asked_is_taken_or_refused_as_a_wrong_argument(asked):
    try:
        found = parse_limits(asked, {})
    except SpecError:
        return
    assert found.memory is None or found.memory >= 6 * MIB
    assert found.cpus is None or found.cpus > 0
    assert found.pids is None or found.pids >= 32
