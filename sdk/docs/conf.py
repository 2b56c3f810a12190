"""Sphinx's configuration: guides in MyST Markdown, notebooks, the reference from docstrings and from `--help`.

`make docs` and the tests build with every warning as an error. The build downloads nothing, so names of other projects
have no links.
"""  # noqa: INP001 - Sphinx's, no package

from __future__ import annotations

import os
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

# The reference imports TensorFlow: hide its messages about this machine.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "scriptmode"
author = "the scriptmode authors"
copyright = author  # noqa: A001 - Sphinx's name for it
release = version = metadata.version("scriptmode")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "myst_nb",
    "command_line",
    "google_sections",
    "notebook_links",
    "public_names",
]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb", ".rst": "restructuredtext"}
root_doc = "index"
exclude_patterns = ["extensions"]

# Notebooks show the outputs that are committed with them: `make notebooks` records them.
nb_execution_mode = "off"
nb_merge_streams = True

# A button copies a block; of a console block the commands alone.
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True
copybutton_line_continuation_character = "\\"
copybutton_here_doc_delimiter = "EOF"

# Docstrings write references in single backticks, and a reference that cannot be resolved is an error.
default_role = "any"
nitpicky = True

# Pages that need these packages are built without them too.
autodoc_mock_imports = [name for name in ("tensorflow", "horovod") if find_spec(name) is None]
autoclass_content = "both"
autodoc_class_signature = "mixed"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
# Console blocks are not highlighted.
highlight_language = "text"

html_theme = "furo"
html_title = "scriptmode"
html_show_sourcelink = False
html_copy_source = False
# No page links the lists of all names, which are wider than a page.
html_use_index = False
html_domain_indices = False
