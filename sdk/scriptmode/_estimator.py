"""`Estimator` and `TensorFlow`: arguments of the SageMaker SDK, turned into a `TrainingJobSpec` and a training job."""

from __future__ import annotations

import copy
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from scriptmode._core.platforms import registry
from scriptmode._core.request import fields, job_inputs, render
from scriptmode._core.spec import arguments, names
from scriptmode._core.spec.estimator_arguments import EstimatorArguments, parse_call, with_signature_of
from scriptmode._core.spec.whole_numbers import truth_value
from scriptmode._core.text import messages
from scriptmode.errors import SpecError, invalid

if TYPE_CHECKING:
    from scriptmode._core.platforms.registry import Platform
    from scriptmode._core.source.rule_files import RuleFile
    from scriptmode._core.source.source_archive import Source
    from scriptmode._core.spec.job_request import JobRequest
    from scriptmode._core.spec.training_job import TrainingJobSpec
    from scriptmode._job import TrainingJob
    from scriptmode._results.analytics import TrainingJobAnalytics
    from scriptmode._sagemaker_session import Session
    from scriptmode.planning import Plan

_fresh_name = names.fresh_names()


class Estimator:
    """A training program and the hosts to run it on; `fit` starts a training job.

    Arguments have the names, meanings and defaults of the SageMaker SDK v2 ``Estimator``; names of v1 are accepted with
    a ``DeprecationWarning``. Each argument is also an attribute, which can be read and, for later jobs, set. After
    ``fit``, ``output_path`` and ``model_dir`` that were left out read as the job has them. ``sagemaker_session`` always
    reads as a `Session`. Objects of the caller are copied, never changed. What is about the latest job raises
    `SpecError` before the first `fit`.

    Args:
        image_uri: The image of the hosts' containers; by default the platform chooses one.
        role: ARN or name of the IAM role that the job has; not used on this machine.
        instance_count: Number of hosts.
        instance_type: ``local_process`` (each host is a process of this machine), ``local`` or ``local_gpu`` (each host
            is a container of this machine), ``slurm`` or ``slurm:PARTITION`` (each host is a node of a Slurm cluster),
            ``kubernetes`` or ``kubernetes:gpu=N`` (each host is a pod), or a type of Amazon SageMaker, such as
            ``ml.p3.2xlarge``.
        entry_point: The script to run, relative to ``source_dir``.
        source_dir: The directory with the source code; a directory of this machine, or an ``s3://`` archive.
        dependencies: More directories or files that are put beside the source code.
        hyperparameters: Command line arguments of the script, by name. Values are JSON-encoded.
        arguments: Command line arguments of the script as they are, after those of the hyperparameters: flags, repeated
            options, positional arguments. AWS's own images do not take them.
        distribution: How the script is spread over hosts and processes: `ParameterServer`, `MultiWorkerMirrored`,
            `MPI`, or the SageMaker SDK's dict.
        instance_groups: Groups of hosts of different types, in place of ``instance_count`` and ``instance_type``.
        input_mode: ``File`` (the default), ``Pipe`` or ``FastFile``, for channels that do not have their own.
        output_path: URI of the prefix below which the model and other outputs are stored.
        output_kms_key: KMS key that encrypts the outputs.
        disable_output_compression: Whether outputs are stored as files, not as ``.tar.gz`` archives.
        code_location: URI of the prefix below which the source archive is stored; by default the one of
            ``output_path``.
        model_dir: URI that the script gets as ``--model_dir``; ``False`` leaves the argument out.
        checkpoint_s3_uri: URI that checkpoints are restored from and synchronized to while the job trains.
        checkpoint_local_path: Directory of the checkpoints on the hosts; by default ``/opt/ml/checkpoints``.
        base_job_name: The beginning of job names.
        environment: Environment variables of the hosts.
        tags: Tags of the job: a dict, or a list of ``{"Key": ..., "Value": ...}``.
        metric_definitions: Metrics to find in the log: a list of ``{"Name": ..., "Regex": ...}``, or ``"keras"``.
        container_entry_point: The container's entry point, in place of the image's.
        container_arguments: The arguments of the container's entry point.
        container_log_level: Log level of the runtime on the hosts, a number or a name of ``logging``.
        volume_size: Size of each host's storage volume in GB.
        volume_kms_key: KMS key that encrypts the volumes.
        max_run: Time limit of the job in seconds.
        max_wait: Time limit of a spot job including its waiting, in seconds.
        use_spot_instances: Whether to use spot instances.
        max_retry_attempts: How often the job is started again after a fault outside of its script: a lost machine.
        keep_alive_period_in_seconds: How long the service keeps the hosts for the next job, in seconds.
        training_plan: ARN of the training plan whose instances are used.
        instance_placement_config: The service's InstancePlacementConfig.
        subnets: IDs of the VPC subnets of the hosts.
        security_group_ids: IDs of the VPC security groups of the hosts.
        enable_network_isolation: Whether the containers have no network connections other than to each other.
        encrypt_inter_container_traffic: Whether traffic among the hosts is encrypted.
        enable_sagemaker_metrics: Whether the service stores time series of the metrics.
        enable_infra_check: Whether the service checks the instances before training.
        enable_remote_debug: Whether SSM sessions to the containers are allowed.
        enable_session_tag_chaining: Whether tags of the session are passed to the job's role.
        training_repository_access_mode: ``Platform`` or ``Vpc``: where the image's registry is.
        training_repository_credentials_provider_arn: ARN of the Lambda function with the registry's credentials.
        framework_version: TensorFlow's version, which chooses the image where ``image_uri`` is not given. Hosts of this
            machine that have another one warn and run the script with theirs.
        py_version: Python's version of that image, such as ``py310``; as ``framework_version``.
        platform: ``"local"``, ``"sagemaker"`` or a platform, in place of the one that ``instance_type`` chooses.
        sagemaker_session: A `Session`, a boto3 session, or a session of an installed ``sagemaker`` package, v2 or v3.
        model_uri: URI of a pretrained model, which is an input channel of the job.
        model_channel_name: The name of that channel; by default ``model``.
        git_config: The Git repository that ``source_dir`` and ``entry_point`` are in: ``repo``, ``branch``, ``commit``
            ...
        rules: Rules of the debugger and the profiler.
        debugger_hook_config: The debugger's configuration; by default off.
        tensorboard_output_config: The service's TensorBoardOutputConfig; by default off.
        profiler_config: The profiler's configuration; by default off.
        disable_profiler: Whether the profiler is off.
        additional_request_fields: Fields of CreateTrainingJob that have no argument; they are added to the request
            unchanged. A field that is ``None`` is taken out of the request.
        older_names: Arguments under their names of SDK v1.

    Raises:
        SpecError: For values that cannot make a job.
        TypeError: For names that no version of the SDK knows.
    """

    #: The base of job names where neither ``base_job_name`` nor ``image_uri`` gives one.
    _base_name: ClassVar[str] = "training"
    #: Whether the script gets ``--model_dir`` by default (SageMaker's TensorFlow estimator does so).
    _gives_model_dir: ClassVar[bool] = False
    #: Whether metrics are stored by default for a framework version that reports them (TensorFlow 1.15 and later).
    _stores_metrics: ClassVar[bool] = False
    #: Whether arguments that cannot make a job are refused by `fit`, not by the constructor: those of an attached job.
    _defers_checks: bool = False
    #: Whether defaults of the SageMaker config file are ignored: an attached job's arguments are complete.
    _ignores_config_defaults: bool = False

    @with_signature_of(EstimatorArguments)
    def __init__(self, *positional: Any, **named: Any) -> None:
        given = parse_call(positional, named)
        self._platform = registry.explicit_platform(given.platform, given.sagemaker_session)
        self._session = given.sagemaker_session
        #: The session or the platform that it was made of, and the attribute ``sagemaker_session``.
        self._shown_session: tuple[object, Session] | None = None
        self.latest_training_job: TrainingJob | None = None
        #: The handles of the jobs that `fit` started, the latest one last.
        self.jobs: list[TrainingJob] = []
        self._latest: dict[str, object] = {}
        #: Why an attached job cannot start as it is; raised by the next `fit`.
        self._refused: SpecError | None = None
        try:
            self._spec = given.to_spec(
                base_job_name=self._base_name,
                gives_model_dir=self._gives_model_dir,
                stores_metrics=self._stores_metrics,
                ignore_config_defaults=self._ignores_config_defaults,
                plain=fields.PLAIN_ARGUMENTS.values(),
            )
        except SpecError as error:
            if not self._defers_checks:
                raise
            self._refused = error
        self._arguments = arguments.kept(given._asdict())

    def __getattr__(self, name: str) -> Any:
        """Return an argument of the constructor; called for names that are not attributes otherwise."""
        given = self.__dict__.get("_arguments", {})
        if name == "sagemaker_session" and given:
            return self._own_session()
        if name in given:
            value = given[name]
            # Where an argument was left out, the latest job's value.
            return self._latest.get(name, value) if value is None or value is True else value
        from scriptmode._core.spec.older_names import MISSING_METHODS

        advice = f"; {MISSING_METHODS[name]}" if name in MISSING_METHODS else ""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{advice}")

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an argument, checked as by the constructor, or an attribute of the user's own."""
        given = self.__dict__.get("_arguments", {})
        if name in given:
            self._set_argument(name, value)
            return
        is_new = given and name not in vars(self) and not name.startswith("_")
        if is_new and (similar := messages.did_you_mean(name, given, most=0)):
            messages.warn_caller(f"the estimator has no argument {name!r}; {similar}")
        object.__setattr__(self, name, value)

    def _set_argument(self, name: str, value: object) -> None:
        given = {**self._arguments, name: value}
        if (additional := given["additional_request_fields"]) is not None and value is not self._arguments[name]:
            from scriptmode._core.request import additional_fields

            additional_fields.check_taken_out(name, additional)
        made = object.__new__(type(self))
        # An attached job may need several attributes to be set before its arguments are valid.
        deferred, ignored = self._refused is not None, self._ignores_config_defaults
        vars(made).update(_defers_checks=deferred, _ignores_config_defaults=ignored)
        Estimator.__init__(made, **given)
        if made._refused is None:
            is_same = self._refused is None and made._session is self._session and made._types == self._types
            if made._platform is None and is_same:
                made._platform = self._platform
            self._spec = made._spec
        self._platform, self._session, self._refused = made._platform, made._session, made._refused
        self._arguments = made._arguments

    @property
    def _types(self) -> tuple[str, ...]:
        return self.spec.resources.types

    def __repr__(self) -> str:
        if self._refused is not None:
            return f"{type(self).__name__}(attached, cannot start: {self._refused})"
        what = self._spec.script.entry_point if self._spec.script else self._spec.algorithm.image_uri
        return f"{type(self).__name__}({what!r} on {self._spec.resources.count} x {'/'.join(self._types)})"

    @property
    def spec(self) -> TrainingJobSpec:
        """The job that this estimator describes, without its inputs.

        Raises:
            SpecError: Where the estimator is attached to a job with an argument that must be changed first.
        """
        if self._refused is not None:
            what = f"{self._refused}. It is the attached job's value"
            step = "set the argument before the next fit"
            raise SpecError(what, step, argument=self._refused.argument) from self._refused
        return self._spec

    @property
    def platform(self) -> Platform:
        """The platform of the jobs: the ``platform`` argument, or the one that ``instance_type`` chooses."""
        if self._platform is None:
            self._platform = registry.for_instance_types(self._types, self._session)
        return self._platform

    def hyperparameters(self) -> dict[str, Any]:
        """Return a copy of the hyperparameters."""
        return arguments.copied("hyperparameters", self._arguments["hyperparameters"])

    def set_hyperparameters(self, *unnamed: object, **hyperparameters: Any) -> None:
        """Add or replace hyperparameters for the jobs that follow."""
        if unnamed:
            raise invalid("hyperparameters", "have names", "write set_hyperparameters(**values) for a dict of values")
        self._set_argument("hyperparameters", {**self.hyperparameters(), **hyperparameters})

    def training_image_uri(self, region: str | None = None) -> str | None:
        """Return the URI of the hosts' image, which may be looked up by ``framework_version``, or ``None``."""
        if region not in (None, self.platform.region):
            raise invalid("region", f"is {region!r}, but the jobs' is {self.platform.region!r}", "give a session of it")
        return self.platform.complete(self.spec).algorithm.image_uri

    def request(
        self, inputs: object = None, *, job_name: str | None = None, experiment_config: object = None
    ) -> dict[str, Any]:
        """Return the CreateTrainingJob request that `fit` would send, after the same checks.

        Nothing is stored: the source archive that the request names may not exist. `stored_request` stores it.

        For Amazon SageMaker a Region is needed. AWS is called only where the role is a name (IAM has its ARN), the
        SageMaker config file is in S3, or the source is in a Git repository.

        Args:
            inputs: The inputs, as `fit` takes them.
            job_name: The job's name; by default a new one.
            experiment_config: The service's ExperimentConfig.

        Raises:
            SpecError: For arguments that cannot make a job.
            RequestError: With everything for which the service would refuse the request.
        """
        return copy.deepcopy(render.render_request(self._prepare(inputs, job_name, experiment_config)[0]))

    def stored_request(
        self, inputs: object = None, *, job_name: str | None = None, experiment_config: object = None
    ) -> dict[str, Any]:
        """Store the source and return the CreateTrainingJob request, for another client that starts the job.

        Such a client is a step of Airflow or Step Functions. Arguments and errors are those of `request`.
        """
        request, source, rule_files = self._prepare(inputs, job_name, experiment_config)
        self._store_files(request, source, rule_files, shown=False)
        return copy.deepcopy(render.render_request(request))

    def plan(self, inputs: object = None, *, job_name: str | None = None, experiment_config: object = None) -> Plan:
        """Return what `fit` would do: the request, the hosts' files and processes, the source archive.

        Nothing is stored or started. Arguments and errors are those of `request`.

        Raises:
            SpecError: Also for what the hosts themselves would refuse.
            MissingPackageError: Where the package ``scriptmode`` is installed alone.
        """
        registry.require_local_package("plan()", "read request(), which needs nothing")
        from scriptmode._core.handle import early_checks, log_lines
        from scriptmode.planning import _planner as planner

        request, source, _ = self._prepare(inputs, job_name, experiment_config)
        log_lines.warn(early_checks.check_job(self.platform, request, source), sys.stderr)
        return planner.create_plan(self.platform, request, source)

    def fit(
        self,
        inputs: object = None,
        wait: bool = True,  # noqa: FBT001, FBT002 - positional in the SageMaker SDK
        logs: bool | str | None = True,  # noqa: FBT001, FBT002
        job_name: str | None = None,
        experiment_config: object = None,
        *,
        live: bool | None = None,
    ) -> TrainingJob:
        """Start a training job, and return its handle. Each call starts a new job.

        Args:
            inputs: An ``s3://`` or ``file://`` URI, a path, a `TrainingInput`, a `FileSystemInput`, or a dict of them
                by channel name; ``None`` for a job without inputs. A single input is the channel ``training``.
            wait: Whether to wait until the job has ended. An interrupt leaves the job running.
            logs: Whether to display the log and the status while waiting; also the SageMaker SDK's words. Warnings are
                written in any case.
            job_name: The job's name; by default a new one.
            experiment_config: The service's ExperimentConfig.
            live: Whether to display the log in the live view, as `TrainingJob.follow` does.

        Raises:
            SpecError: For arguments that cannot make a job.
            RequestError: With everything for which the service would refuse the request, before anything is stored.
            TrainingJobFailed: Where the job failed, after waiting.
            TrainingJobStopped: Where the job was stopped, after waiting.
        """
        wait = truth_value("wait", wait)
        shown = arguments.shows_logs(logs) and wait
        if shown or live is not None:
            from scriptmode import _display as display

            # A wrong value is reported before the job is created.
            display.choose_view(live)
        from scriptmode._core.handle import early_checks, log_lines
        from scriptmode._job import create_job

        request, source, rule_files = self._prepare(inputs, job_name, experiment_config)
        # Without the log the caller may read the output.
        log_lines.warn(early_checks.check_job(self.platform, request, source), sys.stdout if shown else sys.stderr)
        self._store_files(request, source, rule_files, shown=shown)
        script = self.spec.script
        job = create_job(self.platform, request, script.directory if script else "")
        self.latest_training_job = job
        self.jobs.append(job)
        self._latest = arguments.of_latest_job(request)
        if shown:
            log_lines.write_line(f"training job {job.name} started")
        if wait:
            job.follow(logs=shown, live=live)
        return job

    def _own_session(self) -> Session:
        origin: Any = self.platform if self._session is None else self._session
        if self._shown_session is None or self._shown_session[0] is not origin:
            from scriptmode import _sagemaker_session as sessions

            create = sessions.session_of_platform if self._session is None else sessions.wrap_session
            self._shown_session = origin, create(origin)
        return self._shown_session[1]

    @property
    def model_data(self) -> str | None:
        """URI of the latest job's ``model.tar.gz``; ``None`` while there is none."""
        return self.latest_training_job.model_data if self.latest_training_job else None

    @property
    def training_job_analytics(self) -> TrainingJobAnalytics:
        """The latest job's metrics; their ``dataframe()`` is a ``pandas.DataFrame``, as in the SageMaker SDK."""
        return self._latest_job("training_job_analytics").analytics()

    def latest_job_debugger_artifacts_path(self) -> str | None:
        """Return the URI below which the latest job's debugger stores tensors; ``None`` where the debugger is off."""
        return self._monitoring_output("latest_job_debugger_artifacts_path()", "debugger")

    def latest_job_profiler_artifacts_path(self) -> str | None:
        """Return the URI below which the latest job's profiler stores; ``None`` where the profiler is off."""
        return self._monitoring_output("latest_job_profiler_artifacts_path()", "profiler")

    def latest_job_tensorboard_artifacts_path(self) -> str | None:
        """Return the URI below which the service stores the latest job's event files.

        ``None`` where ``tensorboard_output_config`` is off; `TrainingJob.tensorboard` shows the event files of each
        job.
        """
        return self._monitoring_output("latest_job_tensorboard_artifacts_path()", "tensorboard")

    def _monitoring_output(self, requested: str, tool: str) -> str | None:
        from scriptmode._core.spec.monitoring import monitoring_output

        return monitoring_output(self._latest_job(requested).describe(), tool)

    def logs(self) -> None:
        """Display the log and status of the latest job until it has ended; raise for its end as `fit` does."""
        self._latest_job("logs()").follow()

    def get_vpc_config(self, vpc_config_override: Any = "VPC_CONFIG_DEFAULT") -> Any:
        """Return the service's VpcConfig of the arguments, ``None`` where they have none; or the override."""
        is_given = vpc_config_override != "VPC_CONFIG_DEFAULT"
        return vpc_config_override if is_given else fields.render_field("VpcConfig", self.spec)

    def get_remote_debug_config(self) -> dict[str, Any] | None:
        """Return the service's RemoteDebugConfig, ``None`` where ``enable_remote_debug`` is."""
        return fields.render_field("RemoteDebugConfig", self.spec)

    def get_session_chaining_config(self) -> dict[str, Any] | None:
        """Return the service's SessionChainingConfig, ``None`` where ``enable_session_tag_chaining`` is."""
        return fields.render_field("SessionChainingConfig", self.spec)

    def disable_profiling(self) -> None:
        """Stop the profiler of the latest job, which runs on Amazon SageMaker."""
        job = self._latest_job("disable_profiling()")
        job.platform.update(job.name, ProfilerConfig={"DisableProfiler": True})

    def disable_remote_debug(self) -> None:
        """Refuse SSM sessions to the containers of the latest job, which runs on Amazon SageMaker, and of the next."""
        job = self._latest_job("disable_remote_debug()")
        job.platform.update(job.name, RemoteDebugConfig={"EnableRemoteDebug": False})
        self.enable_remote_debug = False

    def _latest_job(self, requested: str) -> TrainingJob:
        if self.latest_training_job is None:
            raise invalid("latest_training_job", f"is None, and {requested} is about it", "call fit first, or attach")
        return self.latest_training_job

    @classmethod
    def attach(
        cls, training_job_name: str, sagemaker_session: object = None, *, platform: Platform | str | None = None
    ) -> Estimator:
        """Return an estimator with the arguments of a job that was started before, by any client.

        The inputs are ``latest_training_job.inputs()``, not arguments. An argument that the service accepted and the
        constructor refuses is refused by the next ``fit``, unless it is set before. Arguments and errors are those of
        `TrainingJob.attach`.
        """
        from scriptmode._core.platforms.job_platforms import find_job_platform
        from scriptmode._core.request.parse import parse_request
        from scriptmode._job import TrainingJob

        platform = find_job_platform(training_job_name, sagemaker_session, platform).with_settings_of(training_job_name)
        description = platform.describe(training_job_name)
        estimator = cls._of_job(description.response, platform.tags(description), platform)
        estimator.latest_training_job = TrainingJob(training_job_name, platform)
        vars(estimator)["_latest"] = arguments.of_latest_job(parse_request(description.response))
        return estimator

    @classmethod
    def _of_job(cls, description: Mapping[str, Any], tags: Mapping[str, str], platform: Platform) -> Estimator:
        """Return an estimator with the arguments of a described job; see `attach`."""
        from scriptmode._core.request.rerun import estimator_arguments

        estimator = cls.__new__(cls)
        # As that job was: defaults of this machine's config file do not apply.
        vars(estimator).update(_defers_checks=True, _ignores_config_defaults=True)
        cls.__init__(estimator, platform=platform, **estimator_arguments(description, tags))
        return estimator

    def _prepare(
        self, given: object, job_name: str | None, experiment_config: Any
    ) -> tuple[JobRequest, tuple[Source, str] | None, tuple[RuleFile, ...]]:
        """Return the request, the source with its archive's URI where there is one to store, and the files of rules."""
        experiment = arguments.copied("experiment_config", experiment_config)
        asked = replace(self.spec, channels=job_inputs.parse_inputs(given), experiment=experiment)
        name = _fresh_name(asked.base_job_name) if job_name is None else names.check_job_name(job_name)
        rule_files: tuple[RuleFile, ...] = ()
        spec = self.platform.complete(asked)
        if spec.monitoring.debug_rules or spec.monitoring.profiler_rules:
            from scriptmode._core.source.rule_files import add_rule_files

            spec, rule_files = add_rule_files(spec)
        region = self.platform.region
        if spec.script is None or spec.script.is_packed:
            stored = spec.script.source_dir if spec.script else None
            return self._checked(spec, name, region, stored), None, rule_files
        from scriptmode._core.source.source_archive import ARCHIVE_NAME, read_source, script_name

        source = read_source(spec.script)
        uri = f"{str(spec.output.code_location).rstrip('/')}/{source.digest}/{ARCHIVE_NAME}"
        spec = replace(spec, script=replace(spec.script, entry_point=script_name(spec.script)))
        return self._checked(spec, name, region, uri), (source, uri), rule_files

    def _store_files(
        self, request: JobRequest, source: tuple[Source, str] | None, rule_files: tuple[RuleFile, ...], *, shown: bool
    ) -> None:
        """Store the source and the files of rules that `_prepare` returned."""

        def store(data: bytes, uri: str) -> None:
            # The output's key is for what is in its bucket.
            is_beside = (request.output.path or "").split("/")[:3] == uri.split("/")[:3]
            key = request.output.kms_key if is_beside else None
            self.platform.put_source(data, uri, kms_key=key, role=request.role)

        if source is not None:
            archive, uri = source
            store(archive.data, uri)
            if shown:
                from scriptmode._core.handle import log_lines

                text = f"{messages.pluralize(len(archive.files), 'file')}, {messages.format_bytes(len(archive.data))}"
                log_lines.write_line(f"source archive: {text}, at {uri}")
        for file in rule_files:
            store(file.data, file.uri)

    def _prepare_for_training(self, *_: object, **__: object) -> None:
        """Refuse the SageMaker SDK's own ``HyperparameterTuner``, which calls this first."""
        what = f"sagemaker's HyperparameterTuner cannot start training jobs of a scriptmode.{type(self).__name__}"
        raise SpecError(what, "use scriptmode.HyperparameterTuner, which has the same arguments", argument="estimator")

    def _checked(self, spec: TrainingJobSpec, name: str, region: str, source_uri: str | None) -> JobRequest:
        request = render.to_request(spec, name, region=region, source_uri=source_uri)
        if spec.additional_fields:
            from scriptmode._core.request import additional_fields

            request = additional_fields.with_additional_fields(request, spec.additional_fields)
        self.platform.validate(request)
        return request


class TensorFlow(Estimator):
    """An `Estimator` for TensorFlow scripts, which get ``--model_dir`` by default.

    ``model_dir`` is ``<output_path>/<job>/model``, under MPI ``/opt/ml/model``; ``False`` leaves the argument out.
    """

    _base_name = "tensorflow-training"
    _gives_model_dir = True
    _stores_metrics = True
