"""Estimates of several machines: their JSON files, a table side by side."""

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dawnbench_tf import files, typed
from dawnbench_tf.estimates.layout import format_hours
from dawnbench_tf.estimates.prediction import Estimate
from dawnbench_tf.money import dollars
from dawnbench_tf.refusals import Refusal, one_line, shown

__all__ = ["Machine", "Comparison"]

FORMAT = 1
LARGEST = 10 << 20  # bytes of a file


class Machine(NamedTuple):
    """The estimates of one machine, as a file of `dawnbench estimate --output` has them.

    Attributes:
      name: the file's name, without its suffix.
      hardware: the machine in one line.
      software: versions.
      date: YYYY-MM-DD.
      cost_per_hour: price of the machine in USD; None: unknown.
      estimates: one for each recipe.
    """

    name: str
    hardware: str
    software: dict[str, str]
    date: str
    cost_per_hour: float | None
    estimates: list[Estimate]

    def facts(self) -> dict[str, Any]:
        """Returns the content of the file, as JSON values."""
        values = self._asdict()
        del values["name"]
        return {"format": FORMAT, **values, "estimates": [row.facts() for row in self.estimates]}


class _File(NamedTuple):
    """Types of the values of `Machine.facts()`."""

    format: int
    hardware: str
    software: dict[str, str]
    date: str
    cost_per_hour: float | None
    estimates: list[Any]


class Comparison(NamedTuple):
    """Estimates of several machines for the recipes that at least two of them have.

    Attributes:
      machines: in the order of the files.
      recipes: names, in the order of the first file.
    """

    machines: list[Machine]
    recipes: list[str]

    def row(self, machine: Machine, recipe: str) -> Estimate | None:
        """Returns a machine's estimate of a recipe; None if it has none.

        Args:
          machine: one of `machines`.
          recipe: name, TASK/NAME.
        """
        rows = (row for row in machine.estimates if row.recipe == recipe and not row.reason)
        return next(rows, None)


def write(path: Path, machine: Machine) -> None:
    """Writes a machine's estimates as JSON. Raises Refusal."""
    files.write_json(path, machine.facts())


def today() -> str:
    """Returns the date, YYYY-MM-DD, in UTC."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def read(path: Path) -> Machine:
    """Reads a file that `write` wrote.

    Raises:
      Refusal: it can't be read, or has other keys or types; the message names the file and key.
    """
    values = files.read_json(path, LARGEST, "`dawnbench estimate --output=FILE` writes one")
    try:
        typed.check_fields(values, _File, "estimates")
        if values.pop("format") != FORMAT:
            raise ValueError(f"format should be {FORMAT}, of this version of dawnbench_tf")
        rows = [_estimate(number, facts) for number, facts in enumerate(values["estimates"])]
    except ValueError as error:
        raise Refusal(f"{path}: {one_line(error)}") from None
    return Machine(**{**values, "name": path.stem, "estimates": rows})


def _estimate(number: int, facts: object) -> Estimate:
    try:
        row = Estimate.from_facts(facts)
    except ValueError as error:
        raise ValueError(f"estimates.{number}: {error}") from None
    pairs = {"hours_interval": row.hours_interval, "usd_interval": row.usd_interval}
    for name, pair in pairs.items():
        if len(pair) not in (0, 2):
            raise ValueError(f"estimates.{number}: {name} should have 2 members")
    if not row.reason and not row.examples_per_second > 0:
        raise ValueError(f"estimates.{number}: examples_per_second should be over 0")
    for name in ("hours", "usd"):
        if (getattr(row, name) or 0) < 0:
            raise ValueError(f"estimates.{number}: {name} should be at least 0")
    return row


def compare(paths: Sequence[Path]) -> Comparison:
    """Reads the files of several machines and returns their common recipes. Raises Refusal."""
    machines = [read(path) for path in paths]
    done = [[row.recipe for row in m.estimates if not row.reason] for m in machines]
    names = dict.fromkeys(name for own in done for name in own)
    common = [name for name in names if sum(name in own for own in done) > 1]
    if not common:
        text = " and ".join(map(str, paths))
        raise Refusal(f"{text}: no recipe was estimated on two of these machines")
    return Comparison(machines, common)


def format_text(comparison: Comparison) -> str:
    """Returns the machines, and a line for each recipe and machine, in 80 columns."""
    lines = []
    for number, machine in enumerate(comparison.machines, 1):
        price = machine.cost_per_hour
        cost = "no price" if price is None else f"{dollars(price)} an hour"
        line = shown(f"{number}  {machine.name}: {machine.hardware}, {cost}, {machine.date}")
        lines.append(line if len(line) <= 80 else f"{line[:77]}...")
    lines += [
        "",
        f"{'recipe':28} machine {'ms a step':>10} {'to threshold':>13}   speed {'USD':>9}",
    ]
    for recipe in comparison.recipes:
        first, name = None, shown(recipe)[:28]
        for number, machine in enumerate(comparison.machines, 1):
            row = comparison.row(machine, recipe)
            if row is None:
                continue
            first = first or row
            speed = row.examples_per_second / first.examples_per_second
            cost = "-" if row.usd is None else dollars(row.usd)
            time = "<=" * row.at_most + format_hours(row.hours)
            figures = f"{row.step_ms:10.4g} {time:>13} {speed:6.2f}x {cost:>9}"
            lines.append(f"{name:28} {number:7} {figures}")
            name = ""
    return "\n".join(lines)
