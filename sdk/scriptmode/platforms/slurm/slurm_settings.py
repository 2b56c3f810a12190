"""What `Slurm(...)` is given, from its arguments, the variable SCRIPTMODE_SLURM and the config files.

An option of an argument takes precedence over the variable's, and that one over the files': the user's file, then the
administrator's. The options of all of them are combined.
"""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scriptmode.core.machine.yaml_files import parse_yaml
from scriptmode.core.text.messages import did_you_mean
from scriptmode.errors import ConfigError, SpecError
from scriptmode.platforms.local.store import shapes
from scriptmode.platforms.slurm import apptainer_images, sbatch_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

#: ``partition=gpu,account=vision``, or the same as a JSON object.
SETTINGS_VARIABLE = "SCRIPTMODE_SLURM"
#: The config file, in platformdirs' directories of a site and of a user, and its key of these settings.
FILE_NAME, FILE_KEY = "config.yaml", "slurm"
_SHAPE: Mapping[str, object] = {
    "options!": dict,
    "setup!": [str],
    "interface!": str,
    # Earlier versions had none.
    "min_nodes": int,
    "container_runtime!": str,
    "partitions!": {"*": dict},
}
#: A comma that separates the variable's entries; any other comma is part of a value: ``gres=gpu:2,nic:1``.
_BETWEEN = re.compile(r",(?=\s*[A-Za-z][a-z0-9_-]*=)")
_NAME = re.compile(r"[A-Za-z][a-z0-9_]*")
#: A signal by its name or number, and the seconds before the time limit at which it comes: sbatch(1), --signal.
_NOTICE = re.compile(r"(?:[RB]{1,2}:)?(?:SIG)?(?:[A-Z]{2,8}\d?|\d{1,2})(?P<seconds>@\d{1,5})?", re.IGNORECASE)
#: The name of a network interface, of at most 15 characters (linux/if.h), or a network in CIDR notation.
_INTERFACE = re.compile(r"[^\s/,:]{1,15}|[0-9a-fA-F.:]+/\d{1,3}")
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
        container_runtime: What runs images: ``apptainer`` or ``singularity``; "" for the one that a node has.
        partitions: Options of the hosts of one partition, by its name; False for an option that they do not have.
    """

    options: Mapping[str, str | bool] = field(default_factory=dict)
    setup: tuple[str, ...] = ()
    interface: str = ""
    min_nodes: int = 0
    container_runtime: str = ""
    partitions: Mapping[str, Mapping[str, str | bool]] = field(default_factory=dict)

    def options_of(self, partition: str) -> dict[str, str | bool]:
        """Return the options of the hosts of a partition; of no named one for ""."""
        options = {**self.options, **self.partitions.get(partition, {})}
        return {name: value for name, value in options.items() if value is not False}

    def to_json(self) -> dict[str, object]:
        """Return the settings for the job's record."""
        return {**asdict(self), "setup": list(self.setup)}


def settings_from_json(content: Mapping[str, Any]) -> SlurmSettings:
    """Return the settings of a job's record, as `SlurmSettings.to_json` made it; raise ``ValueError`` for others."""
    shapes.validate_shape(content, _SHAPE, "engine")
    return SlurmSettings(**{**content, "setup": tuple(content["setup"])})


@dataclass(frozen=True)
class _Owner:
    """Where settings come from: the prefix of their names in messages, and the class of the errors."""

    name: str
    prefix: str = ""
    error: type[SpecError] = SpecError

    def refuse(self, setting: str, what: str, advice: str) -> SpecError:
        return self.error(f"{self.prefix}{setting} {what}", argument=setting, advice=advice)


