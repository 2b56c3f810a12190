"""What `Slurm(...)` is given, from its arguments, the variable SCRIPTMODE_SLURM and the config files.

An option of an argument takes precedence over the variable's, and that one over the files': the user's file, then the
administrator's. The options of all of them are combined. Which of them exist, and their values, is for sbatch to say.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from scriptmode._core.machine.yaml_files import parse_yaml
from scriptmode.errors import ConfigError, SpecError
from scriptmode_local._store import shapes

#: ``partition=gpu,account=vision``, or the same as a JSON object.
SETTINGS_VARIABLE = "SCRIPTMODE_SLURM"
#: The config file, in platformdirs' directories of a site and of a user, and its key of these settings.
FILE_NAME, FILE_KEY = "config.yaml", "slurm"
#: Options that the job sets by itself or cannot have, by their long names with "_" for "-". All others are the user's.
REFUSED = frozenset({
    "array", "clusters", "error", "help", "input", "job_name", "no_kill", "no_requeue", "nodes", "ntasks",
    "ntasks_per_core", "ntasks_per_gpu", "ntasks_per_node", "ntasks_per_socket", "open_mode", "output", "parsable",
    "quiet", "requeue", "test_only", "time_min", "usage", "verbose", "version", "wait", "wrap",
})  # fmt: skip
#: Of them, those in the header of a batch script that no later line changes.
REFUSED_IN_HEADER = ("array", "clusters", "export", "input", "no_kill", "time_min", "wait")
_SHAPE: Mapping[str, object] = {
    "header": {"lines": [str], "options": {"*": str}},
    "options!": dict,
    "setup!": [str],
    "interface!": str,
    "min_nodes!": int,
    "partitions!": {"*": dict},
}
#: A comma that separates the variable's entries; any other comma is part of a value: ``gres=gpu:2,nic:1``.
_BETWEEN = re.compile(r",(?=\s*[A-Za-z][a-z0-9_-]*=)")
_NAME = re.compile(r"[A-Za-z][a-z0-9_]*")
#: For an option without a value, and to leave out one that a file or the variable has.
_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True)
class SlurmSettings:
    """The settings of a job on Slurm.

    Attributes:
        options: Options of sbatch by their long names, with "_" for "-"; True for an option without a value.
        setup: Lines of the batch script before the job's agent starts, such as ``module load cuda``.
        interface: Name or CIDR network of the interface between the hosts; "" for the one of the nodes' addresses.
        min_nodes: Number of nodes with which a job without instance groups may run; 0 for all of its hosts.
        partitions: Options of the hosts of one partition, by its name; False for an option that they do not have.
        header: The lines ``#SBATCH`` of a batch script, and the ``options`` that sbatch reads in them.
    """

    options: Mapping[str, str | bool] = field(default_factory=dict)
    setup: tuple[str, ...] = ()
    interface: str = ""
    min_nodes: int = 0
    partitions: Mapping[str, Mapping[str, str | bool]] = field(default_factory=dict)
    header: Mapping[str, Any] = field(default_factory=dict)

    @property
    def header_options(self) -> Mapping[str, str]:
        """The options of the header."""
        options: Mapping[str, str] = self.header.get("options", {})
        return options

    def all_options(self, partition: str = "") -> dict[str, str | bool]:
        """Return the options of the header and of the hosts of a partition."""
        return {**self.header_options, **self.options_of(partition)}

    def options_of(self, partition: str) -> dict[str, str | bool]:
        """Return the options of the hosts of a partition without the header's; of no named one for ""."""
        options = {**self.options, **self.partitions.get(partition, {})}
        return {name: value for name, value in options.items() if value is not False}

    def to_json(self) -> dict[str, object]:
        """Return the settings for the job's record."""
        return {**asdict(self), "setup": list(self.setup)}


def settings_from_json(content: Mapping[str, Any]) -> SlurmSettings:
    """Return the settings of a job's record, as `SlurmSettings.to_json` made it; raise ``ValueError`` for others."""
    shapes.validate_shape(content, _SHAPE, "engine")
    return SlurmSettings(**{**content, "setup": tuple(content["setup"])})


class _Source(NamedTuple):
    """Where settings come from: the prefix of their names in messages, and the class of the errors."""

    prefix: str = ""
    error: type[SpecError] = SpecError

    def refuse(self, setting: str, value: object, advice: str) -> SpecError:
        return self.error(f"{self.prefix}{setting} is {value!r}", argument=setting, advice=advice)


_VARIABLE = _Source(f"{SETTINGS_VARIABLE}: ")


def parse_settings(
    given: Mapping[str, object], environ: Mapping[str, str], recorded: SlurmSettings | None = None
) -> SlurmSettings:
    """Return the settings of arguments, of the variable in ``environ`` and of the config files.

    The settings of another job, ``recorded``, stand for the files, which they include. A user may have the variable in
    every shell, so there is a warning where it changes them.

    Raises `SpecError` naming a wrong setting, and `ConfigError` for a wrong file.
    """
    own = recorded or SlurmSettings()
    options = dict(own.options)
    layers = _layers(given, environ, with_files=recorded is None)
    for source, given_name, value in ((source, *setting) for source, layer in layers for setting in layer.items()):
        name = _normalize_name(given_name)
        if value is None:
            continue
        if name == "partitions":
            own = replace(own, partitions={**own.partitions, **_partitions(source, value)})
        elif name in _OWN:
            own = replace(own, **{name: _own(source, name, value)})
            if name == "header":
                options = {other: option for other, option in options.items() if other not in own.header_options}
        else:
            before, options[name] = {**own.header_options, **options}.get(name), _option(source, name, value)
            if options[name] is False and name in own.header_options:
                raise source.refuse(name, value, "leave it out of the header of the batch script")
            if recorded and source is _VARIABLE and before not in (None, options[name]) and given.get(name) is None:
                what = f"{SETTINGS_VARIABLE} has {name}={options[name]}, which replaces the job's {name}={before}"
                warnings.warn(f"{what}; to keep that, unset the variable", stacklevel=1)
    return replace(own, options={name: value for name, value in options.items() if value is not False})


