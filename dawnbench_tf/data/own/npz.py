"""Arrays in an .npz file: x_train, y_train, x_test, y_test; or x, y with a validation share."""

from pathlib import Path

from dawnbench_tf import files, machine, terminal
from dawnbench_tf.data.images.splits import Splits
from dawnbench_tf.data.origin import Origin
from dawnbench_tf.data.own import arrays
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal, refuse, shown

_NAMES = ("x_train", "y_train", "x_test", "y_test")


def load(recipe: Recipe, data_dir: str, download: bool = False) -> Splits:
    """Loads the images of an .npz file, compressed or not, as Keras's own data sets name them."""
    path = Path(data_dir).expanduser()
    if not data_dir or not path.is_file():
        refuse("data_dir", data_dir, "should be the .npz file of a task of your own")
    try:
        free = machine.free_gib() * 2**30  # file, arrays and TensorFlow's copy are held at once
        content = files.read_npz(path.read_bytes(), largest=int(free / 3))
    except OSError as error:
        refuse("data_dir", data_dir, f"can't be read ({error.strerror})")
    except ValueError as error:
        refuse("data_dir", data_dir, str(error))
    whole = "x" in content and "x_test" not in content
    names = ("x", "y") if recipe.validation_share and whole else _NAMES
    if missing := [name for name in names if name not in content]:
        has = ", ".join(sorted(content)) or "nothing"
        text = "x_train, y_train, x_test, y_test; or x, y, and --validation_share"
        raise Refusal(f"{path}: lacks {', '.join(missing)}; has {has}; should have {text}")
    if unread := sorted(content.keys() - names):
        terminal.say(f"{path}: not read: {shown(', '.join(unread))}")
    splits = arrays.from_arrays([content[name] for name in names], recipe, str(path))
    return splits._replace(origin=Origin(path.name))
