"""Checks whether this machine is ready to train; names the faults.

Put the output into a bug report.

    dawnbench doctor    # with a few steps on each device: about a minute
    dawnbench doctor --nosteps

A process of its own imports TensorFlow: if the import fails, the report says so
and goes on. Exit status: 0 ready, 1 not.
"""

import ctypes
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from ctypes.util import find_library
from dataclasses import dataclass
from importlib import import_module, metadata
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import dawnbench_tf
from dawnbench_tf import flags, machine, terminal
from dawnbench_tf.refusals import one_line, shown
from dawnbench_tf.settings import Checked, setting

__all__ = ["examine", "Finding", "Options"]

LEAST_GIB = 4  # available memory that the smallest recipes and TensorFlow need
LEAST_DISK_GIB = 2
SECONDS = 300  # for TensorFlow's import, or for some steps
ON_CPUS = ("--num_gpus=0", "--num_gpus=0 --strategy=mirrored --logical_cpus=2")
INSTRUCTIONS = ("amx_bf16", "avx512_bf16", "avx512f", "avx2")
OPTIONAL = ("ai-edge-litert", "onnxruntime", "openvino", "tf2onnx", "nvidia-ml-py", "spacy", "nltk")
_INSTALL_GPU = machine.install_command("gpu")
_FIND_CAUSE = "TensorFlow's own words: python -c 'import tensorflow as tf; "
_FIND_CAUSE += 'tf.config.list_physical_devices("GPU")\''


@dataclass(frozen=True)
class Options(Checked):
    """Flags of `dawnbench doctor`."""

    steps: bool = setting(True, "train a few steps on each kind of device of this machine")


class Finding(NamedTuple):
    """A line of the report.

    Attributes:
      name: subject of the line, e.g. "GPUs".
      text: state of the subject, e.g. "TensorFlow sees 1, ...".
      problem: a fault and its remedy, a command at the end if there is one; "": none.
      fatal: whether a problem keeps the machine from training.
    """

    name: str
    text: str
    problem: str = ""
    fatal: bool = True


def examine(steps: bool = True) -> Iterator[Finding]:
    """Checks this machine; yields one line of the report after another. Prints nothing.

    Args:
      steps: whether to train a few steps on each kind of device, which takes about a minute.
    """
    yield Finding("Python", f"{platform.python_version()}, {sys.executable}")
    home, revision = Path(dawnbench_tf.__file__).parent, machine.git_revision()
    revision = revision[:12] + revision[40:]  # as "-dirty"
    yield Finding("dawnbench_tf", f"{dawnbench_tf.__version__}, {home}, git {revision}")
    own = machine.instructions()
    sets = ", ".join(name for name in INSTRUCTIONS if name in own)
    sets = sets or f"none of {', '.join(INSTRUCTIONS)}"
    lack = "" if machine.has_bfloat16() else "no bfloat16: train on it with --precision=float32"
    yield Finding("CPU", f"{machine.cpus()} x {machine.cpu_name()}: {sets}", lack, fatal=False)
    free = machine.free_gib()
    lack = f"below {LEAST_GIB} GiB: close other programs" if free < LEAST_GIB else ""
    yield Finding("memory", f"{machine.memory_gb():.1f} GiB, {free:.1f} free", lack, fatal=False)
    room = shutil.disk_usage(".").free / 2**30
    lack = f"below {LEAST_DISK_GIB} GiB: delete files" if room < LEAST_DISK_GIB else ""
    lack = lack if os.access(".", os.W_OK) else "can't be written: commands need --output_dir"
    yield Finding("disk", f"{room:.1f} GiB free in this folder", lack, fatal=False)

    code = "from dawnbench_tf import doctor; doctor.print_probe()"
    output, error = _run([*machine.python(), "-c", code])
    lines = [line for line in output.splitlines() if line.startswith("{")]
    error = error or "its import failed" * (not lines)
    probe = {} if error else json.loads(lines[-1])
    installed = _versions("tensorflow", "tensorflow-cpu", "tensorflow-tpu", "tf-nightly")
    if error:
        fix = "install it anew: pip install --force-reinstall tensorflow"
        fix = fix if installed else machine.install_command("harness")
        fix = machine.INSTALL_TPU if "tensorflow-tpu" in " ".join(installed) else fix
        fix = "mend that" if error.startswith(("FileNotFoundError", "PermissionError")) else fix
        start = "its import " * error.startswith(("did not end", "was ended"))
        yield Finding("TensorFlow", ", ".join(installed) or "none", f"{start}{error}; {fix}")
    else:
        build = f"built for CUDA {probe['cuda']}, cuDNN {probe['cudnn']}"
        build = build if probe["cuda build"] else "built without CUDA"
        loaded = ", ".join(" ".join(item) for item in probe["loaded"].items())
        one_dnn = "off" if os.environ.get("TF_ENABLE_ONEDNN_OPTS") == "0" else "on"
        build += f", has loaded {loaded}" if loaded else ""
        yield Finding("TensorFlow", f"{probe['version']}, {build}; oneDNN {one_dnn}")
    lack = f"the commands train with tf-keras: {machine.install_command('harness')}"
    keras = ", ".join(_versions("tf-keras", "keras"))
    lack = probe.get("keras", "") if "tf-keras" in keras else lack
    yield Finding("Keras", keras or "none", lack)

    yield _gpus(probe)
    files = [*Path("/dev").glob("accel*"), *Path("/dev/vfio").glob("[0-9]*")]
    library, tpu = _versions("libtpu", "tensorflow-tpu"), os.environ.get("TPU_ACCELERATOR_TYPE", "")
    tpu = tpu or ("a TPU" if library and files else "")
    lack = machine.INSTALL_TPU if tpu and not library else ""
    text = f"{tpu}, {', '.join(library) or 'no libtpu'}" if tpu else "none"
    yield Finding("TPUs", text, lack)
    yield Finding("optional packages", ", ".join(_versions(*OPTIONAL)) or "none")
    if steps and probe:
        kinds, count = [*ON_CPUS], len(probe["gpus"])
        if count:
            kinds.append("--strategy=one_device")
        if count > 1:
            kinds.append(f"--strategy=mirrored --batch_size={max(1, 64 // count) * count}")
        if tpu:
            kinds.append("--strategy=tpu --batch_size=512")
        yield from map(_some_steps, kinds)


