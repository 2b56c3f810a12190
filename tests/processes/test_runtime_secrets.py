"""Secrets of a job: in no failure file of any host, in no line of the launcher's own, in no plan; the script's own
output is the script's.
"""

import json
import os
import subprocess
import sys
from urllib.parse import quote

import pytest
from fakes.host_folders import write_host, write_job
from processes.launchers import ENTRYPOINTS, host

SECRETS = {
    "plain": "correct-horse-battery", "quotes": "pa'ss\"wo\\rd", "newline": "first-line\nsecond-line",
    "unicode": "pässwörd-漢字", "url": "100%25-a@b/c?d",
}  # fmt: skip
#: Tells the secret in every way a program would.
TELLS = """
import json, os, subprocess, sys, urllib.parse
secret = {secret}
print("printed", secret, flush=True)
told = [secret, repr(secret), json.dumps(secret), urllib.parse.quote(secret), repr(sys.argv)]
told += [repr(subprocess.CalledProcessError(1, ["curl", "-H", f"Token {{secret}}"])), os.environ["SM_HPS"]]
raise ValueError("told: " + " ".join(told)) from KeyError(secret)
"""
FROM_HYPERPARAMETER = TELLS.format(secret="json.loads(os.environ['SM_HPS'])['api_token']")
FROM_VARIABLE = TELLS.format(secret="os.environ['DB_PASSWORD']")


def spellings(secret):
    return {secret, *secret.splitlines(), repr(secret)[1:-1], json.dumps(secret)[1:-1], quote(secret)}


def check(launcher, secret):
    own = "".join(line for line in launcher.output.splitlines(keepends=True) if line.startswith("scriptmode: "))
    assert "exit code 1" in own
    record = json.loads((launcher.base / "output" / "failure.json").read_text())
    for told in spellings(secret):
        assert told not in launcher.failure
        assert not any(told in str(field) for field in record.values())
        assert told not in own
    assert "******" in record["traceback"]
    assert "******" in launcher.failure
    assert launcher.failure.startswith("algo-1, ")


@pytest.mark.parametrize(
    ("secret", "is_variable"), [(secret, number % 2) for number, secret in enumerate(SECRETS.values())], ids=SECRETS
)
def test_a_secret_is_in_the_scripts_output_alone(tmp_path, launch, secret, is_variable):
    if is_variable:
        launcher = launch(host(tmp_path, FROM_VARIABLE), DB_PASSWORD=secret)
    else:
        launcher = launch(host(tmp_path, FROM_HYPERPARAMETER, api_token=secret))
    assert launcher.wait() == 1
    assert f"printed {secret}\n".encode() in launcher.log.read_bytes()
    assert is_variable or "told: " in launcher.failure
    check(launcher, secret)


def test_messages_to_other_hosts_have_no_secrets(tmp_path, launch):
    script = "import os, time\nif os.environ['SM_CURRENT_HOST'] != 'algo-1': time.sleep(600)\n" + FROM_HYPERPARAMETER
    job = write_job(
        tmp_path / "job", 2, {"train.py": script},
        sagemaker_program="train.py", sagemaker_multi_worker_mirrored_strategy_enabled=True,
        api_token="correct-horse-battery", nested={"aws_secret_access_key": "wJalrXUtnFEMI/K7MDENG"},
    )  # fmt: skip
    launchers = [launch(base) for base in job.values()]
    assert [launcher.wait() for launcher in launchers] == [1, 1]
    assert launchers[0].failure == launchers[1].failure
    for launcher in launchers:
        check(launcher, "correct-horse-battery")
        assert "wJalrXUtnFEMI" not in launcher.failure


@pytest.mark.parametrize(
    ("requirements", "variables"),
    [
        ("--index-url https://user:tok-3141592653@127.0.0.1:1/simple\nno-such-package\n", {}),
        ("no-such-package\n", {"PIP_INDEX_URL": "https://tok-3141592653-as-the-user@127.0.0.1:1/simple"}),
        ("./package\n", {"PIP_INDEX_URL": "https://user:tok-3141592653@127.0.0.1:1/simple"}),
    ],
    ids=["in requirements.txt", "as a variable", "told by a package that is built"],
)
def test_the_token_of_a_package_index_is_not_logged_when_pip_fails(tmp_path, launch, requirements, variables):
    code = {
        "train.py": "print('never')",
        "requirements.txt": requirements,
        "package/setup.py": "import os; raise SystemExit('cannot be built from ' + os.environ['PIP_INDEX_URL'])",
    }
    cluster = {"isolate_requirements": True}
    base = write_host(tmp_path / "algo-1", code=code, cluster=cluster, sagemaker_program="train.py")
    # It must fail at once, and build with the installed packages.
    quick = {
        "PIP_RETRIES": "0", "PIP_DEFAULT_TIMEOUT": "1", "PIP_NO_BUILD_ISOLATION": "0",
        "PIP_CONFIG_FILE": os.devnull,
    }  # fmt: skip
    launcher = launch(base, **quick, **variables)
    assert launcher.wait(600) == 1
    assert launcher.failure.startswith("algo-1, requirements: exit code 1\n")
    assert "tok-3141592653" not in launcher.failure
    assert "https://******@127.0.0.1:1/" in launcher.failure
    assert "never" not in launcher.output


def plan(base, **variables):
    env = {"PATH": os.environ["PATH"], "SAGEMAKER_BASE_DIR": str(base), "PYTHONPATH": str(ENTRYPOINTS), **variables}
    command = [sys.executable, "-m", "scriptmode_runtime", "--plan"]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=600, check=False)


@pytest.mark.parametrize("secret", [*SECRETS.values(), "abc", 271828], ids=[*SECRETS, "short", "number"])
def test_a_plan_shows_no_secret(tmp_path, secret):
    hyperparameters = {
        "sagemaker_mpi_enabled": True, "sagemaker_mpi_custom_mpi_options": "-x NCCL_TOKEN=tok-3141592653",
        "password": secret, "db": {"password": secret}, "epochs": 3,
    }  # fmt: skip
    job = write_job(tmp_path / "job", 2, {"train.py": ""}, sagemaker_program="train.py", **hyperparameters)
    done = plan(job["algo-1"])
    assert done.returncode == 0, done.stderr
    main = json.loads(done.stdout)["main"]
    assert main["env"]["SM_HP_PASSWORD"] == "******"
    # A number has no quotes around it.
    assert main["env"]["SM_HPS"].replace('"', "") == "{db:{password:******},epochs:3,password:******}"
    assert main["env"]["SM_HP_EPOCHS"] == "3"
    assert "tok-3141592653" not in done.stdout
    if len(str(secret)) > 4:
        assert not any(told in done.stdout for told in spellings(str(secret)))


def test_errors_before_the_script_have_no_secrets(tmp_path, launch):
    source = "https://user:tok-3141592653@127.0.0.1/sourcedir.tar.gz"
    base = write_host(tmp_path / "algo-1", sagemaker_program="train.py", sagemaker_submit_directory=source)
    launcher = launch(base)
    assert launcher.wait() == 1
    assert "https://******@127.0.0.1/sourcedir.tar.gz" in launcher.failure
    assert "tok-3141592653" not in launcher.failure + launcher.output
    assert "tok-3141592653" not in plan(base).stderr
