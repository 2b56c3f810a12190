"""The settings of jobs on Slurm: arguments, the variable SCRIPTMODE_SLURM and the config files."""

import pytest

from scriptmode import SpecError
from scriptmode.errors import ConfigError
from scriptmode.platforms.slurm import commands, sbatch_options
from scriptmode.platforms.slurm.settings import SlurmSettings, parse_settings, settings_from_json


@pytest.fixture(autouse=True)
def config_file(monkeypatch, tmp_path):
    """The user's config file, which does not exist yet; there is no administrator's file, and no sbatch."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "site"))
    monkeypatch.setenv("PATH", str(tmp_path))
    commands.sbatch_options.cache_clear()
    (tmp_path / "user" / "scriptmode").mkdir(parents=True)
    yield tmp_path / "user" / "scriptmode" / "config.yaml"
    commands.sbatch_options.cache_clear()


@pytest.mark.parametrize(
    ("variable", "options"),
    [
        ("", {}),
        ("partition=gpu,account=vision", {"partition": "gpu", "account": "vision"}),
        (" partition = gpu , account=b", {"partition": "gpu", "account": "b"}),
        ("gres=gpu:2,nic:1,exclusive=true", {"gres": "gpu:2,nic:1", "exclusive": True}),
        ("tres-per-task=cpu:1,gres/gpu=2,mem=8G", {"tres_per_task": "cpu:1,gres/gpu=2", "mem": "8G"}),
        ('{"partition": "gpu", "nice": 5}', {"partition": "gpu", "nice": "5"}),
        ("hold=false,exclusive=user", {"exclusive": "user"}),
    ],
)
def test_the_variable_holds_options_of_sbatch(variable, options):
    assert parse_settings({}, {"SCRIPTMODE_SLURM": variable}).options == options


def test_an_argument_precedes_the_variable_and_that_the_files(config_file, tmp_path):
    site = tmp_path / "site" / "scriptmode" / "config.yaml"
    site.parent.mkdir(parents=True)
    site.write_text("slurm: {partition: site, account: site, qos: site, wckey: site, setup: [module load site]}")
    config_file.write_text("slurm:\n  partition: user\n  account: user\n  qos: user\n  exclusive: true\n")
    variable = {"SCRIPTMODE_SLURM": "partition=variable,account=variable"}
    found = parse_settings({"partition": "argument", "account": None, "exclusive": False}, variable)
    expected = {"partition": "argument", "account": "variable", "qos": "user", "wckey": "site"}
    assert found == SlurmSettings(expected, ("module load site",))


def test_settings_are_the_same_after_a_jobs_record():
    given = {
        "partition": "gpu",
        "exclusive": True,
        "setup": "a\nb",
        "interface": "ib0",
        "container_runtime": "singularity",
    }
    found = parse_settings(given, {})
    assert found.setup == ("a", "b")
    assert settings_from_json(found.to_json()) == found


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"partitoin": "gpu"}, "Slurm(...) has no option 'partitoin'; did you mean 'partition'?"),
        ({"nodes": 2}, "nodes cannot be set: the hosts of a job are its nodes, one each; give the estimator"),
        ({"wrap": "x"}, "wrap cannot be set"),
        ({"hold": "x"}, "hold is 'x', but the option has no value; give True or False"),
        ({"partition": ""}, "partition is ''; give one line of text that is not empty"),
        ({"partition": "a\nb"}, "partition is 'a\\nb'; give one line of text"),
        ({"partition": True}, "partition is True; give the value of sbatch's --partition as text"),
        ({"gres": {"gpu": 4}}, "gres is {'gpu': 4}; give the value of sbatch's --gres as text"),
        ({"signal": "TERM@5"}, "signal is 'TERM@5'; give 'B:USR1@SECONDS'"),
        ({"time": "bogus"}, "time is 'bogus'; give minutes, or a time such as '2:00:00'"),
        ({"setup": 5}, "setup is 5; give lines of a shell script"),
        ({"setup": ("a\nb",)}, "setup has the line 'a\\nb'; give one string for each line"),
        ({"setup": "#SBATCH --x"}, "setup has the line '#SBATCH --x'; give options as arguments of Slurm"),
        ({"interface": "a b"}, "interface is 'a b'; give the name of a network interface"),
        ({"container_runtime": "apptaner"}, "container_runtime is 'apptaner'; did you mean 'apptainer'?"),
        ({"foo": 1}, "Slurm(...) has no option 'foo'; give an option of sbatch(1)"),
    ],
)
def test_a_wrong_setting_is_named_with_the_next_step(given, message):
    with pytest.raises(SpecError) as caught:
        parse_settings(given, {})
    assert message in str(caught.value)
    assert caught.value.argument == next(iter(given))


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ("gpu", "SCRIPTMODE_SLURM: 'gpu' is not of the form partition=gpu; correct the entry"),
        ("exclusive", "SCRIPTMODE_SLURM: 'exclusive' is not of the form partition=gpu; write exclusive=true"),
        ("nodes=3", "SCRIPTMODE_SLURM: nodes cannot be set"),
        ("partitoin=gpu", "SCRIPTMODE_SLURM has no option 'partitoin'; did you mean 'partition'?"),
        ("data_dir=/x", "SCRIPTMODE_SLURM has no option 'data_dir'; set SCRIPTMODE_DATA_DIR"),
        ('{"partition"', "SCRIPTMODE_SLURM is not a JSON object"),
    ],
)
def test_a_wrong_variable_is_named(variable, message):
    with pytest.raises(SpecError) as caught:
        parse_settings({}, {"SCRIPTMODE_SLURM": variable})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("slurm: {partitoin: gpu}", "slurm has no option 'partitoin'; did you mean 'partition'?"),
        ("slurm: {nodes: 3}", "slurm.nodes cannot be set"),
        ("slurm: gpu", "slurm is 'gpu'; write for example\nslurm:\n  partition: gpu"),
        ("slurmm: {partition: gpu}", "has the key 'slurmm'; did you mean 'slurm'?"),
        ("[1]", "holds [1]; write for example"),
        ("slurm: {a: b: c}", "is not valid YAML: line 1"),
        ("slurm: {partition: a, partition: b}", "is refused: the key 'partition' in line 1 is in line 1 already"),
    ],
)
def test_a_wrong_config_file_is_named(config_file, content, message):
    config_file.write_text(content)
    with pytest.raises(ConfigError) as caught:
        parse_settings({}, {})
    assert str(config_file) in str(caught.value)
    assert message in str(caught.value)


def test_an_empty_config_file_holds_no_settings(config_file):
    for content in ("", "slurm:\n", "# none\n"):
        config_file.write_text(content)
        assert parse_settings({}, {}) == SlurmSettings()


def test_an_option_of_a_plugin_is_known_where_sbatch_lists_it(monkeypatch, tmp_path):
    program = tmp_path / "sbatch"
    program.write_text("#!/bin/sh\necho 'Options provided by plugins:'\necho '      --lustre-quota=n   the quota'\n")
    program.chmod(0o755)
    commands.sbatch_options.cache_clear()
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert parse_settings({"lustre_quota": 5}, {}).options == {"lustre_quota": "5"}


def test_no_option_is_both_known_and_refused():
    assert not sbatch_options.KNOWN & sbatch_options.REFUSED.keys()
