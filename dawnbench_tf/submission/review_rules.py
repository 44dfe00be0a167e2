"""Rules for what DAWNBench's maintainers asked about in reviews of entries."""

import re
from collections.abc import Iterator
from typing import Any

from dawnbench_tf.submission import prices
from dawnbench_tf.submission.source import Complaints, Source, is_number, quoted

_MACHINE_TYPE = re.compile(
    r"\.(\d{0,4}x?large|medium|small|micro|metal)|\b[a-z]\d\w{0,9}-(standard|high|mega|ultra)"
    r"|\bN[CDV]\w{0,20}\d|\bTPU|\bv\d\w{0,20}-\d",
    re.IGNORECASE,
)


def author(source: Source) -> Complaints:
    """Requires an address in authorEmail."""
    address = source.fields.get("authorEmail")
    if isinstance(address, str) and "@" not in address:
        yield (
            source.line("authorEmail"),
            "authorEmail is no address, and the author should be reachable; `dawnbench entries "
            "package RUN_DIR --author_email=ADDRESS` sets it",
        )


def machine_type(source: Source) -> Complaints:
    """Requires the cloud's machine type in the hardware of an entry with a price (PR 111)."""
    hardware = source.fields.get("hardware")
    priced = any(is_number(source.fields.get(key)) for key in ("costPerHour", "cost"))
    if isinstance(hardware, str) and priced:
        if not _MACHINE_TYPE.search(hardware) and not prices.find_instance(hardware):
            text = "has a price, so hardware should name the cloud's machine type: p3.2xlarge"
            yield source.line("hardware"), f"hardware {quoted(hardware)} {text}"


def cluster(source: Source) -> Complaints:
    """Requires a cluster's price to be the sum over its machines (pull request 54)."""
    price, hardware = source.fields.get("costPerHour"), str(source.fields.get("hardware"))
    if not is_number(price):
        return
    machine, count = prices.find_instance(hardware), prices.count_machines(hardware)
    if machine and count > 1 and price < 1.5 * machine.usd_per_hour:
        due = f"{count} of them cost {count * machine.usd_per_hour:g}"
        yield source.line("costPerHour"), f"costPerHour {price:g} is one {machine.name}'s; {due}"


def hyperparameters(source: Source) -> Complaints:
    """Requires batch size, learning rate and optimizer in misc (pull requests 3, 10, 20, ...)."""
    misc = source.fields.get("misc")
    if source.phase == "train" and isinstance(misc, dict):
        keys = {re.sub(r"[^a-z]", "", str(key).lower()) for key in _keys(misc)}
        for name, words in (
            ("batch size", ("batch",)),
            ("learning rate", ("learningrate", "schedule", "cycle")),
            ("optimizer", ("optimi", "momentum")),
        ):
            if not any(word in key for key in keys for word in words):
                yield source.line("misc"), f"misc does not give the {name}; reviewers ask for it"


def _keys(value: dict[str, Any]) -> Iterator[str]:
    """Yields the keys of a JSON object and of all objects within it."""
    waiting: list[Any] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            yield from item
        waiting += (
            item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        )
