"""Arguments of the script that hyperparameters cannot represent reach it as they are."""

import json
import textwrap

import pytest
from fakes.command_line import invoke

from scriptmode import Estimator, SpecError, TrainingJob

WORDS = ["--fp16-allreduce", "--sizes", "128", "32", "-x=1", "--lr", "1e-3", "a b", "", "--lr", "$HOME", "data.yaml"]
AWS_IMAGE = "763104351884.dkr.ecr.eu-west-1.amazonaws.com/tensorflow-training:2.13-cpu-py310"


@pytest.fixture
def script(own_directory):
    (own_directory / "argv.py").write_text(
        textwrap.dedent("""
            import json, os, sys
            print("ARGV", json.dumps(sys.argv[1:]))
            print("SAME", json.loads(os.environ["SM_USER_ARGS"]) == sys.argv[1:], os.environ["SM_HPS"])
        """)
    )
    return "argv.py"


def seen(job):
    lines = [event.message for event in job.logs()]
    assert any(line.startswith("SAME True") for line in lines), lines
    return next(json.loads(line[5:]) for line in lines if line.startswith("ARGV"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (WORDS, WORDS),
        (["--", "-"], ["--", "-"]),
        # Hyperparameters are sorted by name; their values are as they were typed.
        (["--rate", "1e-3", "--epochs=007"], ["--epochs", "007", "--rate", "1e-3"]),
    ],
    ids=str,
)
def test_words_after_the_dashes_reach_the_script(script, words, expected):
    assert invoke("run", script, "--job-name", "argv-1", "--", *words).exit_code == 0
    assert seen(TrainingJob.attach("argv-1")) == expected


@pytest.mark.slow
def test_arguments_follow_the_hyperparameters_and_a_rerun_has_them(script):
    estimator = Estimator(
        entry_point=script, instance_type="local_process", hyperparameters={"epochs": 2}, arguments=WORDS
    )
    job = estimator.fit(logs=False)
    assert seen(job) == ["--epochs", "2", *WORDS]
    again = job.rerun()
    again.wait()
    assert seen(again) == ["--epochs", "2", *WORDS]
    assert Estimator.attach(job.name).arguments == WORDS


def test_awss_own_images_refuse_arguments_that_their_train_cannot_pass(script):
    with pytest.raises(SpecError, match=r"arguments=\['--verbose'\].*AWS's, whose `train` does not know it"):
        Estimator(
            entry_point=script, instance_type="ml.m5.large", role="arn:aws:iam::123456789012:role/r",
            image_uri=AWS_IMAGE, output_path="s3://b/o", arguments=["--verbose"],
        ).request()  # fmt: skip


def test_arguments_are_a_list_for_a_script(script):
    with pytest.raises(SpecError, match="arguments is one string, '--verbose'; give a list of strings"):
        Estimator(entry_point=script, instance_type="local_process", arguments="--verbose").request()
    with pytest.raises(SpecError, match="need entry_point"):
        Estimator(instance_type="local", image_uri="x", arguments=["a"]).request()
