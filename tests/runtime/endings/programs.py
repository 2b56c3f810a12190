"""Programs that end in failure, as users write them: Python, shell, pip, TensorFlow, MPI."""

#: Programs in Python, by what ends them.
PYTHON = {
    "sys.exit with a text": 'import sys\nprint("epoch 1")\nsys.exit("no data in the channel")',
    "sys.exit with a number": 'import sys\nprint("epoch 1 loss 0.5")\nsys.exit(7)',
    "sys.exit without output": "import sys\nsys.exit(3)",
    "an exception": 'def train():\n    raise ValueError("the loss is not a number")\n\ntrain()',
    "an exception without a message": "raise KeyboardInterrupt",
    "a missing module": "import a_module_that_nobody_has",
    "a syntax error": 'print("a)',
    "a cause": 'try:\n    int("x")\nexcept ValueError as error:\n    raise RuntimeError("the configuration is wrong") from error',
    "an exception while another is handled": 'try:\n    int("x")\nexcept ValueError:\n    {}["y"]',
    "a group": 'raise ExceptionGroup("two workers failed", [ValueError("no rate"), OSError(28, "No space left on device")])',
    "a message of many lines": 'raise RuntimeError("the configuration is wrong:\\n" + "\\n".join(f"line {n} is unknown" for n in range(300)))',
    "a message of one long line": 'raise RuntimeError("x" * 5000)',
    "frames of a recursion": "def f(n):\n    return f(n + 1)\n\n\nf(0)",
    "a thread": (
        "import sys, threading\n\n\ndef feed():\n"
        '    raise OSError("the queue is closed")\n\n\n'
        "thread = threading.Thread(target=feed)\nthread.start()\nthread.join()\nsys.exit(1)"
    ),
    "a process of a pool": (
        "import multiprocessing\n\n\ndef half(n):\n    return 1 / n\n\n\n"
        'with multiprocessing.get_context("fork").Pool(1) as pool:\n    pool.map(half, [1, 0])'
    ),
    "argparse": (
        "import argparse\nparser = argparse.ArgumentParser('train.py')\nparser.add_argument('--lr', type=float)\n"
        "parser.parse_args(['--lr', 'fast'])"
    ),
    "a progress bar before the error": (
        "import sys\nfor n in range(50):\n    sys.stdout.write(f'\\r{n}/50 loss 0.1')\n"
        'raise ValueError("the batch is empty")'
    ),
    "output after the error": (
        'import atexit\natexit.register(lambda: print("closing the session"))\nraise ValueError("the batch is empty")'
    ),
    "an ignored error after it": (
        'class Session:\n    def __del__(self):\n        raise OSError("closed")\n\n\nsession = Session()\nraise ValueError("the batch is empty")'
    ),
    "colours": 'import sys\nsys.exit("\\x1b[31mthe data is empty\\x1b[0m\\x00")',
    "a segmentation fault": "import ctypes\nctypes.string_at(0)",
    "a segmentation fault that is traced": "import ctypes, faulthandler\nfaulthandler.enable()\nctypes.string_at(0)",
    "abort": "import os, sys\nsys.stderr.write(\"terminate called after throwing an instance of 'std::bad_alloc'\\n  what():  std::bad_alloc\\n\")\nsys.stderr.flush()\nos.abort()",
    "SIGKILL": 'import os, signal\nprint("step 5", flush=True)\nos.kill(os.getpid(), signal.SIGKILL)',
    "SIGTERM": 'import os, signal\nprint("step 5", flush=True)\nos.kill(os.getpid(), signal.SIGTERM)',
    "memory": "x = []\nraise MemoryError",
    "a warning and then an exit": 'import sys, warnings\nwarnings.warn("old")\nsys.exit("the input has no label")',
    "notes of an exception": 'error = ValueError("no batch")\nerror.add_note("while reading part-3")\nraise error',
    "an error word in ordinary output": 'import sys\nprint("validation error: 0.25")\nsys.exit("stopped: the loss grows")',
    "absl flags": (
        "import sys\nsys.stderr.write(\"FATAL Flags parsing error: Unknown command line flag 'lr'\\n"
        'Pass --helpshort or --helpfull to see help on flags.\\n")\nsys.exit(1)'
    ),
    "SIGKILL after an error that was handled": 'import logging, os\ntry:\n    int("x")\nexcept ValueError:\n    logging.exception("a record is left out")\nfor n in range(60):\n    print("epoch", n, flush=True)\nos.kill(os.getpid(), 9)',
    "SIGSEGV after an error that was handled": 'import logging, os\ntry:\n    int("x")\nexcept ValueError:\n    logging.exception("a record is left out")\nfor n in range(160):\n    print("epoch", n, flush=True)\nos.kill(os.getpid(), 11)',
    "SIGSEGV after an error that was not": 'import atexit, os\natexit.register(os.kill, os.getpid(), 11)\natexit.register(print, "Fatal Python error: Segmentation fault\\n" + "  line 3 in fit\\n" * 150, flush=True)\nraise ValueError("part-3 has no labels")',
    "a process": 'import multiprocessing, sys\n\n\ndef work():\n    raise ValueError("part-3 has no labels")\n\n\nprocess = multiprocessing.get_context("fork").Process(target=work)\nprocess.start()\nprocess.join()\nsys.exit(process.exitcode)',
    "a child that SIGKILL ended": 'import subprocess, sys\nsys.exit(subprocess.call(["sh", "-c", "kill -9 $$"]))',
    "a segmentation fault beside a thread": "import ctypes, faulthandler, threading, time\nfaulthandler.enable()\n\n\ndef feed():\n    time.sleep(30)\n\n\nthreading.Thread(target=feed, daemon=True).start()\ntime.sleep(0.2)\nctypes.string_at(0)",
    "a failed check of C++": 'import os, sys\nsys.stderr.write("F0000 00:00:00.000000 12 tensor.cc:12] Check failed: ok (0 vs. 1) the shapes differ\\n")\nsys.stderr.write("*** Check failure stack trace: ***\\n")\nsys.stderr.write("".join(f"    @     0x7f{n:010x}  tensorflow::Tensor::Check(long, unsigned)\\n" for n in range(40)))\nsys.stderr.flush()\nos.abort()',
    "click": 'import click\n\n\n@click.command()\n@click.option("--lr", type=float)\ndef main(lr): ...\n\n\nmain(["--lr", "fast"])',
    "click, an exception of two lines": 'import click\n\n\n@click.command()\ndef main():\n    raise click.ClickException("part-3 has no labels\\nsee the manifest")\n\n\nmain([])',
    "causes of a cause": 'try:\n    try:\n        open("/nowhere/labels.csv")\n    except OSError as error:\n        raise ValueError("no labels") from error\nexcept ValueError as error:\n    raise RuntimeError("cannot train") from error',
    "an exception while a block is left": 'class Session:\n    def __enter__(self):\n        return self\n\n    def __exit__(self, *_):\n        raise OSError("the session is closed")\n\n\nwith Session():\n    raise ValueError("part-3 has no labels")',
    "a group of groups": 'raise ExceptionGroup("all", [ExceptionGroup("inner", [ValueError("no rate")]), KeyError("y")])',
    "a message whose last line is the cause": 'lines = [f"  at operation {n}" for n in range(300)]\nraise RuntimeError("\\n".join(["the program cannot be compiled:", *lines, "RESOURCE_EXHAUSTED: out of memory"]))',
    "a syntax error of an imported module": 'open("model.py", "w").write("def build(:\\n")\nimport model',
    "8-bit control characters": 'import sys\nsys.stderr.buffer.write("\\x9b31mno \\u202edata\\x9b0m\\n".encode())\nsys.exit(2)',
    "an ended session": 'import atexit\n\n\ndef close():\n    raise OSError("the session is lost")\n\n\natexit.register(close)\nraise ValueError("part-3 has no labels")',
    "a message that names another file": "raise ValueError('the configuration is wrong:\\n  File \"config.yaml\", line 3\\n    lr: [\\nunexpected end')",
    "an interrupt": "import os, signal, threading, time\nthreading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n\n\ndef train():\n    time.sleep(30)\n\n\ntrain()",
    "a handler of SIGTERM that exits with a text": 'import os, signal\n\n\ndef stop(*_):\n    raise SystemExit("saved, stopping")\n\n\nsignal.signal(signal.SIGTERM, stop)\nos.kill(os.getpid(), signal.SIGTERM)',
    "a logged exception and then an exit": 'import logging, sys\ntry:\n    open("/nowhere/labels.csv")\nexcept OSError:\n    logging.exception("the training failed")\n    sys.exit(2)',
}
#: Shell commands.
SHELL = {
    "cp": "cp /opt/ml/input/data/train/labels.csv .", "python without its file": "python3 /nowhere/train.py",
    "a command that is missing": "set -e\necho start\na_command_that_nobody_has --epochs 3",
    "a file that is not executable": "printf 'x' > tool; chmod 644 tool; ./tool",
    "an unset variable": 'set -u\necho "$NOT_SET"', "set -e": "set -e\necho reading\nfalse",
    "exit with a text": 'echo "no GPU is free" >&2; exit 4', "killed": "kill -9 $$",
    "a child that was killed": 'sh -c "kill -9 \\$\\$"; exit $?', "a syntax error of the shell": "if true; then",
    "make": "printf 'all:\\n\\tfalse\\n' > Makefile; make", "git": "git clone -q file:///nowhere/model",
    "python that another command follows": "python3 /nowhere/train.py || exit 3",
    "a pipe": "set -o pipefail\npython3 -c 'raise ValueError(\"no labels\")' 2>&1 | cat",
    "a program that env does not find": "/usr/bin/env a_command_that_nobody_has", "set -x": "set -ex\nls /nowhere",
}  # fmt: skip
PIP = {
    "a package that does not exist": "python3 -m pip --no-input install --no-index a-package-that-nobody-has==1.2.3",
    "a file of requirements that does not exist": "python3 -m pip --no-input install -r missing.txt",
    "a version that is none": "python3 -m pip --no-input install --no-index 'numpy==one'",
    "a build that fails": (
        "mkdir model; echo 'raise RuntimeError(\"the build needs CUDA\")' > model/backend.py\n"
        'printf \'[build-system]\\nrequires = []\\nbuild-backend = "backend"\\nbackend-path = ["."]\\n\''
        " > model/pyproject.toml\npython3 -m pip --no-input install --no-index ./model"
    ),
}
#: Programs that use absl, which TensorFlow installs.
ABSL = {
    "a flag that is unknown": (
        "from absl import app, flags\nflags.DEFINE_float('lr', 1, '')\napp.run(print, ['train.py', '--rate=3'])"
    ),
    "a value of a flag": (
        "from absl import app, flags\nflags.DEFINE_float('lr', 1, '')\napp.run(print, ['train.py', '--lr=fast'])"
    ),
    "a usage error": (
        "from absl import app\n\n\ndef main(argv):\n    raise app.UsageError('Too many arguments')\n\n\n"
        "app.run(main, ['train.py', 'a'])"
    ),
    "an exception": (
        "from absl import app\n\n\ndef main(argv):\n    raise ValueError('part-3 has no labels')\n\n\n"
        "app.run(main, ['train.py'])"
    ),
}
#: Programs of two ranks.
MPI = {
    "a rank that raises": (
        "import os, time\nif os.environ['OMPI_COMM_WORLD_RANK'] == '1':\n"
        "    raise ValueError('part-3 has no labels')\ntime.sleep(60)"
    ),
    "a rank that exits with a text": (
        "import os, sys, time\nif os.environ['OMPI_COMM_WORLD_RANK'] == '1':\n"
        "    sys.exit('no data in the channel')\ntime.sleep(60)"
    ),
    "a rank that SIGKILL ends": (
        "import os, time\nif os.environ['OMPI_COMM_WORLD_RANK'] == '1':\n"
        "    print('step 5', flush=True)\n    os.kill(os.getpid(), 9)\ntime.sleep(60)"
    ),
    "a rank with a segmentation fault": (
        "import ctypes, faulthandler, os, time\nfaulthandler.enable()\n"
        "if os.environ['OMPI_COMM_WORLD_RANK'] == '1':\n    ctypes.string_at(0)\ntime.sleep(60)"
    ),
    "a rank that does not accept its arguments": (
        "import argparse, os, time\nif os.environ['OMPI_COMM_WORLD_RANK'] == '1':\n"
        "    parser = argparse.ArgumentParser('train.py')\n    parser.add_argument('--lr', type=float)\n"
        "    parser.parse_args(['--lr', 'fast'])\ntime.sleep(60)"
    ),
}
_MODEL = (
    "import os\nos.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'\nimport numpy\nimport tensorflow as tf\n\n"
    "model = tf.keras.Sequential([tf.keras.layers.Dense(3)])\n"
    "model.compile('sgd', tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))\n"
)
TENSORFLOW = {
    "a label that is out of range": _MODEL + "model.fit(numpy.ones((8, 4)), numpy.full(8, 9), verbose=0)",
    "shapes that differ": _MODEL
    + "model.fit(numpy.ones((8, 4)), numpy.zeros(8), verbose=0)\nmodel.predict(numpy.ones((8, 5)), verbose=0)",
    "a record that is damaged": (
        "import os\nos.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'\nimport tensorflow as tf\n\n"
        "open('part-0', 'wb').write(b'x' * 100)\nfor record in tf.data.TFRecordDataset('part-0'):\n    print(record)"
    ),
    "a check of numerics in a graph": (
        "import os\nos.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'\nimport tensorflow as tf\n\n\n"
        "@tf.function\ndef step(x):\n    return tf.debugging.check_numerics(tf.math.log(x), 'the loss')\n\n\n"
        "step(tf.constant(-1.0))"
    ),
}
