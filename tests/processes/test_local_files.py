"""What goes into local jobs and what comes out: names, channels, artifacts, metrics."""

import textwrap

from scriptmode import Estimator


def test_any_name_of_a_source_an_input_an_output_and_an_argument_works(jobs, tmp_path, hostile_name):
    name = hostile_name
    code, data = tmp_path / f"code {name.strip('-')}", tmp_path / "in" / name
    code.mkdir()
    data.mkdir(parents=True)
    (data / name).write_text("content")
    script = """
        import os, pathlib, sys
        (file,) = pathlib.Path(os.environ["SM_CHANNEL_TRAIN"]).iterdir()
        found = [file.name, pathlib.Path(sys.argv[0]).stem, os.environ["SM_HP_NAME"]]
        print(found == [sys.argv[2]] * 3 and file.read_text())
    """
    (code / f"{name}.py").write_text(textwrap.dedent(script))
    made = Estimator(
        entry_point=f"{name}.py", source_dir=str(code), instance_type="local_process", hyperparameters={"name": name},
        output_path=f"file://{tmp_path}/{name}", platform=jobs.platform,
    )  # fmt: skip
    job = made.fit({"train": f"file://{data}"})
    assert "content" in [event.message for event in job.logs()]
    assert (tmp_path / name / job.name / "output" / "model.tar.gz").exists()
