"""One training host's part of a job, given to AWS's SageMaker Training Toolkit and to us: what does the script see?"""

from contract.toolkit import programs, settings, sources

#: Each is run by the toolkit's ``train`` and by ours.
CASES = [*settings.CASES, *programs.CASES, *sources.CASES]
