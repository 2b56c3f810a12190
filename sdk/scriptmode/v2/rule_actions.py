"""What a rule of the debugger does when it fires, as ``sagemaker.debugger.rule_configs`` has it. Pure."""

from __future__ import annotations


class Action:
    """One action; the rules' image reads its text, in which the backslashes are a part."""

    def __init__(self, **parameters: str | None) -> None:
        named = {**parameters, "name": type(self).__name__.lower()}
        self._parameters = {name: value for name, value in named.items() if value is not None}

    def serialize(self) -> str:
        """Return the action's text."""
        return "{" + ", ".join(f'\\"{name}\\": \\"{value}\\"' for name, value in self._parameters.items()) + "}"


class StopTraining(Action):
    """Stops the training job, or the one whose name begins with a prefix."""

    def __init__(self, training_job_prefix: str | None = None) -> None:
        super().__init__(training_job_prefix=training_job_prefix)

    def update_training_job_prefix_if_not_specified(self, training_job_name: str) -> None:
        """Set the job to stop, unless there is one."""
        self._parameters.setdefault("training_job_prefix", training_job_name)


class Email(Action):
    """Sends an email."""

    def __init__(self, email_address: str) -> None:
        super().__init__(endpoint=email_address)


class SMS(Action):
    """Sends a text message."""

    def __init__(self, phone_number: str) -> None:
        super().__init__(endpoint=phone_number)


class ActionList:
    """Several actions."""

    def __init__(self, *actions: Action) -> None:
        self.actions = actions

    def update_training_job_prefix_if_not_specified(self, training_job_name: str) -> None:
        """Set the job that is stopped, where an action stops one and names none."""
        for action in self.actions:
            if isinstance(action, StopTraining):
                action.update_training_job_prefix_if_not_specified(training_job_name)

    def serialize(self) -> str:
        """Return the actions' text."""
        return "[" + ", ".join(action.serialize() for action in self.actions) + "]"