def _versions(*packages: str) -> list[str]:
    """Returns "name version" of those packages that are installed."""
    versions = []
    for name in packages:
        with suppress(metadata.PackageNotFoundError):
            versions.append(f"{name} {metadata.version(name)}")
    return versions


def _run(command: list[str], seconds: float = SECONDS) -> tuple[str, str]:
    """Runs a command; returns its output, and the reason if it failed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except OSError:
        return "", ""  # it is not there
    except subprocess.TimeoutExpired:
        return "", f"did not end within {seconds} s"
    if done.returncode < 0:
        return "", f"was ended by signal {-done.returncode}"
    lines = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()
    return done.stdout, one_line(lines[-1]) if done.returncode else ""


def print_probe() -> None:
    """Prints versions and GPUs of TensorFlow, as JSON, and the GPUs that compute wrong values."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    build = tf.sysconfig.get_build_info()
    gpus = tf.config.list_physical_devices("GPU")
    details = tf.config.experimental.get_device_details
    try:
        names = [device.name for device in tf.config.list_logical_devices("GPU")]
        wrong = [fault for fault in map(wrong_values, names) if fault]
    except (tf.errors.OpError, RuntimeError) as error:
        wrong = [f"TensorFlow can't use the GPUs: {one_line(error, 120)}"]
    facts = {
        "version": tf.__version__,
        "cuda": build.get("cuda_version", ""),
        "cudnn": build.get("cudnn_version", ""),
        "cuda build": bool(build.get("is_cuda_build")),
        "gpus": [details(gpu).get("device_name", "GPU") for gpu in gpus],
        "wrong": wrong,
        "loaded": {},
        "keras": "",
    }
    try:
        import_module("tf_keras")
    except (Exception, SystemExit) as error:
        facts["keras"] = one_line(f"tf_keras: its import raised {type(error).__name__}: {error}")
    with suppress(OSError, AttributeError):  # after the convolution, which loads cuDNN
        facts["loaded"] = _loaded(Path("/proc/self/maps").read_text()) if gpus else {}
    print("\n" + json.dumps(facts))


def wrong_values(device: str) -> str:
    """Computes a product and a convolution of ones on a device, e.g. "GPU:0"; returns the fault."""
    # With a CUDA library of another version TensorFlow lists a GPU, and every product on it is 0.
    import tensorflow as tf

    try:
        with tf.device(device):
            product = tf.matmul(tf.ones([64, 64]), tf.ones([64, 64]))
            convolution = tf.nn.conv2d(tf.ones([1, 8, 8, 4]), tf.ones([3, 3, 4, 4]), 1, "VALID")
        results = (("a matrix product", product, 64), ("a convolution", convolution, 36))
        for name, tensor, right in results:
            values = tensor.numpy()
            if (values != right).any():
                wrong = f"{values.min():g} to {values.max():g}"
                return f"{name} on {device} is {wrong}, should be {right}"
    except tf.errors.OpError as error:
        return f"{device} can't compute: {one_line(error.message, 120)}"
    return ""


