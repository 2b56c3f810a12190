"""Answers of a service, also as they went over the wire, against botocore's model: its parser drops what it does not know."""

import functools
import json
from datetime import datetime

from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator

_TYPES = {
    "structure": dict, "map": dict, "list": list, "string": str, "boolean": bool, "integer": int, "long": int,
    "float": (int, float), "double": (int, float), "timestamp": (int, float, datetime), "blob": object,
}  # fmt: skip


@functools.cache
def _sagemaker():
    return ServiceModel(Loader().load_service_model("sagemaker", "service-2"), "sagemaker")


def operation(name):
    """Return botocore's model of an operation of SageMaker."""
    return _sagemaker().operation_model(name)


def against(shape, value):
    """Return what botocore's own validator says of a value, "" for one that it accepts."""
    return ParamValidator().validate(value, shape).generate_report()


def problems(shape, value, path="the answer"):
    """Yield what the model does not have: other types, unknown members, and missing ones that it requires."""
    if not isinstance(value, _TYPES[shape.type_name]):
        yield f"{path} is {value!r}, not a {shape.type_name}"
    elif shape.type_name == "structure":
        names = shape.members
        yield from (f"{path} has {name!r}" for name in value if name not in names)
        yield from (f"{path} lacks {name!r}" for name in shape.required_members if name not in value)
        for name in names.keys() & value.keys():
            yield from problems(names[name], value[name], f"{path}.{name}")
    elif shape.type_name == "list":
        for index, each in enumerate(value):
            yield from problems(shape.member, each, f"{path}[{index}]")
    elif shape.type_name == "map":
        for key, each in value.items():
            yield from problems(shape.value, each, f"{path}[{key!r}]")
    elif shape.type_name == "string" and shape.enum and value not in shape.enum:
        yield f"{path} is {value!r}"


def check_answers(client):
    """Have a client of boto3 fail for an answer that its service's model does not have; return the client."""

    def check(http_response, model, **_):
        if http_response.status_code == 200 and model.output_shape is not None:
            found = list(problems(model.output_shape, json.loads(http_response.content)))
            assert not found, f"{model.name}: {found}"

    client.meta.events.register("after-call", check)
    return client
