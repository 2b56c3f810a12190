"""The page of the settings of Slurm has every one of them, and the refusals in the words of the messages."""

from dataclasses import fields

from docs.documents import DOCS

from scriptmode.platforms.slurm.sbatch_options import REFUSED
from scriptmode.platforms.slurm.settings import SlurmSettings

ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (DOCS / "reference" / "slurm.md").read_text().splitlines()
    if line.startswith("| `")
]


def test_the_page_has_every_refused_option_with_its_reason():
    shown = {row[0].strip("`"): (row[1], row[2]) for row in ROWS if row[0].strip("`") in REFUSED}
    assert shown == REFUSED


def test_the_page_has_every_setting_of_its_own():
    own = {field.name for field in fields(SlurmSettings)} - {"options"}
    assert own <= {row[0].strip("`") for row in ROWS}
