"""Requests that each break one constraint of the service's model, and whether `scriptmode serve` refuses them."""

import copy
import io
import json
from collections import ChainMap
from dataclasses import dataclass
from typing import Any

from botocore.loaders import Loader

from scriptmode._core.request.service_model import compiled
from scriptmode_local._tuning.tuning_service import LocalTuning
from scriptmode_serve._http.application import Application
from scriptmode_serve._http.guard import Guard
from scriptmode_serve._operations.request_mapping import HostTable
from scriptmode_serve._operations.search import search
from scriptmode_serve._operations.tag_operations import TagOperations
from scriptmode_serve._operations.training_jobs import TrainingJobs
from scriptmode_serve._operations.tuning_operations import TuningJobs

OPERATIONS = (
    "CreateTrainingJob", "DescribeTrainingJob", "ListTrainingJobs", "StopTrainingJob", "DeleteTrainingJob", "AddTags",
    "ListTags", "DeleteTags", "CreateHyperParameterTuningJob", "DescribeHyperParameterTuningJob",
    "ListHyperParameterTuningJobs", "StopHyperParameterTuningJob", "DeleteHyperParameterTuningJob",
    "ListTrainingJobsForHyperParameterTuningJob", "Search",
)  # fmt: skip
MODEL = Loader().load_service_model("sagemaker", "service-2")
SHAPES = MODEL["shapes"]
# Such an expression has itself as a part.
del SHAPES["SearchExpression"]["members"]["SubExpressions"]
SCALARS = ("string", "integer", "long", "float", "double", "boolean", "timestamp")
NUMBERS = ("integer", "long", "float", "double")
#: Values of which each pattern of a string matches one, and does not match another.
STRINGS = (
    *("a", "4K", "aA1-", "a" * 20, "s3://bucket/key", "fs-0123456789abcdef0"),
    "arn:aws:iam::123456789012:role/training",
    "arn:aws:lambda:us-east-1:123456789012:function:login",
    *(
        f"arn:aws:sagemaker:us-east-1:{account}:{name}"
        for account in ("123456789012", "aws")
        for name in (
            *("training-job/a", "training-plan/a-plan", "mlflow-app/app-1", "mlflow-tracking-server/a"),
            *(
                "model-package-group/a",
                "model-package/a/1",
                "hub-content/h/Model/m/1.0.0",
                "hub-content/h/DataSet/d/1.0.0",
            ),
            *("hub-content/h/JsonDoc/e/1.0.0", "hub/h"),
        )
    ),
    *("", "!", "\n", "a\n", "\t", " ", "a b", "x" * 300, "\u0000"),
)


@dataclass(frozen=True)
class Case:
    """One constraint: the member in AWS's spelling, and a request that breaks it, None where no request can."""

    member: str
    constraint: str
    limit: Any
    request: Any = None


def valid(name):
    """Return a value of a shape with every optional member."""
    shape = SHAPES[name]
    kind, least = shape["type"], shape.get("min", 0)
    if kind == "structure":
        return {key: valid(member["shape"]) for key, member in shape["members"].items()}
    if kind == "list":
        return [valid(shape["member"]["shape"]) for _ in range(max(least, 1))]
    if kind == "map":
        return {valid(shape["key"]["shape"]): valid(shape["value"]["shape"])}
    if kind == "string":
        return shape["enum"][0] if "enum" in shape else next(text for text in STRINGS if matches(shape, text))
    return True if kind == "boolean" else max(least, 1)


def matches(shape, text, *, pattern=True):
    """Return whether a text is a value of a shape, or, without ``pattern``, has such a length and another form."""
    fits = shape.get("min", 0) <= len(text) <= shape.get("max", len(text))
    return fits and bool(compiled(shape.get("pattern", r"[\s\S]*")).fullmatch(text)) == pattern


def cases(root):
    """Yield every constraint of a request's shape."""
    base = valid(root)
    for path, member, shape in places(root):
        for constraint, limit, value in broken(shape, found := at(base, path)):
            yield Case(member, constraint, limit, None if value is None else changed(base, path, value))
        if shape["type"] == "structure":
            for key in shape.get("required", ()):
                without = {name: each for name, each in found.items() if name != key}
                yield Case(
                    f"{member}.{key[0].lower()}{key[1:]}".lstrip("."), "required", None, changed(base, path, without)
                )


