"""The packages of a source's requirements.txt, installed for one host."""

#: This host's own packages, where those of the interpreter must not be changed.
OVERLAY_DIR = "overlay"
#: pip in the code directory, the base of relative paths in requirements.txt; modules in it cannot hide pip's.
OWN_PATH = "import sys; sys.path = [p for p in sys.path if p]; "
PIP = f"{OWN_PATH}import runpy; runpy.run_module('pip', None, '__main__', True)"
