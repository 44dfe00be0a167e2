"""Reproductions of the published entries: a recipe, a network, or the reason why neither can.

The recipes' `Published` evidence names the training entries. other_entries.tsv has the others.
"""

import csv
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from dawnbench_tf import recipes
from dawnbench_tf.recipe.evidence import Published, published_entries
from dawnbench_tf.refusals import refuse, suggestion
from dawnbench_tf.tasks import RANKED

__all__ = ["Reproduction", "table", "find", "description"]

OTHERS = Path(__file__).with_name("other_entries.tsv")


class Reproduction(NamedTuple):
    """A recipe or network that reproduces a published entry.

    Attributes:
      entry: path of the entry, e.g. "CIFAR10/train/basenet".
      recipe: name of the recipe that trains its network as its authors did; "" if there is none.
      model: name of the network in the catalogue; "" if it is not there.
      note: what differs, or why there is no recipe or no network; "" if nothing does.
    """

    entry: str
    recipe: str
    model: str
    note: str

    @property
    def label(self) -> str:
        """The recipe, else the network, else "-"."""
        return self.recipe or self.model or "-"

    @property
    def commands(self) -> list[str]:
        """The commands that reproduce the entry; none without a recipe."""
        if not self.recipe:
            return []
        commands = [f"dawnbench train --recipe={self.recipe} --data_dir=DIR --output_dir=RUN"]
        return commands + ["dawnbench infer --model=RUN"] * ("/inference/" in self.entry)


def table() -> Mapping[str, Reproduction]:
    """Returns path of an entry -> what reproduces it, for all published entries."""
    rows = recipes.rows().values()
    trained = {
        item.entry: Reproduction(item.entry, recipe.name, recipe.model, item.note)
        for recipe in rows
        for item in recipe.evidence
        if isinstance(item, Published)
    }
    others = {}
    with open(OTHERS, encoding="utf-8", newline="") as file:
        for other in csv.DictReader(file, delimiter="\t"):
            entry, model = other["entry"], other["model"]
            task = RANKED[entry.partition("/")[0]].name
            names = [row.name for row in rows if row.model == model and row.task == task]
            # An inference entry has the first recipe that trains its network.
            recipe = names[0] if names and "/inference/" in entry else ""
            others[entry] = Reproduction(entry, recipe, model, other["note"])
    both = trained | others
    return MappingProxyType({entry: both[entry] for entry in published_entries() if entry in both})


def find(text: str) -> list[Reproduction]:
    """Returns the entries whose path contains a text, in any case.

    Args:
      text: part of a path, as "apple_resnet9".

    Raises:
      Refusal: no path contains it.
    """
    matches = [item for entry, item in table().items() if text.lower() in entry.lower()]
    if not matches:
        names = (entry.rpartition("/")[2] for entry in published_entries())
        hint = suggestion(text, names, "", cutoff=0.4)
        refuse("entry", text, f"is in no published entry's name{'; ' * bool(hint)}{hint}")
    return matches


def description(item: Reproduction) -> str:
    """Returns an entry's facts, its commands and the note, as `dawnbench recipes --entry` prints.

    Args:
      item: the entry.
    """
    facts = published_entries()[item.entry]
    lines = [item.entry, f"  {facts['model']} by {facts['author']}, {facts['hardware']}"]
    if item.model:
        lines.append(f"  network: {item.model}")
    lines += [f"  {command}" for command in item.commands]
    return "\n".join(lines + [f"  {item.note}"] * bool(item.note))
