"""The origin of a data set, and whether its files are bit-identical to the published ones."""

from typing import NamedTuple


class Origin(NamedTuple):
    """The origin of a data set."""

    source: str  # "cifar-10-python.tar.gz", "embedded", "synthetic"
    # Whether the files have the published SHA-256; None if no checksum is published.
    verified: bool | None = None

    def __str__(self) -> str:
        if self.verified is None:
            return self.source
        published = "as published" if self.verified else "not what was published"
        return f"{self.source}, {published} (by SHA-256)"

    def facts(self) -> dict[str, str | bool]:
        """Returns the origin as an entry's `misc` records it."""
        facts: dict[str, str | bool] = {"source": self.source}
        return facts if self.verified is None else {**facts, "verified": self.verified}
