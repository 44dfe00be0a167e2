"""Prices of cloud instances: on-demand, from `instances.tsv`, each with its source and date.

Rows until 2020 are machines of published entries at the prices that the entries state. Later ones
are from the providers' price lists, as the named commits of public repositories keep them. No price
is guessed, so there is none of today's TPUs.
"""

import csv
import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from dawnbench_tf import machine, terminal
from dawnbench_tf.recipe.options import Credits
from dawnbench_tf.refusals import refuse, suggestion

_TABLE = Path(__file__).with_name("instances.tsv")
_COUNT = re.compile(r"(?<!\d)(\d{1,9}) ?(?:machines|nodes|instances|hosts)", re.IGNORECASE)


class Instance(NamedTuple):
    """A machine that a public cloud rents by the hour."""

    name: str  # the provider's machine type; where entries gave none, a name made of its parts
    provider: str
    vcpus: int | None  # None: not stated
    memory_gb: int | None
    accelerator: str  # "" if it has none
    usd_per_hour: float
    source: str  # the published entry that has this price; or the price list and its region
    date: str  # YYYY-MM-DD


@cache
def instances() -> dict[str, Instance]:
    """Returns all instances by name."""
    table = dict[str, Instance]()
    with open(_TABLE, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            numbers = {
                n: json.loads(row[n] or "null") for n in ("vcpus", "memory_gb", "usd_per_hour")
            }
            table[row["name"]] = Instance(**{**row, **numbers})
    return table


def format_table() -> str:
    """Formats all instances as a text table, those of this machine's size first, then by year."""
    lines = [f"  {'instance':25} USD/hour  vCPU    GB  {'accelerator':16} date        source"]
    here = machine.cpus(), machine.memory_gb(), machine.gpus()
    fit = [row for row in instances().values() if not _difference(row, *here)]
    for row in sorted(instances().values(), key=lambda row: (row not in fit, -int(row.date[:4]))):
        size = f"{row.vcpus or '':4}  {row.memory_gb or '':4}"
        price = f"{row.usd_per_hour:8.4g}  {size}  {row.accelerator:16}"
        mark = "*" if row in fit else " "
        lines.append(f"{mark} {row.name:25} {price} {row.date}  {row.source}")
    which = "*: with" if fit else "none has"
    return "\n".join([*lines, f"{which} the vCPUs, memory and GPUs of this machine"])


def with_instance_price(credits: Credits) -> Credits:
    """Sets `cost_per_hour` to the price of `credits.instance`, if there is one; says its source."""
    name = credits.instance
    if not name:
        return credits
    if credits.cost_per_hour is not None:
        refuse("instance", name, "and --cost_per_hour both give a price; choose one")
    if name not in instances():
        hint = suggestion(name, instances(), "--instance=? lists those that are")
        refuse("instance", name, f"is not known; {hint}")
    row = instances()[name]
    here = machine.cpus(), machine.memory_gb(), machine.gpus()
    if not credits.hardware and (difference := _difference(row, *here)):
        refuse("instance", name, f"has {difference}; add --hardware if it is the machine to name")
    terminal.say(f"{row.name}: ${row.usd_per_hour:g} per hour on {row.date} ({row.source})")
    return replace(credits, cost_per_hour=row.usd_per_hour)


def _difference(row: Instance, cpus: int, memory: float, gpus: list[str]) -> str:
    """Returns how this machine differs from an instance; "" where it does not, or nobody states."""
    if row.vcpus and row.vcpus != cpus:
        return f"{row.vcpus} vCPUs, this machine has {cpus}"
    if row.memory_gb and abs(row.memory_gb - memory) > 0.15 * row.memory_gb:
        return f"{row.memory_gb} GB of memory, this machine has {memory:.0f}"
    number, _, model = row.accelerator.partition(" ")
    if "TPU" in model:
        return ""
    others = [gpu for gpu in gpus if not re.search(rf"\b{model}\b", gpu)]  # L4 is no L40S
    if others or len(gpus) != int(number or 0):
        text = f"{len(gpus)} {', '.join(sorted(set(gpus)))}" if gpus else "no GPU"
        return f"{row.accelerator or 'no GPU'}, this machine has {text}"
    return ""


def find_instance(hardware: str) -> Instance | None:
    """Returns the instance whose name a hardware description contains; None if there is none."""
    # The longest name wins where several match.
    named = [
        row
        for name, row in instances().items()
        if name in hardware and re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", hardware)
    ]
    return max(named, key=lambda row: len(row.name), default=None)


def count_machines(hardware: str) -> int:
    """Returns the number of machines that a hardware description states; 1 if it states none.

    >>> count_machines("32 * V100 (4 machines - AWS p3.16xlarge)")
    4
    >>> count_machines("16 p3.16xlarge (AWS)"), count_machines("p3.16xlarge x 16")
    (16, 16)
    >>> count_machines("8 V100 p3.16xlarge, Amazon EC2")
    1
    """
    match, instance = _COUNT.search(hardware), find_instance(hardware)
    if not match and instance:
        name = re.escape(instance.name)
        before_or_after = rf"(?<!\w)(\d{{1,5}}) ?[x*]? ?{name}|{name} ?[x*] ?(\d{{1,5}})(?! ?\w)"
        match = re.search(before_or_after, hardware)
    return max(1, int(match[match.lastindex or 0])) if match else 1
