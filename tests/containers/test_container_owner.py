"""A user who may use the Docker daemon trains with it, and no file of root is left."""

import json
import os

import pytest
from fakes import plain_user
from fakes.local_jobs import unpacked

pytestmark = [pytest.mark.docker, pytest.mark.slow]

#: Runs three jobs side by side; gives their descriptions, and the log of the first.
CLIENT = """
import json, os, signal, sys
from fakes import wheels
from fakes.container_jobs import ContainerJobs
from fakes.local_jobs import channel
from fakes.processes import until

WRITE = '''
    import os, sys, time
    os.mkdir("/opt/ml/model/closed", 0o700)
    for path in ("/opt/ml/model/closed/own", "/opt/ml/output/data/own", "/opt/ml/checkpoints/own", "MODEL_DIR/own"):
        with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write(str(os.getuid()))
    with open("/opt/ml/input/data/fast/a") as file, open("/opt/ml/input/data/piped_0") as pipe:
        print("read", file.read(), pipe.read())
    print("up", flush=True)
    THEN
'''

assert os.getuid() != 0
home, image = sys.argv[1:]
jobs = ContainerJobs(home, image, stop_grace=5.0)
os.makedirs(f"{home}/in")
with open(f"{home}/in/a", "w") as file:
    file.write("A")

def start(then, model_dir):
    script = WRITE.replace("THEN", then).replace("MODEL_DIR", model_dir)
    piped, fast = (channel(name, f"file://{home}/in", InputMode=mode) for name, mode in (("piped", "Pipe"), ("fast", "FastFile")))
    more = {"CheckpointConfig": {"S3Uri": f"file://{home}/kept"}}
    files = {"requirements.txt": f"./{wheels.NAME}\\n", wheels.NAME: wheels.extra()}
    given = {"model_dir": f"file://{model_dir}"}
    return jobs.start(script, channels=[piped, fast], hyperparameters=given, more=more, files=files)

fails = start("sys.exit(3)", f"{home}/old model")
killed = start("time.sleep(60)", f"{home}/model of the killed")
completes = start("", f"{home}/new model")
until(lambda: "algo-1: up" in jobs.lines(killed), 120)
os.kill(jobs.agent(killed).pid, signal.SIGKILL)
until(lambda: jobs.ended(killed))
ended = [jobs.wait(name) for name in (completes, fails, killed)]
jobs.close()
print(json.dumps([[{key: job.get(key) for key in ("TrainingJobStatus", "FailureReason", "ModelArtifacts")} for job in ended],
                  jobs.lines(completes)]))
"""


@pytest.fixture(scope="module")
def left(runtime_image):
    with plain_user.folder_of_the_user() as folder:
        (folder / "old model").mkdir()
        (folder / "old model" / "of another").write_text("theirs")
        (folder / "old model").chmod(0o777)
        os.chown(folder / "old model", plain_user.UID, -1)
        said = plain_user.run(CLIENT, str(folder), runtime_image, home=folder)
        yield folder, *json.loads(said.splitlines()[-1])


def test_what_containers_wrote_for_themselves_alone_is_delivered(left):
    folder, (completed, failed, killed), _ = left
    assert [job["TrainingJobStatus"] for job in (completed, failed, killed)] == ["Completed", "Failed", "Failed"]
    assert failed["FailureReason"].endswith("exit code: 3")
    model = completed["ModelArtifacts"]["S3ModelArtifacts"][len("file://") :]
    assert unpacked(model) == {"closed": None, "closed/own": b"0"}
    assert unpacked(model.replace("model.tar.gz", "output.tar.gz")) == {"own": b"0"}
    assert (folder / "kept" / "own").read_text() == "0"
    assert (folder / "new model" / "own").read_text() == (folder / "old model" / "own").read_text() == "0"


def test_nothing_is_left_that_is_not_the_callers(left):
    folder, *_ = left
    paths = [folder, *folder.rglob("*")]
    foreign = [path for path in paths if path.lstat().st_uid != plain_user.UID]
    # What was there before in a folder that the script was given.
    assert foreign == ([folder / "old model" / "of another"] if os.geteuid() == 0 else [])
    # Of the two jobs that failed what their hosts left is kept.
    assert len([path for path in paths if path.match("hosts/algo-1/model/closed/own")]) == 2


def test_channels_that_only_their_user_could_see_mounted_are_copied_and_the_log_says_so(left):
    _, _, log = left
    assert "algo-1: read A A" in log
    (said,) = [line for line in log if "channel 'fast'" in line]
    assert said == (
        "algo-1: scriptmode: channel 'fast' is in FastFile mode, but was copied as in File mode: a user's own mounts "
        "are not to be seen in containers"
    )
