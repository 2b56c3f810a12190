"""One file for each way to train together: ``plan(environment, command) -> LaunchPlan``. Pure."""
