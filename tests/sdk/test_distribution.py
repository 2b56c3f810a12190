import pytest

from scriptmode import MPI, MultiWorkerMirrored, ParameterServer, SpecError
from scriptmode.distribution import parse


@pytest.mark.parametrize(
    ("spelling", "value"),
    [
        pytest.param(None, None, id="nothing"),
        pytest.param({}, None, id="empty dict"),
        pytest.param(MPI(2), MPI(2), id="a value stands for itself"),
        pytest.param({"parameter_server": {"enabled": True}}, ParameterServer(), id="between-graph"),
        pytest.param(
            {"parameter_server": {"enabled": True, "coordinator": True}},
            ParameterServer(coordinator=True),
            id="coordinator",
        ),
        pytest.param({"multi_worker_mirrored_strategy": {"enabled": True}}, MultiWorkerMirrored(), id="mirrored"),
        pytest.param(
            {"mpi": {"enabled": True, "processes_per_host": 4, "custom_mpi_options": "-x A=b"}},
            MPI(4, "-x A=b"),
            id="mpi",
        ),
        pytest.param({"mpi": {"enabled": False, "processes_per_host": 4}}, None, id="switched off"),
        pytest.param(
            {"mpi": {"enabled": False}, "parameter_server": {"enabled": True}},
            ParameterServer(),
            id="one of two is off",
        ),
        pytest.param(
            {"mpi": {"enabled": True}, "instance_groups": ["a", "b"]}, MPI(instance_groups=("a", "b")), id="groups"
        ),
    ],
)
def test_the_dict_spelling_gives_the_value(spelling, value):
    assert parse(spelling) == value


@pytest.mark.parametrize(
    ("spelling", "message"),
    [
        pytest.param(
            {"mpi": {"enabled": True, "process_per_host": 4}},
            "distribution['mpi'] has no key 'process_per_host'; did you mean 'processes_per_host'?",
            id="unknown option",
        ),
        pytest.param(
            {"parameter_servers": {"enabled": True}},
            "has no key 'parameter_servers'; did you mean 'parameter_server'?",
            id="unknown kind",
        ),
        pytest.param({"horovod": 1}, "has no key 'horovod'; known: ", id="nothing near"),
        pytest.param({"mpi": {"enabled": True, "processes_per_host": 0}}, "processes_per_host is 0", id="zero"),
        pytest.param({"mpi": {"enabled": True, "processes_per_host": True}}, "processes_per_host is True", id="a bool"),
        pytest.param({"mpi": {"enabled": True, "processes_per_host": "4"}}, "processes_per_host is '4'", id="text"),
        pytest.param(
            {"mpi": {"enabled": True, "custom_mpi_options": "-x 'A"}}, "No closing quotation", id="open quote"
        ),
        pytest.param({"mpi": {"enabled": True, "custom_mpi_options": ["-x"]}}, "one string", id="a list of options"),
        pytest.param(
            {"mpi": {"enabled": True}, "parameter_server": {"enabled": True}},
            "'mpi' and 'parameter_server'",
            id="two kinds",
        ),
        pytest.param({"mpi": {"processes_per_host": 2}}, "['enabled'] is None; say True or False", id="no switch"),
        pytest.param({"mpi": {"enabled": "yes"}}, "['enabled'] is 'yes'", id="a word for a switch"),
        pytest.param({"mpi": True}, "distribution['mpi'] is True", id="no dict"),
        pytest.param("mpi", "distribution is 'mpi'", id="a word"),
        pytest.param({"smdistributed": {"dataparallel": {"enabled": True}}}, "is not supported", id="AWS's own"),
        pytest.param({"instance_groups": ["a"]}, "enables nothing", id="groups alone"),
        pytest.param({"mpi": {"enabled": True}, "instance_groups": "a"}, "give a list", id="groups as a word"),
        pytest.param(
            {"parameter_server": {"enabled": True, "coordinator": "no"}}, "coordinator is 'no'", id="coordinator"
        ),
    ],
)
def test_a_wrong_spelling_is_named(spelling, message):
    with pytest.raises(SpecError) as caught:
        parse(spelling)
    assert message in str(caught.value)


def test_the_callers_dict_is_left_as_it_was():
    spelling = {"mpi": {"enabled": True, "processes_per_host": 4}, "instance_groups": ["a"]}
    before = {"mpi": dict(spelling["mpi"]), "instance_groups": ["a"]}
    parse(spelling)
    assert spelling == before
