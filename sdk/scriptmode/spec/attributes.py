"""Attributes of an estimator that are its constructor's arguments, as users of the SageMaker SDK read and set them."""

from __future__ import annotations

from typing import Any

#: Methods of the SageMaker SDK's estimators that are not here, and what to do instead.
_GONE = {
    **dict.fromkeys(
        ("deploy", "transformer", "create_model", "register", "compile_model"),
        "a trained model is latest_training_job.model_data, or download_model()",
    ),
    "logs": "say latest_training_job.print_logs()",
    "jobs": "keep what fit returns, or list them with TrainingJob.list()",
    "training_job_analytics": "say latest_training_job.metrics()",
    "rule_job_summary": "see latest_training_job.describe()",
}


class Arguments:
    """An object whose constructor's arguments can be read, and be set until the next ``fit``."""

    def _construct(self, arguments: dict[str, Any]) -> None:
        """Become what the constructor makes of ``arguments``."""
        raise NotImplementedError

    def _shown(self, name: str, value: Any) -> Any:  # noqa: ARG002 - for those that show something else
        """Return what an argument reads as, given its value."""
        return value

    def __getattr__(self, name: str) -> Any:
        """Give an argument as it was given; called for what is no attribute otherwise."""
        given = self.__dict__.get("_arguments", {})
        if name in given:
            return self._shown(name, given[name])
        hint = f": {_GONE[name]}" if name in _GONE else _near(name, given)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}{hint}")

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an argument, checked as by the constructor; refuse what is nearly the name of one."""
        given = self.__dict__.get("_arguments", {})
        if name in given:
            self._construct({**given, name: value})
        elif given and self._is_new(name) and (hint := _near(name, given)):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}{hint}")
        else:
            object.__setattr__(self, name, value)

    def _is_new(self, name: str) -> bool:
        return not name.startswith("_") and name not in self.__dict__ and not hasattr(type(self), name)


def _near(name: str, known: dict[str, Any]) -> str:
    import difflib

    close = difflib.get_close_matches(name, known, n=1, cutoff=0.85)
    return f"; did you mean {close[0]!r}?" if close else ""