_ARGUMENTS = _Owner("Slurm(...)")
_VARIABLE = _Owner(SETTINGS_VARIABLE, f"{SETTINGS_VARIABLE}: ")


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
    for owner, layer in _layers(given, environ, with_files=recorded is None):
        for given_name, value in layer.items():
            name = sbatch_options.normalize_name(given_name)
            if value is None:
                continue
            if name in _OWN:
                found: Any = _OWN[name](owner, value)
                changes: dict[str, Any] = {name: {**own.partitions, **found} if name == "partitions" else found}
                own = replace(own, **changes)
            else:
                before, options[name] = options.get(name), _option(owner, name, value)
                if recorded and owner is _VARIABLE and before not in (None, options[name]) and given.get(name) is None:
                    what = f"{SETTINGS_VARIABLE} has {name}={options[name]}, which replaces the job's {name}={before}"
                    warnings.warn(f"{what}; to keep that, unset the variable", stacklevel=1)
    return replace(own, options={name: value for name, value in options.items() if value is not False})


def _layers(
    given: Mapping[str, object], environ: Mapping[str, str], *, with_files: bool
) -> Iterator[tuple[_Owner, Mapping[str, object]]]:
    """Yield the settings of each owner, those that are overridden first."""
    from platformdirs import site_config_dir, user_config_dir

    for directory in (site_config_dir, user_config_dir) if with_files else ():
        yield _read_file(Path(directory("scriptmode", appauthor=False)) / FILE_NAME)
    yield _VARIABLE, dict(_entries(environ.get(SETTINGS_VARIABLE, "").strip()))
    yield _ARGUMENTS, given


def _read_file(path: Path) -> tuple[_Owner, Mapping[str, object]]:
    owner = _Owner(f"{path}: {FILE_KEY}", f"{path}: {FILE_KEY}.", ConfigError)
    try:
        document = parse_yaml(str(path), path.read_bytes(), ConfigError)
    except (FileNotFoundError, NotADirectoryError):
        return owner, {}
    except OSError as error:
        what = f"config file {str(path)!r} cannot be read: {error.strerror}"
        raise ConfigError(what, advice="make it readable") from error
    if document is None:
        return owner, {}
    advice = f"write for example\n{FILE_KEY}:\n  partition: gpu"
    if not isinstance(document, dict):
        raise ConfigError(f"{path} holds {document!r}", advice=advice)
    for key in document:
        if key != FILE_KEY:
            raise ConfigError(f"{path} has the key {key!r}", advice=did_you_mean(str(key), (FILE_KEY,)))
    if not isinstance(document.get(FILE_KEY) or {}, dict):
        raise ConfigError(f"{owner.name} is {document[FILE_KEY]!r}", advice=advice)
    return owner, document.get(FILE_KEY) or {}


def _entries(text: str) -> Iterator[tuple[str, object]]:
    """Yield the entries of the variable; raise `SpecError` for text of another form."""
    if text.startswith("{"):
        try:
            yield from json.loads(text).items()
        except ValueError as error:
            what = f"{SETTINGS_VARIABLE} is not a JSON object: {error}"
            raise SpecError(what, advice=f"correct {text!r}, or write partition=gpu") from error
        return
    for entry in filter(None, _BETWEEN.split(text)):
        name, separator, value = entry.partition("=")
        if not separator:
            what = f"{SETTINGS_VARIABLE}: {entry!r} is not of the form partition=gpu"
            raise SpecError(what, advice=f"correct it, or write {entry.strip()}=true for an option without a value")
        yield name.strip(), value.strip()


def _require_option(owner: _Owner, name: str) -> None:
    """Raise `SpecError` for an option that users cannot set; what is not an option at all is refused by sbatch."""
    if name in ("data_dir", "python", "stop_grace", "file_systems"):
        advice = "set SCRIPTMODE_DATA_DIR" if name == "data_dir" else f"give it as an argument: Slurm({name}=...)"
        raise owner.error(f"{owner.name} has no option {name!r}", argument=name, advice=advice)
    if not _NAME.fullmatch(name):
        raise owner.refuse(name, "is not the name of an option", "write it as in sbatch(1), with '_' for '-'")
    if len(name) == 1:
        raise owner.refuse(name, "is a short name", "give the option by its long name: partition, account, time")
    if name in sbatch_options.REFUSED:
        raise owner.refuse(name, "is an option that a job sets by itself", "use the arguments of the estimator")


