"""Checks whether this machine is ready to train; names the faults.

Put the output into a bug report.

    dawnbench doctor               # with a few training steps on each device: about a minute
    dawnbench doctor --nosteps

Exit status: 0 ready, 1 not. A process of its own imports TensorFlow: if the import fails, the
report says so and goes on.
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
from importlib import metadata
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import dawnbench_tf
from dawnbench_tf import flags, machine, terminal
from dawnbench_tf.refusals import Refusal, one_line, shown
from dawnbench_tf.settings import check, setting

__all__ = ["examine", "Finding", "Options"]

LEAST_GIB = 4  # available memory that the smallest recipes and TensorFlow need
LEAST_DISK_GIB = 2
SECONDS = 300  # for TensorFlow's import, or for some steps
INSTRUCTIONS = ("amx_bf16", "avx512_bf16", "avx512f", "avx2")
OPTIONAL = ("ai-edge-litert", "onnxruntime", "openvino", "tf2onnx", "nvidia-ml-py", "spacy", "nltk")
NVIDIA = "0x10de"
DISPLAY = "0x03"  # class of graphics cards on the PCI bus
_REINSTALL = "install it anew: pip install --force-reinstall tensorflow"
_INSTALL_GPU = machine.install_command("gpu")
_FIND_CAUSE = "TensorFlow's own words: python -c 'import tensorflow as tf; "
_FIND_CAUSE += 'tf.config.list_physical_devices("GPU")\''
_PROBE = "from dawnbench_tf import doctor; doctor.print_probe()"


@dataclass(frozen=True)
class Options:
    """Flags of `dawnbench doctor`."""

    steps: bool = setting(True, "train a few steps on each kind of device of this machine")

    def __post_init__(self) -> None:
        check(self)


class Finding(NamedTuple):
    """A line of the report.

    Attributes:
      name: subject of the line, e.g. "GPUs".
      text: state of the subject, e.g. "TensorFlow sees 1, ...".
      problem: a fault and its remedy; "": none.
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
    yield from _machine()
    probe = _probe()
    yield _tensorflow(probe)
    yield _keras()
    drivers = _driver_gpus()
    gpus = probe.get("gpus", [])
    yield Finding("GPUs", _gpus(drivers, gpus), *_gpu_problem(drivers, probe))
    tpus = _tpus()
    yield tpus
    yield Finding("optional packages", ", ".join(_versions(OPTIONAL)) or "none")
    if steps and "version" in probe:
        yield from map(_some_steps, _strategies(len(gpus), tpus.text != "none"))


def _machine() -> Iterator[Finding]:
    """Yields Python, package, processor, memory and disk."""
    yield Finding("Python", f"{platform.python_version()}, {sys.executable}")
    home = Path(dawnbench_tf.__file__).parent
    revision = machine.git_revision()[:12]
    yield Finding("dawnbench_tf", f"{dawnbench_tf.__version__}, {home}, git {revision}")
    own = machine.instructions()
    sets = ", ".join(name for name in INSTRUCTIONS if name in own)
    sets = sets or f"none of {', '.join(INSTRUCTIONS)}"
    lack = "" if machine.has_bfloat16() else "no bfloat16: train on it with --precision=float32"
    yield Finding("CPU", f"{machine.cpus()} x {machine.cpu_name()}: {sets}", lack, fatal=False)
    free = machine.free_gib()
    lack = f"below {LEAST_GIB} GiB: close other programs" if free < LEAST_GIB else ""
    yield Finding("memory", f"{machine.memory_gb():.1f} GiB, {free:.1f} free", lack, fatal=False)
    folder = Path.cwd()
    room = shutil.disk_usage(folder).free / 2**30
    lack = f"below {LEAST_DISK_GIB} GiB: delete files" if room < LEAST_DISK_GIB else ""
    yield Finding("disk", f"{room:.1f} GiB free in {shown(str(folder))}", lack, fatal=False)


def _versions(packages: tuple[str, ...]) -> list[str]:
    """Returns "name version" of those packages that are installed."""
    versions = []
    for name in packages:
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return versions


def _probe() -> dict[str, Any]:
    """Imports TensorFlow in a new process; returns versions and GPUs, or {"error": line}."""
    done = _run([sys.executable, "-c", _PROBE], SECONDS)
    if done is None:
        return {"error": f"its import did not end within {SECONDS} s"}
    if done.returncode < 0:
        return {"error": f"its import was ended by signal {-done.returncode}"}
    if done.returncode or not done.stdout.strip():
        return {"error": _last_line(done.stderr) or "its import failed"}
    return dict(json.loads(_last_line(done.stdout)))


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
    }
    with suppress(OSError, AttributeError):  # after the convolution, which loads cuDNN
        facts["loaded"] = _loaded(Path("/proc/self/maps").read_text()) if gpus else {}
    print("\n" + json.dumps(facts))


