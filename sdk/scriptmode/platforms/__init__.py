"""The platforms of this machine and of a cluster; Amazon SageMaker is in `scriptmode.core.platforms`.

- `local`: the training service of this machine; `slurm`: its engine whose hosts are nodes of a cluster
- `opt_ml`, `planned_containers`: what a host is given, computed from a request
- `foreign_failure`: why an image without the runtime failed
"""
