"""Stub packages that shadow TensorFlow, Keras and Horovod: they import at once, or fail like those."""

TENSORFLOW = "__version__ = '2.15.1'\nimport keras\n"
KERAS = "__version__ = '2.15.0'\nclass Model: pass\nModel.__module__ = 'keras.src.engine'\n"
HOROVOD = "__version__ = '0.28.1'\n"
PART = "def mpi_built(): return True\n"
MISSING = "raise ModuleNotFoundError(\"No module named '{0}'\", name='{0}')\n"


def write_stubs(folder, **other):
    """Write the packages below ``folder``, which goes into PYTHONPATH; ``other`` is other text, by package."""
    texts = {"tensorflow": TENSORFLOW, "keras": KERAS, "horovod": HOROVOD, "horovod_tensorflow": PART, **other}
    for name, text in texts.items():
        place = folder / name.replace("_", "/", 1)
        place.mkdir(parents=True, exist_ok=True)
        (place / "__init__.py").write_text(text)
