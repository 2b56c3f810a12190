"""The command that runs an image on a node."""

from pathlib import PurePosixPath

import pytest

from scriptmode.platforms.slurm import images

#: Options of the program before its verb, and those of ``exec`` with the number of their values: apptainer-exec(1) of
#: Apptainer 1.4, and singularity-exec(1) of SingularityCE 3.11, have them all.
GLOBAL, OPTIONS = {"--quiet"}, {"--mount": 1, "--nv": 0, "--no-home": 0, "--pwd": 1}


def test_an_image_sees_the_hosts_directory_as_opt_ml_and_other_directories_at_their_paths():
    base, folders = (
        PurePosixPath("/shared/jobs/j/hosts/algo-1"),
        [PurePosixPath("/shared"), PurePosixPath('/tmp/x,"y:z')],
    )
    command = images.image_command("apptainer", "team/image:1", base, [*folders, folders[0]], ("train", "--x"))
    words = list(command)
    assert words.pop(0) == "apptainer"
    assert {words.pop(0)} <= GLOBAL
    assert words.pop(0) == "exec"
    binds = []
    while words[0].startswith("--"):
        option = words.pop(0)
        values = [words.pop(0) for _ in range(OPTIONS[option])]
        binds += values if option == "--mount" else []
    assert binds == [
        f"type=bind,src={base},dst={base}",
        "type=bind,src=/shared,dst=/shared",
        'type=bind,"src=/tmp/x,""y:z","dst=/tmp/x,""y:z"',
        f"type=bind,src={base},dst=/opt/ml",
    ]
    assert words == ["docker://team/image:1", "train", "--x"]


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("tensorflow/tensorflow:2.15.1", "docker://tensorflow/tensorflow:2.15.1"),
        ("registry:5000/a/b@sha256:12", "docker://registry:5000/a/b@sha256:12"),
        ("/shared/image.sif", "/shared/image.sif"),
        ("oras://registry/image:1", "oras://registry/image:1"),
    ],
)
def test_an_image_is_a_file_or_a_name_in_a_registry(image, expected):
    assert images.image_reference(image) == expected