def wrong_values(device: str) -> str:
    """Computes a matrix product and a convolution of ones on a device; returns what is wrong.

    With a CUDA library of another version TensorFlow lists a GPU, and every product on it is 0.

    Args:
      device: TensorFlow's name of it, e.g. "GPU:0".
    """
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


def _run(command: list[str], seconds: float) -> subprocess.CompletedProcess[str] | None:
    """Runs a command and captures its output; None: it is not there, or takes longer."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except (OSError, subprocess.TimeoutExpired):
        return None


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1]


def _tensorflow(probe: dict[str, Any]) -> Finding:
    """Reports TensorFlow's version and build."""
    installed = _versions(("tensorflow", "tensorflow-cpu", "tensorflow-tpu", "tf-nightly"))
    if "error" in probe:
        missing = not installed
        fix = machine.install_command("harness") if missing else _REINSTALL
        return Finding("TensorFlow", ", ".join(installed) or "none", f"{probe['error']}; {fix}")
    build = f"built for CUDA {probe['cuda']}, cuDNN {probe['cudnn']}"
    if probe["loaded"]:
        has = ", ".join(f"{name} {version}" for name, version in probe["loaded"].items())
        build += f", has loaded {has}"
    one_dnn = "off" if os.environ.get("TF_ENABLE_ONEDNN_OPTS") == "0" else "on"
    kind = build if probe["cuda build"] else "built without CUDA"
    return Finding("TensorFlow", f"{probe['version']}, {kind}; oneDNN {one_dnn}")


def _keras() -> Finding:
    """Reports tf-keras, which the commands train with, and Keras 3."""
    versions = _versions(("tf-keras", "keras"))
    lacks = not any(name.startswith("tf-keras") for name in versions)
    fix = f"{machine.install_command('harness')}; the commands train with tf-keras"
    return Finding("Keras", ", ".join(versions) or "none", fix if lacks else "")


class Driver(NamedTuple):
    """The GPUs of the NVIDIA driver, and of the PCI bus."""

    names: list[str]
    version: str  # of the driver; "": nvidia-smi does not run
    cuda: str  # newest CUDA version that it runs
    on_bus: int  # NVIDIA's graphics cards on the PCI bus; a container sees its host's
    error: str = ""  # last line of an nvidia-smi that failed


def _driver_gpus() -> Driver:
    """Asks nvidia-smi and the PCI bus; both may be missing."""
    cards = Path("/sys/bus/pci/devices").glob("*")
    on_bus = sum(
        _read(card / "vendor") == NVIDIA and _read(card / "class").startswith(DISPLAY)
        for card in cards
    )
    done = _run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], 30)
    if done is None or done.returncode:
        error = _last_line(done.stdout + done.stderr) if done else ""
        return Driver([], "", "", on_bus, one_line(error, 200))
    rows = [line.split(", ") for line in done.stdout.splitlines() if ", " in line]
    whole = _run(["nvidia-smi"], 30)
    cuda = re.search(r"CUDA Version:\s*([\d.]+)", whole.stdout if whole else "")
    version = rows[0][-1].strip() if rows else ""
    return Driver([row[0] for row in rows], version, cuda[1] if cuda else "", on_bus)


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _gpus(driver: Driver, gpus: list[str]) -> str:
    drivers = f"the driver ({driver.version}) sees {len(driver.names)}"
    drivers = drivers if driver.version else f"no NVIDIA driver answers {driver.error}".strip()
    names = f": {', '.join(sorted(set(gpus or driver.names)))}" if gpus or driver.names else ""
    return f"TensorFlow sees {len(gpus)}, {drivers}{names}"


