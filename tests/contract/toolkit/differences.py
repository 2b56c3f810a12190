"""Where a job sees something else under our ``train`` than under the toolkit's, and why: all of it, in one table."""

from contract.explained import Difference, promise
from contract.toolkit import rewrites_of_clusters as clusters, rewrites_of_runs as runs


def promised(case, record):
    """Return what we promise for a case, and which differences to the toolkit's record that takes."""
    return promise(DIFFERENCES, case, record)


OF_VARIABLES = [
    Difference("PYTHONPATH", "the toolkit writes its own whole sys.path there; we the code folder, what was there and "
               "modules of AWS's images", "the rest is the interpreter's own, and wrong for another one that the script "
               "starts; programs for AWS's images import sagemaker_tensorflow", runs.python_path),
    Difference("PATH", "we put the interpreter's folder first", "what requirements.txt brought is found by its name",
               runs.path),
    Difference("PYTHONUNBUFFERED", "we set it", "a line in the log when it is printed, not 8 KiB later", runs.unbuffered),
    Difference("hosts without a proxy", "we set no_proxy, NO_PROXY and no_grpc_proxy to the cluster's hosts",
               "a proxy of the site would keep the hosts apart", runs.unproxied),
    Difference("threads of one processor", "we set the threads of OpenMP and TensorFlow where a host has one processor",
               "programs choose by the machine's processors; with one thread between operations parameter servers hang", runs.threads),
    Difference("job's name", "the toolkit tells SAGEMAKER_JOB_NAME by the hyperparameter alone and SM_TRAINING_ENV's by "
               "the platform's variable alone; we both by the variable, and by the hyperparameter without it",
               "a job has one name, which the platform gives it; a tuner sends one hyperparameter with all its jobs", runs.name),
    Difference("region", "the toolkit tells SAGEMAKER_REGION by the hyperparameter or AWS_DEFAULT_REGION; we by AWS_REGION too",
               "it is the platform's own variable", runs.region),
    Difference("processors", "the toolkit counts the machine's; we those that this process may use",
               "a program that starts more threads than it has processors is slow", runs.processors),
    Difference("adapter's settings", "AWS's TensorFlow adapter sets S3_REGION, S3_USE_HTTPS and TF_CPP_MIN_LOG_LEVEL; we do not",
               "TensorFlow has no S3 of its own any more, and how much it says is the user's to choose", runs.adapters),
    Difference("model_dir of a tuning job", "the toolkit gives all jobs of a tuning job one model_dir, AWS's TensorFlow adapter "
               "each its own; we always do as the adapter", "they would overwrite each other", runs.tuning),
    Difference("no model_dir of a tuning job", "the adapter makes it None/<job>/model; we leave it out",
               "nobody asked for one", runs.tuning_without),
]  # fmt: skip
OF_PROGRAMS = [
    Difference("name with an equals sign", "the toolkit fails; we leave the variable out",
               "a variable has no such name, and the argument is there", runs.equals_sign),
    Difference("hyperparameters too large", "the toolkit fails; we leave out the variables over 128 KiB",
               "Linux takes none longer, and the values are there one by one", runs.too_large),
    Difference("log level by name", "the toolkit fails; we pass it on", "it is for the script to read", runs.level_by_name),
    Difference("program's name", "the toolkit takes letters, digits and ._+- alone; we any name of a file inside the source",
               "no shell reads it", runs.odd_name),
    Difference("executable with no interpreter", "the toolkit lets /bin/sh read it; we refuse",
               "what it is written in is a guess; the error says which line is missing", runs.no_interpreter),
    Difference("package's program in a folder", "the toolkit runs python -m folder/name, which fails; we folder.name",
               "that is the module's name", runs.module_in_a_folder),
    Difference("pyproject.toml", "the toolkit takes a folder for a package by its setup.py; we by its pyproject.toml too",
               "many a package has no setup.py any more", runs.project),
    Difference("requirements", "the toolkit installs them for Python programs alone; we for every kind",
               "a shell script starts Python too", runs.requirements),
    Difference("archive not compressed", "the toolkit takes gzip alone; we what Python's tarfile takes",
               "it says what it is", runs.not_compressed),
    Difference("archive that leads outside", "the toolkit moves such members inside or skips them; we refuse the archive",
               "a source with a part missing is no source to train with", runs.leads_outside),
    Difference("file:// source", "the toolkit fails; we take the file", "the local platform names its files so", runs.file_address),
    Difference("code folder that is not empty", "the toolkit passes over the request's source; we put it over what is there",
               "a job trains with the source it was given", runs.files_of_the_image),
    Difference("SAGEMAKER_SUBMIT_DIRECTORY", "the toolkit reads it and forgets it; we take the source from there",
               "an image that names a source means it", runs.by_variable),
]  # fmt: skip
OF_ENDINGS = [
    Difference("launcher's failure", "the toolkit ends with the errno of what failed; we with 1",
               "it is no exit code of the script's", runs.launchers_failure),
    Difference("exit code", "the toolkit ends with 1 whenever the script fails; we with the script's own",
               "the user tells failures apart by it", runs.exit_code),
    Difference("no inputdataconfig.json", "the toolkit fails; we see a job without channels",
               "an image is tried by hand with two files", runs.left_out),
    Difference("success file", "the toolkit writes one; we do not", "the platform reads the exit code", runs.success),
    Difference("folders", "we make model, output/data and output/intermediate", "the script is told of them", runs.folders),
    Difference("failure file of an earlier run", "the toolkit leaves it; we remove it at the start",
               "a job that ended well has none", runs.earlier_failure),
]  # fmt: skip
OF_CLUSTERS = [
    Difference("ps of one group", "the adapter counts a ps among all hosts, though its cluster has one group's alone; we within it",
               "TensorFlow refuses an index that the cluster has not", clusters.index_of_a_group),
    Difference("host beside a group of ps", "the adapter fails with an error of its own there; we run the script alone",
               "as both do for the other distributions", clusters.beside_the_group),
    Difference("two distributions at once", "the adapter lets parameter servers win on several hosts and passes over the other; of a ring and MPI "
               "it starts mpirun, whose ranks all have the first host's TF_CONFIG; we refuse", "one of the two that were asked for would go in "
               "silence", clusters.two_at_once),
    Difference("distributions of others", "the toolkit runs or passes over AWS's and PyTorch's; we refuse them by name",
               "what was asked for in so many words does not go in silence", clusters.not_ours),
]  # fmt: skip
DIFFERENCES = [*OF_VARIABLES, *OF_PROGRAMS, *OF_ENDINGS, *OF_CLUSTERS]