def places(name, path=(), member=""):
    """Yield path, member in AWS's spelling and shape of each value of a shape; a tuple in a path is a map's key."""
    shape = SHAPES[name]
    if path:
        yield path, member, shape
    if shape["type"] == "structure":
        if not path:
            yield path, member, shape
        for key, inner in shape["members"].items():
            yield from places(inner["shape"], (*path, key), f"{member}.{key[0].lower()}{key[1:]}".lstrip("."))
    elif shape["type"] == "list":
        inner = shape["member"]["shape"]
        of_list = member if SHAPES[inner]["type"] in SCALARS else f"{member}.1.member"
        yield from places(inner, (*path, 0), of_list)
    elif shape["type"] == "map":
        key = valid(shape["key"]["shape"])
        yield from places(shape["key"]["shape"], (*path, (key,)), member)
        yield from places(shape["value"]["shape"], (*path, key), member)


def broken(shape, value):
    """Yield each constraint of a shape, its limit, and a value that breaks only it as far as that is possible."""
    kind = shape["type"]
    yield "type", kind, 1 if kind == "string" else "x"
    if "enum" in shape:
        yield "enum", None, "Sideways"
    if "pattern" in shape:
        yield "pattern", shape["pattern"], next((each for each in STRINGS if matches(shape, each, pattern=False)), None)
    least, most = shape.get("min"), shape.get("max")
    if least is not None:
        yield "min", least, least - 1 if kind in NUMBERS else resized(value, least - 1) if least else None
    if most is not None:
        yield "max", most, most + 1 if kind in NUMBERS else resized(value, most + 1)


def resized(value, size):
    """Return a string, list or map of another size."""
    if isinstance(value, str):
        return (value + "a" * size)[:size]
    if isinstance(value, list):
        return (value * (size + 1))[:size]
    ((key, content),) = value.items()
    return {f"{key}{index}": content for index in range(size)}


def at(base, path):
    """Return the value at a path."""
    for part in path:
        base = part[0] if isinstance(part, tuple) else base[part]
    return base


def changed(base, path, value):
    """Return the request with another value, or another key, at a path."""
    if not path:
        return value
    request = copy.deepcopy(base)
    *parents, last = path
    place = at(request, parents)
    if isinstance(last, tuple):
        if not isinstance(value, str):
            return None  # the keys of JSON's objects are strings
        place[value] = place.pop(last[0])
    else:
        place[last] = value
    return request


def application(platform):
    """Return the application of a server with SageMaker's operations alone."""
    tuning, table = LocalTuning(platform), HostTable()
    operations = (
        TrainingJobs(platform, table).operations,
        TuningJobs(tuning, table).operations,
        TagOperations(platform, tuning).operations,
        {"Search": lambda arguments: search([], dict, dict, arguments)},
    )
    guard = Guard("127.0.0.1")
    return Application({"SageMaker": dict(ChainMap(*operations))}, None, guard, print)


def call(app, operation, request):
    """Return status and content of the answer to a request, which may be the bytes of a body."""
    body, answer = request if isinstance(request, bytes) else json.dumps(request).encode(), []
    environ = {
        "REQUEST_METHOD": "POST", "PATH_INFO": "/", "QUERY_STRING": "", "HTTP_HOST": "127.0.0.1", "REMOTE_ADDR": "127.0.0.1",
        "HTTP_X_AMZ_TARGET": f"SageMaker.{operation}", "CONTENT_LENGTH": str(len(body)), "wsgi.input": io.BytesIO(body),
    }  # fmt: skip
    content = b"".join(app(environ, lambda status, *_: answer.append(status)))
    return answer[0], json.loads(content)


def problem(app, operation, case):
    """Return what is wrong with the answer to a request, "" for AWS's."""
    status, content = call(app, operation, case.request)
    code, message = content.get("__type"), content.get("Message", "")
    expected = "SerializationException" if case.constraint == "type" else "ValidationException"
    rules = {
        "required": "Member must not be null",
        "enum": "Member must satisfy enum value set: [",
        "pattern": f"Member must satisfy regular expression pattern: {case.limit}",
        "min": f"greater than or equal to {case.limit}",
        "max": f"less than or equal to {case.limit}",
    }
    # The body itself has no name.
    is_named = (not case.member or f"'{case.member}'" in message) and rules.get(case.constraint, "") in message
    is_of_model = case.constraint == "type" or " detected: Value" in message
    if status.startswith("400") and code == expected and is_named and is_of_model:
        return ""
    return f"{operation} {case.member} {case.constraint}: {status} {code} {message[:300]}"


def root_of(operation):
    """Return the name of the shape of an operation's request."""
    return MODEL["operations"][operation]["input"]["shape"]
