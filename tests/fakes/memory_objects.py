"""An object store in memory that counts its requests."""

from collections import Counter

from scriptmode.errors import DataNotFoundError
from scriptmode_local._data.object_store import StoredObject


class MemoryObjects:
    """An `ObjectStore` of the given contents by URI."""

    def __init__(self, contents=()):
        self.contents = dict(contents)
        self.asked = Counter()

    def of(self, uri):
        """What listings and readers call for a URI's store."""
        return self

    def objects(self, prefix):
        keys = sorted(self.contents, key=lambda uri: uri.encode("utf-8", "surrogateescape"))
        return (self.find(uri) for uri in keys if uri.startswith(prefix))

    def find(self, uri):
        self.asked[uri] += 1
        if uri not in self.contents:
            raise DataNotFoundError(f"{uri}: there is no such object; correct the URI")
        return StoredObject(uri, len(self.contents[uri]), "v1")

    def read(self, item, start, end):
        return [self.contents[item.uri][start:end]]
