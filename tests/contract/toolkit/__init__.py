"""One training host's part of a job, given to AWS's SageMaker Training Toolkit and to us: what does the script see?"""

from __future__ import annotations

from contract.toolkit import endings, hosts, hyperparameters, programs, sources

#: Each is run by the toolkit's ``train`` and by ours.
CASES = [*hyperparameters.CASES, *hosts.CASES, *programs.CASES, *sources.CASES, *endings.CASES]
