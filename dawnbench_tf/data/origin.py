"""Where a data set came from, and whether it is, to the bit, what was published."""

from typing import NamedTuple


class Origin(NamedTuple):
    """Where a data set came from."""

    source: str  # "cifar-10-python.tar.gz", "embedded", "synthetic"
    verified: bool | None = None  # its files have the published SHA-256; None: there is none

    def __str__(self):
        if self.verified is None:
            return self.source
        published = "as published" if self.verified else "not what was published"
        return f"{self.source}, {published} (by SHA-256)"

    def facts(self) -> dict[str, str | bool]:
        """What an entry's misc says of it."""
        facts: dict[str, str | bool] = {"source": self.source}
        return facts if self.verified is None else {**facts, "verified": self.verified}
