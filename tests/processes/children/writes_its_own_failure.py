import os
import sys
from pathlib import Path

Path(os.environ["SM_OUTPUT_DIR"], "failure").write_text("my own words")
sys.exit(4)
