#!/usr/bin/env python3
"""Writes the node tests of RotaryEmbedding that the installed `onnx` package carries, as JSON, for onnx_test.cpp.

    onnx_node_tests.py <file>

Prints why, and writes a file without tests, where the package is missing or older than the operator (onnx 1.18).
"""

import json
import sys
import warnings


def node_tests():
    import onnx
    import onnx.backend.test.loader as loader

    warnings.simplefilter("ignore")  # the package computes the data of all operators, overflows among them
    cases = {case.name: case for case in loader.load_model_tests(kind="node")}
    tests = []
    for name, case in sorted(cases.items()):
        if "rotary_embedding" not in name or name.endswith("_expanded"):
            continue
        model = case.model if case.model is not None else onnx.load(f"{case.model_dir}/model.onnx")
        node = model.graph.node[0]
        if node.op_type != "RotaryEmbedding":
            continue
        inputs, outputs = case.data_sets[0] if case.data_sets else saved(case.model_dir)
        tensors = {slot: tensor(value) for slot, value in zip(("x", "cos", "sin", "position_ids"), inputs)}
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        tests.append({"name": name, "attributes": attributes, "output": tensor(outputs[0]), **tensors})
    return onnx.__version__, tests


def saved(directory):
    """Releases that carry the data as files."""
    import glob

    import onnx
    from onnx import numpy_helper

    def read(kind):
        files = sorted(glob.glob(f"{directory}/test_data_set_0/{kind}_*.pb"))
        return [numpy_helper.to_array(onnx.load_tensor(file)) for file in files]

    return read("input"), read("output")


def tensor(array):
    return {"type": str(array.dtype), "shape": list(array.shape), "values": array.ravel().tolist()}


def main():
    try:
        version, tests = node_tests()
        reason = "" if tests else f"onnx {version} has no tests of RotaryEmbedding"
    except ImportError as missing:
        version, tests, reason = "", [], str(missing)
    if reason:
        print(f"no node tests of ONNX: {reason}")
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump({"onnx": version, "reason": reason, "tests": tests}, file)


if __name__ == "__main__":
    main()
