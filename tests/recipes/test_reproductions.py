"""Every published entry has a recipe, a network, or a reason."""

import re

import pytest

from dawnbench_tf import models, recipes
from dawnbench_tf.recipe.evidence import Published, published_entries
from dawnbench_tf.recipes import reproductions
from dawnbench_tf.recipes.__main__ import Options, main
from dawnbench_tf.refusals import Refusal

TABLE = reproductions.table()


def test_every_published_entry_is_there_once():
    assert list(TABLE) == list(published_entries()) and len(TABLE) == 118
    evidence = [item for recipe in recipes.rows().values() for item in recipe.evidence]
    named = [item.entry for item in evidence if isinstance(item, Published)]
    others = reproductions.OTHERS.read_text().splitlines()[1:]
    both = named + [line.partition("\t")[0] for line in others]
    assert sorted(both) == sorted(TABLE)


def test_an_entry_has_a_recipe_a_network_or_a_reason():
    for entry, item in TABLE.items():
        assert item.recipe or item.note or (item.model and "/inference/" in entry), entry
        if item.recipe:
            recipe = recipes.get(item.recipe)
            assert (recipe.task_row.folder, recipe.model) == (entry.partition("/")[0], item.model)
        assert item.model in ("", *models.names()), entry


def test_the_network_has_the_layers_that_the_entry_names():
    for entry, item in TABLE.items():
        depth = re.search(r"ResNet[- ]?(\d+)", published_entries()[entry]["model"], re.IGNORECASE)
        if depth and item.model not in ("", "basenet"):  # a ResNet-18 by its author's count
            assert re.search(r"\d+", item.model)[0] == depth[1], entry


def test_the_commands_train_and_time():
    training = TABLE["CIFAR10/train/apple_resnet9_8v100_pytorch"]
    assert training.label == "cifar10/resnet9_apple"
    command = "dawnbench train --recipe=cifar10/resnet9_apple --data_dir=DIR --output_dir=RUN"
    assert training.commands == [command]
    inference = TABLE["CIFAR10/inference/BAIDU-USA-GAIT_BaiduNet8_1GV100_pytorch"]
    assert inference.recipe == "cifar10/baidunet8"
    assert inference.commands[1:] == ["dawnbench infer --model=RUN"]
    closed = TABLE["ImageNet/inference/AliCloud-hci_MIVT-NET-v2_1t4_HIE"]
    assert closed.label == "-" and closed.commands == [] and closed.note


def test_an_entry_is_found_by_a_part_of_its_name_and_a_typo_gets_a_hint():
    assert [item.recipe for item in reproductions.find("BASENET")] == ["cifar10/basenet"]
    with pytest.raises(Refusal, match="--entry=basnet: is in no .* name; did you mean basenet?"):
        reproductions.find("basnet")


def test_the_command_shows_what_reproduces_an_entry(capsys):
    main(Options(entry="basenet"), [])
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == "CIFAR10/train/basenet"
    assert "dawnbench train --recipe=cifar10/basenet" in "".join(lines)
