"""Prices of Amazon SageMaker, from AWS's Price List."""

from __future__ import annotations

import json

from scriptmode.core.aws.session import Connection
from scriptmode.errors import invalid

#: A Region whose endpoint knows the prices of all Regions of its partition.
_ENDPOINT_REGION, _PARTITION = "us-east-1", "aws"


def find_training_price(instance_type: str, argument: str, session: object = None) -> float:
    """Return the on-demand price of an instance for training, in US dollars an hour, in the session's Region.

    ``argument`` is what an error names. Needs the permission ``pricing:GetProducts``; raises `PlatformError`, and
    `SpecError` where the list does not have exactly one price.
    """
    own = Connection(session)
    region = own.region
    if own.call(f"the Region {region}", lambda: own.boto_session.get_partition_for_region(region)) != _PARTITION:
        what = f"is {instance_type!r}, but AWS's price list in US dollars does not answer credentials of {region}"
        raise invalid(argument, what, "give prices by instance type")
    wanted = {"regionCode": region, "instanceName": instance_type, "component": "Training"}
    arguments = {
        "ServiceCode": "AmazonSageMaker",
        "Filters": [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()],
    }
    connection = Connection(session, region=_ENDPOINT_REGION)
    products = connection.list_all(f"the price of {instance_type}", "pricing", "get_products", "PriceList", arguments)
    terms = [term for each in products for term in json.loads(each)["terms"].get("OnDemand", {}).values()]
    dimensions = [each for term in terms for each in term["priceDimensions"].values() if each["unit"] == "Hrs"]
    found = {price for each in dimensions if (price := float(each["pricePerUnit"].get("USD", 0)))}
    if len(found) != 1:
        known = "no price" if not found else f"{len(found)} prices"
        what = f"is {instance_type!r}, of which AWS's price list has {known} for training in {region}"
        raise invalid(argument, what, "check its name and the Region, or give prices by instance type")
    return found.pop()