def _gpu_problem(driver: Driver, probe: dict[str, Any]) -> tuple[str, bool]:
    """Compares the GPUs of TensorFlow with those of the driver.

    A card without a driver is no fault of training, nor is a GPU that CUDA_VISIBLE_DEVICES hides.

    Returns:
      (cause of a lower number, or of wrong values, and its remedy; whether that is a fault).
    """
    if probe.get("wrong"):
        text = "; ".join(probe["wrong"])
        right = f"; the CUDA libraries should be those it was built for: {_INSTALL_GPU}"
        return text + right * ("should be" in text), True
    count, gpus = len(driver.names), len(probe.get("gpus", []))
    if gpus >= (count or driver.on_bus) or "version" not in probe:
        return "", False
    if not count:
        cards = f"{driver.on_bus} NVIDIA cards are on the bus"
        return f"{cards}; to use them, install NVIDIA's driver, then restart", False
    setting_text = os.environ.get("CUDA_VISIBLE_DEVICES")
    expected = count if setting_text is None else min(count, _visible(setting_text))
    if gpus >= expected:
        return f"CUDA_VISIBLE_DEVICES={shown(setting_text or '')} hides the others", False
    if gpus:
        return f"it sees {gpus} of {expected}; {_FIND_CAUSE}", False
    libraries = _versions(("nvidia-cudnn-cu12",)) or find_library("cudnn")
    if not probe["cuda build"]:
        reason = "this TensorFlow is built without CUDA: " + _INSTALL_GPU
    elif driver.cuda and _major(driver.cuda) < _major(probe["cuda"]):
        reason = f"the driver runs CUDA {driver.cuda} at most, TensorFlow needs {probe['cuda']}: "
        reason += "install a newer driver"
    elif not libraries:
        reason = "the CUDA libraries are not installed: " + _INSTALL_GPU
    else:
        reason = _FIND_CAUSE
    return reason, True


def _visible(text: str) -> int:
    """Returns the number of GPUs that a value of CUDA_VISIBLE_DEVICES names."""
    return len([*takewhile(lambda name: name not in ("", "-1"), text.split(","))])


def _major(version: str) -> int:
    return int(version.partition(".")[0])


def _tpus() -> Finding:
    """Reports TPUs, by their device files and a TPU VM's environment."""
    files = [*Path("/dev").glob("accel*"), *Path("/dev/vfio").glob("[0-9]*")]
    library = _versions(("libtpu", "tensorflow-tpu"))
    name = os.environ.get("TPU_ACCELERATOR_TYPE", "")
    if not name and not (library and files):
        return Finding("TPUs", "none")
    fix = "" if library else machine.install_command("tpu")
    return Finding("TPUs", f"{name or 'a TPU'}, {', '.join(library) or 'no libtpu'}", fix)


def _strategies(gpus: int, tpu: bool) -> list[list[str]]:
    """Returns the flags of each kind of training that this machine's devices allow."""
    kinds = [["--num_gpus=0"], ["--num_gpus=0", "--strategy=mirrored", "--logical_cpus=2"]]
    if gpus:
        kinds.append(["--strategy=one_device"])
    if gpus > 1:
        kinds.append(["--strategy=mirrored", f"--batch_size={max(1, 64 // gpus) * gpus}"])
    if tpu:
        kinds.append(["--strategy=tpu", "--batch_size=512"])
    return kinds


def _some_steps(strategy: list[str]) -> Finding:
    """Trains steps of the smallest recipe in a new process."""
    name = f"steps {' '.join(strategy)}"
    with tempfile.TemporaryDirectory() as folder:
        own = ["--recipe=digits/resnet8", "--max_steps=8", f"--output_dir={folder}/trial"]
        command = [sys.executable, "-m", "dawnbench_tf.train", *own, *strategy]
        done = _run(command, SECONDS)
        if done is None:
            return Finding(name, "none", f"they did not end within {SECONDS} s")
        if done.returncode:
            last = _last_line(done.stderr) or "no reason given"
            return Finding(name, f"status {done.returncode}", one_line(last, 200))
        trial = json.loads((Path(folder) / "trial/trial.json").read_text())
    return Finding(name, f"{1e3 * trial['secondsPerStep']:.3g} ms a step")


def main(_: list[str]) -> int:
    try:
        options = flags.read(Options)
        fatal = False
        terminal.status("looking at this machine")
        for finding in examine(options.steps):
            mark = "not ready: " if finding.fatal else "note: "
            terminal.say(f"{finding.name}: {finding.text}", sys.stdout)
            if finding.problem:
                fatal |= finding.fatal
                terminal.say(f"  {mark}{finding.problem}", sys.stdout)
        terminal.say("not ready; see above" if fatal else "ready", sys.stdout)
        return int(fatal)
    except Refusal as refusal:
        terminal.exit_with(str(refusal))
    except KeyboardInterrupt:
        terminal.exit_with("interrupted", 130, at_once=True)


if __name__ == "__main__":
    flags.run(main, Options)
