"""Lists of objects in S3's order, of a server that lists directories: each page against the sorted keys."""

import random
from urllib.parse import parse_qs, quote_plus, urlsplit
from xml.etree import ElementTree as ET

import pytest

from scriptmode_serve._http.s3_listing import Listing, ordered
from scriptmode_serve._operations.aws_json import ApiError

WHOLE = b"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"


def directories(keys, target):
    """Answer a GET as SeaweedFS does, with three names at most: by the names of one directory."""
    query = {name: values[0] for name, values in parse_qs(urlsplit(target).query, keep_blank_values=True).items()}
    folder = query["prefix"][: query["prefix"].rfind("/") + 1]
    names = {}
    for key in keys:
        name, slash, _ = key[len(folder) :].partition("/")
        if key.startswith(query["prefix"]) and folder + name > query["start-after"]:
            names.setdefault(name, set()).add(folder + name + slash if name else key)
    root, shown = ET.Element("ListBucketResult"), sorted(names)[:3]
    ET.SubElement(root, "IsTruncated").text = str(len(names) > len(shown)).lower()
    for name in shown:
        for key in sorted(names[name]):
            kinds = ("CommonPrefixes", "Prefix") if key.endswith("/") and name else ("Contents", "Key")
            ET.SubElement(ET.SubElement(root, kinds[0]), kinds[1]).text = quote_plus(key)
    return ET.tostring(root)


def listed(keys, **parameters):
    """Return what a client lists page by page: keys, and common prefixes as they are."""
    found, token = [], {}
    while True:
        listing = Listing("bkt", {"list-type": "2", **parameters, **token})
        root = ET.fromstring(ordered(listing, WHOLE, lambda target: directories(keys, target)))
        found += [element[0].text for element in root if element.tag.endswith(("Contents", "CommonPrefixes"))]
        if root.findtext("{*}IsTruncated") == "false":
            return found
        token = {"continuation-token": root.findtext("{*}NextContinuationToken")}


def expected(keys, prefix, delimiter, after):
    shown = {}
    for key in sorted(keys):
        if key.startswith(prefix) and key > after:
            end = key.find(delimiter, len(prefix)) if delimiter else -1
            shown[key if end < 0 else key[: end + len(delimiter)]] = True
    return list(shown)


@pytest.mark.parametrize("seed", range(5))
def test_keys_of_any_names_are_listed_in_the_order_of_their_bytes(seed):
    chance = random.Random(seed)

    def part():
        return "".join(chance.choice("ab-0é!%+ ") for _ in range(chance.randint(1, 3)))

    for _ in range(200):
        keys = {"/".join(part() for _ in range(chance.randint(1, 4))) for _ in range(chance.randint(1, 25))}
        keys |= {f"{key}/" for key in keys if chance.random() < 0.1}
        key = chance.choice(sorted(keys))
        prefix, after = chance.choice(["", "a", "a-", key[:2], key]), chance.choice(["", "", key, "a", "a-"])
        delimiter, most = chance.choice(["", "/", "-"]), chance.choice(["1", "3", "1000"])
        given = {"prefix": prefix, "delimiter": delimiter, "start-after": after, "max-keys": most}
        assert listed(keys, **given) == expected(keys, prefix, delimiter, after), (sorted(keys), given)


def test_uploads_are_listed_in_pages_by_their_keys_and_times():
    started = [("m/b", 1), ("m-b", 2), ("m.b", 3), ("a/z", 4), ("m-b", 0), ("é x", 5)]
    upload = "<Upload><Initiated>{1}</Initiated><Key>{0}</Key><UploadId>{0} {2}</UploadId></Upload>"
    every = {f"{key} {9 - time}": upload.format(key, time, 9 - time) for key, time in started}

    def pages(most, *, aborts=False, **parameters):
        found, markers = [], {}
        while True:
            listing = Listing("bkt", {"uploads": "", "max-uploads": most, **parameters, **markers})
            left = "".join(text for name, text in every.items() if not (aborts and name in found))
            page = ET.fromstring(ordered(listing, b"", lambda _: f"<List>{left}</List>".encode()))  # noqa: B023
            found += [part.text for name in ("UploadId", "Prefix") for part in page.iterfind(f"*/{{*}}{name}")]
            if page.findtext("{*}IsTruncated") == "false":
                return found
            texts = map(page.findtext, ("{*}NextKeyMarker", "{*}NextUploadIdMarker"))
            markers = dict(zip(("key-marker", "upload-id-marker"), texts))

    with pytest.raises(ApiError, match="max-uploads is '-1'; it must be a whole number"):
        pages("-1")
    for most in ("1", "2", "1000"):
        assert pages(most) == pages(most, aborts=True) == [f"{key} {9 - time}" for key, time in sorted(started)]
        assert sorted(pages(most, delimiter="/")) == ["a/", "m-b 7", "m-b 9", "m.b 6", "m/", "é x 4"]
