"""What tests of training code need: an Amazon SageMaker in memory, over a clock that passes at once.

>>> fake = FakeSageMaker()
>>> fake.expect(Life.failed("AlgorithmError: out of memory", logs={"algo-1": [(90, "loading"), (130, "Killed")]}))
>>> estimator = Estimator(..., sagemaker_session=fake)
"""

from scriptmode.testing.fake_clock import FakeClock
from scriptmode.testing.fake_sagemaker import FakeSageMaker
from scriptmode.testing.job_life import Life, Line, Phase, Point
from scriptmode.testing.service_calls import Call, ServiceError

__all__ = ["Call", "FakeClock", "FakeSageMaker", "Life", "Line", "Phase", "Point", "ServiceError"]