def _layers(
    given: Mapping[str, object], environ: Mapping[str, str], *, with_files: bool
) -> Iterator[tuple[_Source, Mapping[str, object]]]:
    """Yield the settings of each source, those that are overridden first."""
    from platformdirs import site_config_dir, user_config_dir

    for directory in (site_config_dir, user_config_dir) if with_files else ():
        path = Path(directory("scriptmode", appauthor=False)) / FILE_NAME
        yield _Source(f"{path}: {FILE_KEY}.", ConfigError), _read_file(path)
    yield _VARIABLE, _parse_variable(environ.get(SETTINGS_VARIABLE, "").strip())
    yield _Source(), given


def _read_file(path: Path) -> Mapping[str, object]:
    try:
        document = parse_yaml(str(path), path.read_bytes()) or {}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        what = f"config file {str(path)!r} cannot be read: {error.strerror}"
        raise ConfigError(what, advice="make it readable") from error
    settings = document.get(FILE_KEY) or {} if isinstance(document, dict) and document.keys() <= {FILE_KEY} else None
    if not isinstance(settings, dict):
        raise ConfigError(f"{path} holds {document!r}", advice=f"write for example\n{FILE_KEY}:\n  partition: gpu")
    return settings


def _parse_variable(text: str) -> Mapping[str, object]:
    try:
        if text.startswith("{"):
            return dict(json.loads(text))
        pairs = (entry.split("=", 1) for entry in filter(None, _BETWEEN.split(text)))
        return {name.strip(): value.strip() for name, value in pairs}
    except ValueError as error:
        advice = "write partition=gpu,exclusive=true, or a JSON object"
        raise SpecError(f"{SETTINGS_VARIABLE} is {text!r}", advice) from error


def _normalize_name(given: object) -> str:
    return str(given).lstrip("-").replace("-", "_")


def _option(source: _Source, name: str, value: object) -> str | bool:
    if not _NAME.fullmatch(name) or name in REFUSED:
        advice = (
            "give an option of sbatch by its long name; one that the job sets by itself is an argument of the estimator"
        )
        raise source.refuse(name, value, advice)
    if str(value).lower() in _BOOLEANS:
        return _BOOLEANS[str(value).lower()]
    if isinstance(value, (list, tuple)):
        value = ",".join(map(str, value))
    text = str(value).strip()
    if not isinstance(value, (str, int, float)) or not text or not text.isprintable():
        raise source.refuse(name, value, f"give the value of sbatch's --{name.replace('_', '-')} as one line of text")
    # The agent of the job takes this signal alone, and sends SIGTERM to the script.
    return "B:USR1" + "".join(text.partition("@")[1:]) if name == "signal" else text


def _partitions(source: _Source, value: object) -> dict[str, dict[str, str | bool]]:
    if not isinstance(value, dict) or not all(isinstance(options, dict) for options in value.values()):
        example = "give options by partition: {'gpu': {'gres': 'gpu:4'}, 'cpu': {'mem': '16G'}}"
        raise source.refuse("partitions", value, example)
    partitions: dict[str, dict[str, str | bool]] = {}
    for partition, options in value.items():
        inner = source._replace(prefix=f"{source.prefix}partitions[{partition!r}]: ")
        named = {_normalize_name(name): option for name, option in options.items()}
        if "time" in named:
            raise inner.refuse("time", named["time"], "give one for the whole job: Slurm(time=...)")
        # None leaves an option out here, too: it is one that the other partitions have.
        partitions[str(partition)] = {
            name: False if option is None else _option(inner, name, option) for name, option in named.items()
        }
    return partitions


def _lines(value: Any) -> tuple[str, ...]:
    lines = tuple((value if isinstance(value, str) else "\n".join(value)).splitlines())
    if any(line.startswith("#SBATCH") for line in lines):
        raise ValueError(value)  # options of the job past `REFUSED`
    return lines


def _count(value: object) -> int:
    count = int(str(value))
    if count < 1:
        raise ValueError(value)
    return count


#: Settings that are not options of sbatch: what makes a value of what is given, and the advice where it cannot.
_OWN: Mapping[str, tuple[Callable[[Any], object], str]] = {
    "setup": (_lines, "give lines of a shell script, ('module load cuda',), and options of sbatch as arguments"),
    "interface": (str.strip, "give the name of a network interface of the nodes, 'ib0', or its network, '10.1.0.0/16'"),
    "header": (dict, "give Slurm.from_sbatch(...) the path of a batch script"),
    "min_nodes": (_count, "give a whole number of at least 1"),
}


def _own(source: _Source, name: str, value: object) -> Any:
    convert, advice = _OWN[name]
    try:
        return convert(value)
    except (TypeError, ValueError):
        raise source.refuse(name, value, advice) from None
