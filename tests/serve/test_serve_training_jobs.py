"""SageMaker's operations on training jobs, called by boto3. Every answer is checked against botocore's model."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
import urllib.request

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from fakes.command_line import PROGRAM
from fakes.local_jobs import ENDED, SLEEPS
from fakes.output_shapes import check_answers
from fakes.processes import until
from fakes.slurm import FakeSlurm
from serve.conftest import TENSORFLOW, serving

from scriptmode.errors import SpecError
from scriptmode_local import LocalPlatform
from scriptmode_runtime._host import machine
from scriptmode_serve._operations.quotas import parse_quotas

pytestmark = pytest.mark.slow

LOGS = "/aws/sagemaker/TrainingJobs"


def code_of(call, **arguments):
    with pytest.raises(ClientError) as raised:
        call(**arguments)
    return raised.value.response["Error"]["Code"], raised.value.response["Error"]["Message"]


def test_a_job_runs_and_is_described_as_it_was_asked_for(api):
    request = api.request("open('/opt/ml/model/weights', 'w').write('1')", Tags=[{"Key": "team", "Value": "a"}])
    arn = api.sagemaker.create_training_job(**request)["TrainingJobArn"]
    waiter = api.sagemaker.get_waiter("training_job_completed_or_stopped")
    waiter.wait(TrainingJobName=request["TrainingJobName"], WaiterConfig={"Delay": 0.2, "MaxAttempts": 300})
    found = api.sagemaker.describe_training_job(TrainingJobName=request["TrainingJobName"])
    assert found["TrainingJobStatus"] == "Completed", found.get("FailureReason")
    assert found["TrainingJobArn"] == arn
    assert found["ResourceConfig"] == request["ResourceConfig"]
    assert found["AlgorithmSpecification"]["TrainingImage"] == TENSORFLOW
    has_series = found["AlgorithmSpecification"]["EnableSageMakerMetricsTimeSeries"]
    assert (found["ProfilingStatus"], has_series) == ("Disabled", True)
    assert (found["OutputDataConfig"]["KmsKeyId"], found["OutputDataConfig"]["CompressionType"]) == ("", "GZIP")
    assert (api.folder / "out" / request["TrainingJobName"] / "output" / "model.tar.gz").exists()


def test_checkpoints_of_a_directory_that_the_request_names_are_kept(api):
    script = """
        import os, pathlib
        folder = pathlib.Path(os.environ["SM_MODEL_DIR"]).parent / "state" / "mine"
        (folder / "step").write_text("7")
    """
    place = {"S3Uri": f"file://{api.folder}/checkpoints", "LocalPath": "/opt/ml/state/mine"}
    found = api.run(script, CheckpointConfig=place)
    assert (found["TrainingJobStatus"], found["CheckpointConfig"]) == ("Completed", place), found.get("FailureReason")
    assert (api.folder / "checkpoints" / "step").read_text() == "7"


def test_instance_groups_keep_their_types(api):
    groups = [
        {"InstanceGroupName": "a", "InstanceType": "ml.c5.xlarge", "InstanceCount": 1},
        {"InstanceGroupName": "b", "InstanceType": "ml.p3.2xlarge", "InstanceCount": 1},
    ]
    found = api.run("print(1)", ResourceConfig={"InstanceGroups": groups, "VolumeSizeInGB": 1})
    assert found["TrainingJobStatus"] == "Completed", found.get("FailureReason")
    assert found["ResourceConfig"]["InstanceGroups"] == groups


def test_errors_have_the_codes_of_aws(api):
    sagemaker = api.sagemaker
    missing = ("ValidationException", "Requested resource not found.")
    assert code_of(sagemaker.describe_training_job, TrainingJobName="none") == missing
    assert code_of(sagemaker.stop_training_job, TrainingJobName="none") == missing
    assert code_of(sagemaker.delete_training_job, TrainingJobName="none")[0] == "ResourceNotFound"
    name = api.start("print(1)")
    arn = sagemaker.describe_training_job(TrainingJobName=name)["TrainingJobArn"]
    code, message = code_of(sagemaker.create_training_job, **api.request("print(1)", name=name))
    assert code == "ResourceInUse"
    assert message.startswith("Training job names must be unique within an AWS account and region, and a training job")
    assert message.endswith(f" with this name already exists ({arn})")
    code, message = code_of(sagemaker.list_models)
    assert (code, "ListModels of SageMaker" in message) == ("UnknownOperationException", True)


def test_a_request_that_boto3_does_not_check_is_refused_in_the_words_of_aws(api):
    unchecked = api.client("sagemaker", config=Config(parameter_validation=False))
    failed = "failed to satisfy constraint: Member must"
    code, message = code_of(unchecked.create_training_job, **api.request("print(1)", name="a_b", RoleArn="nobody"))
    assert code == "ValidationException"
    assert message.startswith(
        f"3 validation errors detected: Value 'a_b' at 'trainingJobName' {failed} satisfy regular expression pattern: "
        f"[a-zA-Z0-9](-*[a-zA-Z0-9]){{0,62}}; Value 'nobody' at 'roleArn' {failed} have length greater than or equal to 20; "
    )
    code, message = code_of(unchecked.describe_training_job, TrainingJobName=1)
    assert (code, message) == ("SerializationException", "The value at 'trainingJobName' is not of the type string")


def test_a_path_of_other_bytes_than_utf_8_is_an_input_and_is_described(api):
    folder = api.folder / "d\udcffta"
    folder.mkdir()
    (folder / "f\udcfele").touch()
    source = {"S3DataType": "S3Prefix", "S3Uri": f"file://{folder}"}
    script = "import os; print(ascii(os.listdir(os.environ['SM_CHANNEL_TRAIN'])))"
    found = api.run(script, InputDataConfig=[{"ChannelName": "train", "DataSource": {"S3DataSource": source}}])
    assert found["TrainingJobStatus"] == "Completed", found.get("FailureReason")
    assert found["InputDataConfig"][0]["DataSource"]["S3DataSource"]["S3Uri"] == f"file://{folder}"
    events = api.logs.filter_log_events(logGroupName=LOGS, logStreamNamePrefix=found["TrainingJobName"])["events"]
    assert "['f\\udcfele']" in [each["message"] for each in events]


@pytest.mark.parametrize("text", ["a\0b", "a" + chr(0xDCFF), "a" + chr(0xD800)], ids=["NUL", "byte", "half"])
def test_text_that_no_program_and_no_record_can_have_is_refused(api, text):
    code = "SerializationException" if text[1] == chr(0xD800) else "ValidationException"
    parts = {
        "environment": {"Environment": {"A": text}},
        "hyperParameters": {"HyperParameters": {**api.request("")["HyperParameters"], "a": text}},
        "outputDataConfig.s3OutputPath": {"OutputDataConfig": {"S3OutputPath": f"s3://bucket/{text}"}},
    }
    for member, changes in parts.items():
        found = code_of(api.sagemaker.create_training_job, **api.request("pass", **changes))
        assert (found[0], member in found[1] or code[0] == "S") == (code, True), found
    if text == "a\0b":
        request = api.request("pass")
        request["HyperParameters"]["a"] = json.dumps(text)
        assert "'a' has a NUL character" in code_of(api.sagemaker.create_training_job, **request)[1]
        request["OutputDataConfig"]["S3OutputPath"] = f"file://{api.folder}/{text}"
        assert "NUL" in code_of(api.sagemaker.create_training_job, **request)[1]


def test_jobs_are_listed_in_pages_by_filters_and_in_both_orders(api):
    prefix = f"listed{time.time_ns()}"
    names = [api.start("print(1)", name=f"{prefix}-{index}") for index in range(3)]
    for name in names:
        assert api.wait(name)["TrainingJobStatus"] == "Completed"
    pages = api.sagemaker.get_paginator("list_training_jobs")

    def listed(**arguments):
        found = pages.paginate(NameContains=prefix, PaginationConfig={"PageSize": 2}, **arguments)
        return [job["TrainingJobName"] for page in found for job in page["TrainingJobSummaries"]]

    assert listed() == names
    assert listed(SortOrder="Descending") == names[::-1]
    assert listed(SortBy="Name", SortOrder="Descending") == names[::-1]
    assert listed(SortBy="Status") == names
    assert listed(StatusEquals="Failed") == []
    middle = api.sagemaker.describe_training_job(TrainingJobName=names[1])["CreationTime"]
    assert listed(CreationTimeAfter=middle) == names[2:]
    for token in ("x", "MQ==", "bnVsbA==", "WzEsIDJd"):  # the others are a number, null and a list in base 64
        assert code_of(api.sagemaker.list_training_jobs, SortBy="Name", NextToken=token)[0] == "ValidationException"
    assert code_of(api.sagemaker.list_training_jobs, SortBy="Size")[0] == "ValidationException"


def test_the_tags_of_the_server_do_not_count_among_those_of_a_client(api):
    tags = [{"Key": f"k{each}", "Value": "v"} for each in range(50)]
    arn = api.run("print(1)", Tags=tags)["TrainingJobArn"]
    pages = api.sagemaker.get_paginator("list_tags").paginate(ResourceArn=arn)
    assert [tag for page in pages for tag in page["Tags"]] == sorted(tags, key=lambda tag: tag["Key"])
    more = api.request("print(1)", Tags=[*tags, {"Key": "more", "Value": "v"}])
    code, text = code_of(api.sagemaker.create_training_job, **more)
    assert (code, "less than or equal to 50" in text) == ("ValidationException", True)


def test_tags_are_added_listed_and_removed(api):
    arn = api.sagemaker.describe_training_job(
        TrainingJobName=api.start("print(1)", Tags=[{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}])
    )["TrainingJobArn"]
    added = api.sagemaker.add_tags(ResourceArn=arn, Tags=[{"Key": "b", "Value": "3"}, {"Key": "c", "Value": "4"}])
    assert {tag["Key"]: tag["Value"] for tag in added["Tags"]} == {"a": "1", "b": "3", "c": "4"}
    api.sagemaker.delete_tags(ResourceArn=arn, TagKeys=["a", "none"])
    pages = api.sagemaker.get_paginator("list_tags").paginate(ResourceArn=arn)
    assert [tag["Key"] for page in pages for tag in page["Tags"]] == ["b", "c"]
    expression = {"Filters": [{"Name": "Tags.c", "Operator": "Equals", "Value": "4"}]}
    found = api.sagemaker.search(Resource="TrainingJob", SearchExpression=expression)["Results"]
    assert [record["TrainingJob"]["TrainingJobArn"] for record in found] == [arn]
    own = [{"Key": "scriptmode:instance-types", "Value": "x"}]
    assert code_of(api.sagemaker.add_tags, ResourceArn=arn, Tags=own)[0] == "ValidationException"
    assert code_of(api.sagemaker.list_tags, ResourceArn=arn + "x")[0] == "ValidationException"
    folder = LocalPlatform(data_dir=api.server.data_dir).server_folder(arn.rpartition("/")[2])
    (folder / "tags.json").write_text("[]")
    code, message = code_of(api.sagemaker.list_tags, ResourceArn=arn)
    assert (code, "tags.json is not a JSON object" in message) == ("ValidationException", True)


def test_an_ended_job_is_deleted_and_a_running_one_is_not(api):
    running, ended = api.start(SLEEPS), api.start("print(1)")
    api.wait(ended)
    assert code_of(api.sagemaker.delete_training_job, TrainingJobName=running)[0] == "ResourceInUse"
    api.sagemaker.delete_training_job(TrainingJobName=ended)
    assert code_of(api.sagemaker.describe_training_job, TrainingJobName=ended)[0] == "ValidationException"


def test_other_services_are_there(api):
    assert api.client("sts").get_caller_identity()["Account"] == "000000000000"
    program = f"""
        import sagemaker
        from sagemaker.tensorflow import TensorFlow

        role = sagemaker.get_execution_role()
        TensorFlow(
            entry_point="train.py", source_dir={str(api.folder)!r}, role=role, instance_type="ml.m5.xlarge",
            instance_count=1, framework_version="2.14", py_version="py310",
        ).fit(logs=False)
        print(role)
    """
    (api.folder / "launch.py").write_text(textwrap.dedent(program))
    (api.folder / "train.py").write_text("print(1)")
    out = api.execute(sys.executable, "-m", "scriptmode.v2", api.folder / "launch.py")
    assert out.splitlines()[-1] == "arn:aws:iam::000000000000:role/scriptmode-local"
    answer = api.client("iam").simulate_principal_policy(
        PolicySourceArn="arn:aws:iam::000000000000:role/test", ActionNames=["s3:GetObject", "s3:PutObject"]
    )
    decisions = {each["EvalActionName"]: each["EvalDecision"] for each in answer["EvaluationResults"]}
    assert decisions == {"s3:GetObject": "allowed", "s3:PutObject": "allowed"}


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({}, b"{", 400), ({}, b"[" * 100_000, 400), ({}, b"[]", 400), ({}, b'{"MaxResults": NaN}', 400),
        ({}, b'{"CreationTimeAfter": "x"}', 400), ({}, b" " * 5_000_000, 413),
        ({"Host": "evil.example"}, b"{}", 403),
    ],
)  # fmt: skip
def test_a_wrong_request_has_an_answer_and_does_not_end_the_server(api, headers, body, status):
    target = {"X-Amz-Target": "SageMaker.ListTrainingJobs"}
    request = urllib.request.Request(api.server.url, body, {**target, **headers}, method="POST")
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(request, timeout=600)
    assert raised.value.code == status
    raised.value.close()
    assert api.sagemaker.list_training_jobs(MaxResults=1)


def test_a_job_with_more_hosts_than_the_machine_bears_is_refused(api):
    request = api.request("print(1)")
    request["ResourceConfig"]["InstanceCount"] = 1000
    code, message = code_of(api.sagemaker.create_training_job, **request)
    assert code == "ResourceLimitExceeded"
    assert re.search(
        r"1,000 processes at once .* \d+ fit: .*; go past that with .* --force \(of run, plan, and serve", message
    )
    assert api.sagemaker.list_training_jobs(NameContains=request["TrainingJobName"])["TrainingJobSummaries"] == []


def test_a_remote_function_which_writes_into_the_root_directory_needs_containers(api):
    source = {"S3DataType": "S3Prefix", "S3Uri": f"file://{api.folder}"}
    channel = {"ChannelName": "sagemaker_remote_function_bootstrap", "DataSource": {"S3DataSource": source}}
    code, message = code_of(api.sagemaker.create_training_job, **api.request("pass", InputDataConfig=[channel]))
    assert (code, "start scriptmode serve with --hosts local" in message) == ("ValidationException", True)


def test_a_job_above_a_quota_is_refused_in_the_words_of_aws_until_others_have_ended(tmp_path):
    with serving(tmp_path, "--s3", "memory", "--queue", "1", "--quota", "ml.m5.xlarge=2") as api:
        group = {"InstanceGroupName": "a", "InstanceType": "ml.m5.xlarge", "InstanceCount": 1}
        api.start(SLEEPS)
        waiting = api.start(SLEEPS, ResourceConfig={"InstanceGroups": [group], "VolumeSizeInGB": 1})
        code, message = code_of(api.sagemaker.create_training_job, **api.request(SLEEPS))
        limit = "The account-level service limit 'ml.m5.xlarge for training job usage' is 2 Instances, with current "
        expected = f"{limit}utilization of 2 Instances and a request delta of 1 Instances. "
        assert (code, message.startswith(expected)) == ("ResourceLimitExceeded", True)
        # Spot instances have quotas of their own.
        api.start(SLEEPS, EnableManagedSpotTraining=True, StoppingCondition={"MaxWaitTimeInSeconds": 86_400})
        api.sagemaker.stop_training_job(TrainingJobName=waiting)
        api.wait(waiting)
        api.start(SLEEPS)


def test_a_quota_of_another_type_or_of_no_number_is_refused():
    for count, kind in (("2", "ml.p4d.24xlrge"), ("-1", "ml.p4d.24xlarge"), ("two", "ml.p4d.24xlarge")):
        with pytest.raises(SpecError, match=f"--quota is '{kind}={count}'.*ml.p4d.24xlarge"):
            parse_quotas({kind: count})


def test_a_running_server_starts_a_lost_job_again_without_a_request(tmp_path):
    with serving(tmp_path, "--s3", "memory") as api:
        name = api.start(SLEEPS, RetryStrategy={"MaximumRetryAttempts": 1})
        until(lambda: api.sagemaker.describe_training_job(TrainingJobName=name)["SecondaryStatus"] == "Training")
        folder = tmp_path / "data" / "jobs" / name
        os.kill(json.loads((folder / "processes.json").read_text())["agent"]["pid"], signal.SIGKILL)
        until(lambda: "the job starts again" in (folder / "logs" / "algo-1.log").read_text())


def test_by_default_a_job_waits_until_the_machine_has_room_for_its_hosts(tmp_path):
    # Two such jobs have more processes than may run at once.
    hosts = max(4, machine.inspect().cpus) // 2 + 1
    resources = {"InstanceType": "ml.m5.xlarge", "InstanceCount": hosts, "VolumeSizeInGB": 1}
    with serving(tmp_path, "--s3", "memory") as api:
        first, second = (api.start(SLEEPS, ResourceConfig=resources) for _ in range(2))

        def secondary(name):
            return api.sagemaker.describe_training_job(TrainingJobName=name)["SecondaryStatus"]

        until(lambda: secondary(first) == "Training")
        assert secondary(second) == "Pending"
        api.sagemaker.stop_training_job(TrainingJobName=first)
        until(lambda: secondary(second) == "Training")


def damage_and_stop(api, name, file):
    """Damage a file of a running job, and stop the job; return the folder of the job, which cannot be read."""
    path = api.folder / "data" / "jobs" / name / file
    job = {"TrainingJobName": name}
    until(lambda: api.sagemaker.describe_training_job(**job)["SecondaryStatus"] == "Training")
    arn = api.sagemaker.describe_training_job(**job)["TrainingJobArn"]
    expected = f"Training job {name} cannot be read: {file} is damaged; "
    path.write_text("{")
    code, message = code_of(api.sagemaker.describe_training_job, **job)
    assert (code, message) == ("ValidationException", f"{expected}StopTrainingJob stops it.")
    if file == "state.json":
        assert api.sagemaker.list_tags(ResourceArn=arn)["Tags"] == []
    assert code_of(api.sagemaker.delete_training_job, **job)[0] == "ResourceInUse"
    api.sagemaker.stop_training_job(**job)
    until(lambda: not (path.parent / "hosts").exists())
    path.write_text("{")
    until(lambda: code_of(api.sagemaker.describe_training_job, **job)[1].endswith("DeleteTrainingJob removes it."))
    assert api.logs.describe_log_streams(logGroupName=LOGS, logStreamNamePrefix=f"{name}/")["logStreams"] == []
    return path.parent


def test_a_damaged_job_has_an_answer_and_is_deleted(tmp_path):
    with serving(tmp_path, "--s3", "memory") as api:
        names = {file: api.start(SLEEPS) for file in ("job.json", "state.json")}
        api.names.clear()
        folders = [damage_and_stop(api, name, file) for file, name in names.items()]
        assert api.run("print(1)")["TrainingJobStatus"] == "Completed"
        streams = api.logs.describe_log_streams(logGroupName=LOGS)["logStreams"]
        assert [each["logStreamName"].partition("/")[0] for each in streams] == api.names
        for folder in folders:
            api.sagemaker.delete_training_job(TrainingJobName=folder.name)
            assert not folder.exists()


def test_an_instance_type_stands_for_nodes_of_slurm(tmp_path):
    fake = FakeSlurm(tmp_path / "slurm")
    environment = {"PATH": fake.environment["PATH"], "XDG_CONFIG_HOME": str(tmp_path / "config")}
    try:
        with serving(tmp_path, "--s3", "memory", "--hosts", "slurm", environment=environment) as api:
            fake.play({"state": "PENDING", "reason": "Priority"})
            name = api.start("print('on a node')")
            assert (tmp_path / "data" / "jobs" / name / "job.sh").read_text().startswith("#!/bin/bash\n")
            found = api.sagemaker.describe_training_job(TrainingJobName=name)
            assert (found["TrainingJobStatus"], found["SecondaryStatus"]) == ("InProgress", "Pending")
            assert found["ResourceConfig"]["InstanceType"] == "ml.m5.xlarge"
            assert found["AlgorithmSpecification"]["TrainingImage"] == TENSORFLOW
            api.sagemaker.stop_training_job(TrainingJobName=name)
            assert api.wait(name)["TrainingJobStatus"] == "Stopped"
    finally:
        fake.close()


@pytest.mark.parametrize("has_key", [False, True])
def test_the_printed_command_is_all_that_a_client_without_settings_needs(tmp_path, has_key):
    own = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SCRIPTMODE_DATA_DIR": str(tmp_path / "data")}
    variables = {}
    if has_key:
        key = subprocess.run([PROGRAM, "serve", "key"], env=own, stdout=subprocess.PIPE, text=True, check=True).stdout
        variables = dict(word.split("=", 1) for word in key.split() if "=" in word)
    command = [PROGRAM, "serve", "--s3", "memory", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, env=own, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            first, *words = server.stdout.readline().split()
            printed = dict(word.split("=", 1) for word in words)
            url = printed["AWS_ENDPOINT_URL"]
            if has_key:
                assert "signed with an access key: scriptmode serve key creates one" in server.stderr.readline()
            assert server.stderr.readline() == f"jobs in a browser: {url}\n"
            with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": "text/html"})) as page:
                assert b"<title>" in page.read()
            assert (first, variables.keys() & printed.keys()) == ("export", set())
            client = "import boto3; print(boto3.client('sagemaker').list_training_jobs()['TrainingJobSummaries'])"
            done = subprocess.run(
                [sys.executable, "-c", client],
                check=False,
                env={**own, **variables, **printed},
                capture_output=True,
                text=True,
            )
            assert done.stdout == "[]\n", done.stderr
        finally:
            server.terminate()


@pytest.mark.parametrize("s3", ["disk", "memory"])
def test_a_data_directory_that_the_s3_server_cannot_have_is_refused_before_anything_starts(tmp_path, s3):
    data = os.fsencode(tmp_path) + b"/d\xffta"
    command = [PROGRAM, "serve", "--s3", s3, "--listen", "127.0.0.1:0"]
    own = {**os.environb, b"SCRIPTMODE_DATA_DIR": data}
    with subprocess.Popen(command, env=own, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            started = server.stdout.readline()
        finally:
            server.terminate()
        told = server.stderr.read()
    if s3 == "memory":
        assert started.startswith("export "), told
        return
    assert (started, server.returncode, os.path.lexists(data)) == ("", 2, False), told
    shown = f"SCRIPTMODE_DATA_DIR is '{tmp_path}/d\\udcffta', which has a byte that is not UTF-8 at position "
    assert shown in told
    assert told.endswith("give another directory, or --s3 memory\n")


def test_an_s3_server_that_does_not_answer_is_told_at_the_start(tmp_path):
    command = [PROGRAM, "serve", "--s3", "http://127.0.0.1:1", "--listen", "127.0.0.1:0"]
    own = {**os.environ, "SCRIPTMODE_DATA_DIR": str(tmp_path)}
    with subprocess.Popen(command, env=own, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout.readline().startswith("export ")
        server.terminate()
        assert "the S3 server http://127.0.0.1:1 cannot be reached: [Errno 111]" in server.stderr.read()


def test_a_job_is_in_the_region_of_its_client(api):
    ireland = check_answers(
        boto3.Session("test", "test", region_name="eu-west-1").client("sagemaker", endpoint_url=api.server.url)
    )
    request = api.request("import os; print(os.environ['AWS_REGION'])")
    job = {"TrainingJobName": request["TrainingJobName"]}
    arn = ireland.create_training_job(**request)["TrainingJobArn"]
    assert arn == f"arn:aws:sagemaker:eu-west-1:000000000000:training-job/{request['TrainingJobName']}"
    ended = until(lambda: (found := ireland.describe_training_job(**job))["TrainingJobStatus"] in ENDED and found)
    assert (ended["TrainingJobStatus"], ended["TrainingJobArn"]) == ("Completed", arn)
    events = api.logs.filter_log_events(logGroupName=LOGS, logStreamNamePrefix=request["TrainingJobName"])["events"]
    assert "eu-west-1" in [each["message"] for each in events]
    assert ireland.list_tags(ResourceArn=arn)["Tags"] == []
    # Regions share the names of jobs, and each sees all.
    (listed,) = api.sagemaker.list_training_jobs(NameContains=request["TrainingJobName"])["TrainingJobSummaries"]
    assert listed["TrainingJobArn"] == arn
    assert code_of(api.sagemaker.create_training_job, **request)[0] == "ResourceInUse"
    unsigned = urllib.request.Request(
        api.server.url, json.dumps(job).encode(), {"X-Amz-Target": "SageMaker.DescribeTrainingJob"}, method="POST"
    )
    with urllib.request.urlopen(unsigned, timeout=600) as answer:
        assert json.load(answer)["TrainingJobArn"] == arn
    ireland.delete_training_job(**job)
    api.names.remove(request["TrainingJobName"])


@pytest.mark.slow
def test_a_description_is_that_of_the_jobs_files_however_often_it_was_read_before(api):
    name = api.start("pass")
    api.wait(name)
    file = api.folder / "data" / "jobs" / name / "state.json"

    def describe():
        return api.sagemaker.describe_training_job(TrainingJobName=name)

    # Where a file is older, its time tells whether it has changed.
    until(lambda: time.time() - file.stat().st_ctime > 3)
    assert describe()
    file.write_text(file.read_text().replace("Training job completed", "Training job complemented"))
    assert describe()["SecondaryStatusTransitions"][-1]["StatusMessage"] == "Training job complemented"
    until(lambda: time.time() - file.stat().st_ctime > 3)
    assert describe()
    file.write_text("{")
    with pytest.raises(ClientError, match="state.json is damaged"):
        describe()
