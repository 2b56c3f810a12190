"""What goes into local jobs and what comes out: channels, artifacts, checkpoints."""

import json

from fakes.local_jobs import channel, unpacked

LIST_CHANNELS = """
    import json, os
    found = {}
    for name in json.loads(os.environ["SM_CHANNELS"]):
        root = os.environ["SM_CHANNEL_" + name.upper()]
        for folder, _, files in os.walk(root):
            for file in files:
                path = os.path.join(folder, file)
                with open(path) as opened:
                    found[name + "/" + os.path.relpath(path, root)] = opened.read()
    with open(os.path.join(os.environ["SM_MODEL_DIR"], os.environ["SM_CURRENT_HOST"] + ".json"), "w") as file:
        json.dump(found, file)
"""


def told(jobs, description):
    return {name[: -len(".json")]: json.loads(content) for name, content in jobs.model(description).items()}


def files_of(folder, **content):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in content.items():
        (folder / name).write_text(text)
    return f"file://{folder}"


def test_many_channels_with_one_content_are_the_same_everywhere(jobs):
    data = files_of(jobs.folder / "in", **{"a.txt": "A", "b.txt": "B"})
    (jobs.folder / "in" / "deep").mkdir()
    (jobs.folder / "in" / "deep" / "c.txt").write_text("C")
    single = f"file://{jobs.folder}/in/a.txt"
    channels = [channel("train", data), channel("eval", data), channel("one", single)]
    hosts = told(jobs, jobs.run(LIST_CHANNELS, hosts=2, channels=channels))
    whole = {"a.txt": "A", "b.txt": "B", "deep/c.txt": "C"}
    expected = {f"{name}/{path}": text for name in ("train", "eval") for path, text in whole.items()}
    expected["one/a.txt"] = "A"
    assert hosts == {"algo-1": expected, "algo-2": expected}


def test_a_sharded_channel_is_dealt_out_to_three_hosts(jobs):
    data = files_of(jobs.folder / "in", **{f"part-{number}": str(number) for number in range(7)})
    hosts = told(jobs, jobs.run(LIST_CHANNELS, hosts=3, channels=[channel("train", data, "ShardedByS3Key")]))
    shares = [sorted(content.values()) for _, content in sorted(hosts.items())]
    assert shares == [["0", "3", "6"], ["1", "4"], ["2", "5"]]


def test_a_script_cannot_damage_the_files_it_trains_on(jobs):
    data = files_of(jobs.folder / "in", precious="original")
    description = jobs.run(
        """
        import os
        path = os.path.join(os.environ["SM_CHANNEL_TRAIN"], "precious")
        try:
            with open(path, "w") as file:
                file.write("broken")
        except PermissionError:
            pass
        os.unlink(path)
        """,
        channels=[channel("train", data)],
    )
    assert description["TrainingJobStatus"] == "Completed"
    assert (jobs.folder / "in" / "precious").read_text() == "original"


def test_the_models_of_all_hosts_become_one_and_a_clash_is_told(jobs):
    description = jobs.run(
        """
        import os
        host = os.environ["SM_CURRENT_HOST"]
        for name in ("same", host):
            with open(os.path.join(os.environ["SM_MODEL_DIR"], name), "w") as file:
                file.write(host)
        with open(os.path.join(os.environ["SM_OUTPUT_DATA_DIR"], host), "w") as file:
            file.write("out")
        """,
        hosts=2,
    )
    assert jobs.model(description) == {"same": b"algo-1", "algo-1": b"algo-1", "algo-2": b"algo-2"}
    told_so = "algo-1: scriptmode: model: algo-2's 'same' is left out: algo-1 has 'same' too"
    assert told_so in jobs.lines("job-1")
    assert unpacked(jobs.data_dir / "jobs/job-1/output/output.tar.gz") == {"algo-1": b"out", "algo-2": b"out"}


def test_artifacts_go_to_a_hostile_output_path(jobs, hostile_name):
    output = f"file://{jobs.folder}/{hostile_name}"
    description = jobs.run("print('ok')", output=output)
    assert description["TrainingJobStatus"] == "Completed"
    assert (jobs.folder / hostile_name / "job-1" / "output" / "model.tar.gz").exists()


def test_a_hostile_input_path_reaches_the_script(jobs, hostile_name):
    data = files_of(jobs.folder / hostile_name, **{hostile_name: "content"})
    description = jobs.run(LIST_CHANNELS, channels=[channel("train", data)])
    assert told(jobs, description)["algo-1"] == {f"train/{hostile_name}": "content"}


def test_an_uncompressed_model_is_a_folder(jobs):
    request = jobs.request("""
        import os
        with open(os.path.join(os.environ["SM_MODEL_DIR"], "weights"), "w") as file:
            file.write("w")
    """)
    request["OutputDataConfig"] |= {"CompressionType": "NONE", "S3OutputPath": f"file://{jobs.folder}/out"}
    jobs.platform.create(request)
    description = jobs.wait("job-1")
    assert description["ModelArtifacts"]["S3ModelArtifacts"] == f"file://{jobs.folder}/out/job-1/output/model/"
    assert (jobs.folder / "out/job-1/output/model/weights").read_text() == "w"


def test_checkpoints_of_one_job_are_there_for_the_next(jobs):
    count = """
        import os
        path = "CHECKPOINTS/count".replace("CHECKPOINTS", os.environ["CHECKPOINTS"])
        count = int(open(path).read()) if os.path.exists(path) else 0
        print("count", count)
        with open(path, "w") as file:
            file.write(str(count + 1))
    """
    for _ in range(2):
        request = jobs.request(count)
        request["Environment"] = {"CHECKPOINTS": "/opt/ml/checkpoints"}
        request["CheckpointConfig"] = {"S3Uri": f"file://{jobs.folder}/kept"}
        jobs.platform.create(request)
        jobs.wait(request["TrainingJobName"])
    assert "algo-1: count 0" in jobs.lines("job-1")
    assert "algo-1: count 1" in jobs.lines("job-2")
    assert (jobs.folder / "kept" / "count").read_text() == "2"
