"""The packages of a source's requirements.txt: installed for one host, or into an environment that jobs share."""

#: This host's own packages, where those of the interpreter must not be changed.
OVERLAY_DIR = "overlay"
#: The link from a host's overlay to the environment that it uses.
LINK = "cached"
#: pip in the code directory, the base of relative paths in requirements.txt; modules in it cannot hide pip's.
OWN_PATH = "import sys; sys.path = [p for p in sys.path if p]; "
PIP = f"{OWN_PATH}import runpy; runpy.run_module('pip', None, '__main__', True)"