def _option(owner: _Owner, name: str, value: object) -> str | bool:
    _require_option(owner, name)
    if str(value).lower() in _BOOLEANS:
        return _BOOLEANS[str(value).lower()]
    if isinstance(value, (list, tuple)) and value and all(isinstance(each, (str, int)) for each in value):
        value = ",".join(map(str, value))
    if not isinstance(value, (str, int, float)):
        raise owner.refuse(name, f"is {value!r}", f"give the value of sbatch's --{name.replace('_', '-')} as text")
    text = str(value).strip()
    if not text or not text.isprintable():
        raise owner.refuse(name, f"is {value!r}", "give one line of text that is not empty, or leave it out")
    if name == "signal":
        notice = _NOTICE.fullmatch(text)
        if notice is None:
            advice = "give a signal and seconds, such as 'USR1@90': the script gets SIGTERM so long before the limit"
            raise owner.refuse(name, f"is {value!r}", advice)
        # The signal that the agent of the job takes, which sends SIGTERM to the script.
        return f"B:USR1{notice['seconds'] or ''}"
    return text


def _setup(owner: _Owner, value: object) -> tuple[str, ...]:
    lines = value.splitlines() if isinstance(value, str) else value
    if not isinstance(lines, (list, tuple)) or not all(isinstance(line, str) for line in lines):
        raise owner.refuse("setup", f"is {value!r}", "give lines of a shell script: ('module load cuda',)")
    for line in lines:
        if "\n" in line or "\0" in line or line.lstrip().startswith("#SBATCH"):
            advice = "give options as arguments of Slurm" if "#SBATCH" in line else "give one string for each line"
            raise owner.refuse("setup", f"has the line {line!r}", advice)
    return tuple(lines)


def _interface(owner: _Owner, value: object) -> str:
    if not isinstance(value, str) or not _INTERFACE.fullmatch(value):
        advice = "give the name of a network interface of the nodes, such as 'ib0', or its network, as '10.1.0.0/16'"
        raise owner.refuse("interface", f"is {value!r}", advice)
    return value


def _min_nodes(owner: _Owner, value: object) -> int:
    text = str(value)
    if isinstance(value, bool) or not text.isdecimal() or not int(text):
        raise owner.refuse("min_nodes", f"is {value!r}", "give a whole number of at least 1")
    return int(text)


def _partitions(owner: _Owner, value: object) -> dict[str, dict[str, str | bool]]:
    example = "give options by partition: {'gpu': {'gres': 'gpu:4'}, 'cpu': {'mem': '16G'}}"
    if not isinstance(value, dict):
        raise owner.refuse("partitions", f"is {value!r}", example)
    found: dict[str, dict[str, str | bool]] = {}
    for partition, options in value.items():
        if not isinstance(partition, str) or not isinstance(options, dict):
            raise owner.refuse("partitions", f"has {partition!r}: {options!r}", example)
        name = f"{owner.prefix}partitions[{partition!r}]"
        inner = _Owner(name, f"{name}: ", owner.error)
        found[partition] = {}
        for given_name, option in options.items():
            name = sbatch_options.normalize_name(given_name)
            if name in ("partition", "time", *_OWN):
                raise inner.refuse(name, "is one of the whole job", f"give it as Slurm({name}=...)")
            # None leaves an option out here, too: it is one that the other partitions have.
            found[partition][name] = False if option is None else _option(inner, name, option)
    return found


def _container_runtime(owner: _Owner, value: object) -> str:
    if value not in apptainer_images.PROGRAMS:
        raise owner.refuse("container_runtime", f"is {value!r}", did_you_mean(str(value), apptainer_images.PROGRAMS))
    return str(value)


#: Settings that are not options of sbatch, and what validates them.
_OWN: Mapping[str, Callable[[_Owner, object], Any]] = {
    "setup": _setup,
    "interface": _interface,
    "min_nodes": _min_nodes,
    "container_runtime": _container_runtime,
    "partitions": _partitions,
}
