"""Lists the verified models: parameters, accuracy, source, recipes.

    dawnbench models                # all
    dawnbench models 'resnet50*'    # those whose names match
    dawnbench models --csv > models.csv

Exit status: 0; 1 if no model matches.
"""

import csv
import sys
from dataclasses import dataclass

from dawnbench_tf import flags, models, recipes, terminal
from dawnbench_tf.refusals import Refusal, shown, suggestion
from dawnbench_tf.settings import setting

HEAD = "model,parameters,multiply-adds,top-1,source,block,shortcut,activation,top-1 source,recipes"


@dataclass(frozen=True)
class Options:
    """Flags of `dawnbench models`."""

    csv: bool = setting(False, "print CSV, in full width")


def main(options: Options, patterns: list[str]) -> None:
    """Prints a row for each model that matches a pattern; of all models without one."""
    chosen: list[str] = []
    for text in patterns or ["*"]:
        names = models.names(text)
        if not names:
            hint = f"did you mean '{text}*'?"
            if not models.names(f"{text}*"):
                hint = suggestion(text, models.names(), "without it all are listed")
            raise Refusal(f"{shown(text)}: matches no model of the catalogue; {hint}")
        chosen += [name for name in names if name not in chosen]
    table: list[tuple[object, ...]] = [tuple(HEAD.split(","))]
    for variant in map(models.get, chosen):
        used = [name for name, recipe in recipes.rows().items() if recipe.model == variant.name]
        figures = (variant.parameters or "", variant.multiply_adds or "", variant.top1 or "")
        words = (variant.block, variant.shortcut, variant.activation)
        texts = (variant.source, *words, variant.top1_source, " ".join(used))
        table.append((variant.name, *figures, *texts))
    if options.csv:
        csv.writer(sys.stdout).writerows(table)
        return
    rows = [[f"{cell:,}" if isinstance(cell, int) else f"{cell}" for cell in row] for row in table]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    width = terminal.columns(sys.stdout) if sys.stdout.isatty() else 1000
    for row in rows:
        cells = [
            f"{cell:{'>' if n in (1, 2, 3) else '<'}{widths[n]}}" for n, cell in enumerate(row)
        ]
        print(terminal.cut("  ".join(cells).rstrip(), width))


if __name__ == "__main__":
    flags.run(main, Options, files=True)