def _loaded(maps: str) -> dict[str, str]:
    """Returns the versions of CUDA's runtime and cuDNN among a process's /proc/PID/maps."""
    versions = {}
    if runtime := re.search(r"/.*/libcudart\.so\S*", maps):
        number = ctypes.c_int()
        ctypes.CDLL(runtime[0]).cudaRuntimeGetVersion(ctypes.byref(number))
        versions["CUDA"] = f"{number.value // 1000}.{number.value % 1000 // 10}"
    if library := re.search(r"/.*/libcudnn\.so\S*", maps):
        version = ctypes.CDLL(library[0]).cudnnGetVersion()  # 8907 is 8.9.7, 91900 is 9.19.0
        major = 10_000 if version >= 90_000 else 1000
        versions["cuDNN"] = f"{version // major}.{version % major // 100}.{version % 100}"
    return versions


def _gpus(probe: dict[str, Any]) -> Finding:
    """Compares TensorFlow's GPUs with the driver's, and finds the cause if it has less."""
    # A GPU that CUDA_VISIBLE_DEVICES hides is no fault.
    smi, error = _run(["nvidia-smi", "-q"], 60)
    names = re.findall(r"Product Name\s*: *(.*\S)", smi)
    driver, cuda = (
        (re.findall(rf"{name} Version\s*: *(\d\S*)", smi) or [""])[0] for name in ("Driver", "CUDA")
    )
    gpus, visible = probe.get("gpus", []), os.environ.get("CUDA_VISIBLE_DEVICES")
    text = f"the driver ({driver}) sees {len(names)}"
    text = text if driver else f"no NVIDIA driver answers {error}".strip()
    models = ", ".join(sorted({*(gpus or names)}))
    text = f"TensorFlow sees {len(gpus)}, {text}{models and f': {models}'}"
    count = len(names)
    if visible is not None:
        shows = takewhile(lambda name: name not in ("", "-1"), visible.split(","))
        count = min(count, len([*shows]))
    problem, fatal = "", True
    if probe.get("wrong"):
        problem = "; ".join(probe["wrong"])
        if "should be" in problem:
            problem += f"; the CUDA libraries should be those it was built for: {_INSTALL_GPU}"
    elif not probe or len(gpus) >= len(names):
        pass
    elif len(gpus) >= count:
        problem, fatal = f"CUDA_VISIBLE_DEVICES={shown(visible)} hides the others", False
    elif gpus:
        problem, fatal = f"it sees {len(gpus)} of {count}; {_FIND_CAUSE}", False
    elif not probe["cuda build"]:
        problem = f"this TensorFlow is built without CUDA: {_INSTALL_GPU}"
    elif cuda and int(cuda.split(".")[0]) < int(probe["cuda"].split(".")[0]):
        problem = f"the driver runs CUDA {cuda} at most, TensorFlow needs {probe['cuda']}: "
        problem += "install a newer driver"
    elif not _versions("nvidia-cudnn-cu12") and not find_library("cudnn"):
        problem = f"the CUDA libraries are not installed: {_INSTALL_GPU}"
    else:
        problem = _FIND_CAUSE
    return Finding("GPUs", text, problem, fatal)


def _some_steps(strategy: str) -> Finding:
    """Trains steps of the smallest recipe in a new process, with these flags."""
    name = f"steps {strategy}"
    with tempfile.TemporaryDirectory() as folder:
        own = ["--recipe=digits/resnet8", "--max_steps=8", f"--output_dir={folder}/trial"]
        _, error = _run([*machine.python(), "-m", "dawnbench_tf.train", *own, *strategy.split()])
        file = Path(folder) / "trial/trial.json"
        if error or not file.is_file():
            return Finding(name, "none", error or "ended without a result")
        trial = json.loads(file.read_text())
    return Finding(name, f"{1e3 * trial['secondsPerStep']:.3g} ms a step")


def main(options: Options, _: list[str]) -> int:
    fatal = False
    terminal.status("looking at this machine")
    for name, text, problem, is_fatal in examine(options.steps):
        # A command to copy stays whole, on a line of its own.
        cause, *command = re.split(r" *(?=\b(?:pip install|python -c) )", problem, maxsplit=1)
        terminal.say(terminal.wrapped(f"{name}: {text}", indent=4), sys.stdout)
        if problem:
            mark = "not ready" if is_fatal else "note"
            terminal.say("  " + terminal.wrapped(f"{mark}: {cause}", 78, 4), sys.stdout)
        if command:
            terminal.say(f"    {command[0]}", sys.stdout)
        fatal |= bool(problem) and is_fatal
    terminal.say("not ready; see above" if fatal else "ready", sys.stdout)
    return int(fatal)


if __name__ == "__main__":
    flags.run(main, Options)
