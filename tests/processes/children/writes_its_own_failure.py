import os
import sys

with open(os.path.join(os.environ["SM_OUTPUT_DIR"], "failure"), "w") as file:
    file.write("my own words")
sys.exit(4)
