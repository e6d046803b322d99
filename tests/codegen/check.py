#!/usr/bin/env python3
"""Checks the machine code of the float kernels: each backend's inner loops use the vectors they should, fuse multiply and
add where the backend can, and call nothing. The loops over heads that share a row keep everything in registers, but for
cos and sin of blocks that have more of them than there are registers: these may be read from the stack, to which nothing
is written. Loops with a tail whose heads have a row each load so much more that an address may lie there, too. With
--addresses-on-stack that may be so in all loops with a tail: clang reloads a stride or a pointer in some. And a call
of rotate neither clears nor copies its rotation_job and head_grid by a string instruction, nor does rotate_heads pass its
head_grid on through vectors: loads wider than the stores before them wait. Either takes longer than a head.

usage: check.py --compiler g++ --include include --work build/codegen
"""

import argparse
import dataclasses
import os
import re
import subprocess
import sys

BACKENDS = {  # namespace: vector registers that its widest loops use, those that it must not know, fused arithmetic
    "baseline": ("xmm", ("ymm", "zmm"), False),
    "avx2": ("ymm", ("zmm",), True),
    "avx512": ("zmm", (), True),
}
PAIRINGS = ("split_half", "interleaved")
FUSED = re.compile(r"^vfn?m(add|sub|addsub|subadd)\d*ps$")
MULTIPLY = re.compile(r"^v?mulps$")
ADD = re.compile(r"^v?(add|sub|addsub)ps$")
JUMP = re.compile(r"^(j[a-z]+|loop[a-z]*)$")


@dataclasses.dataclass
class Instruction:
    address: int
    name: str
    operands: str

    @property
    def target(self):
        found = re.match(r"([0-9a-f]+)\b", self.operands)
        return int(found.group(1), 16) if JUMP.match(self.name) and found else None

    @property
    def falls_through(self):
        return not re.match(r"^(jmp|ret|ud2|hlt)", self.name)


def disassemble(compiler, include, work, pairing):
    """{demangled function name: [Instruction]}"""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernels.cpp")
    os.makedirs(work, exist_ok=True)
    binary = os.path.join(work, f"{pairing}.o")
    subprocess.run([compiler, "-std=c++17", "-O2", f"-DPAIRING={pairing}", "-I", include, "-c", source, "-o", binary],
                   check=True)
    listing = subprocess.run(["objdump", "-d", "-C", "--no-show-raw-insn", binary], check=True, capture_output=True,
                             text=True).stdout
    functions, current = {}, None
    for line in listing.splitlines():
        if head := re.match(r"^[0-9a-f]+ <(.*)>:$", line):
            current = functions.setdefault(head.group(1), [])
        elif (code := re.match(r"^ *([0-9a-f]+):\t(.*)$", line)) and current is not None:
            # Prefixes stand before the name: "data16 cs nopw ...", "notrack jmp ...".
            words = re.sub(r"^((data16|cs|ds|notrack|bnd|rep|repz|repnz|lock) +)+", "", code.group(2)).split(None, 1)
            if words:
                current.append(Instruction(int(code.group(1), 16), words[0], words[1] if len(words) > 1 else ""))
    return functions


def successors(code):
    """For each instruction, the indices of those that may follow it inside the function."""
    index = {instruction.address: i for i, instruction in enumerate(code)}
    following = []
    for i, instruction in enumerate(code):
        next_ones = [i + 1] if instruction.falls_through and i + 1 < len(code) else []
        if instruction.target in index:
            next_ones.append(index[instruction.target])
        following.append(next_ones)
    return following


def dominators(following):
    """Immediate dominators of all instructions that the first one reaches (Cooper, Harvey and Kennedy's algorithm)."""
    order, seen, stack = [], {0}, [(0, iter(following[0]))]
    while stack:
        node, rest = stack[-1]
        for successor in rest:
            if successor not in seen:
                seen.add(successor)
                stack.append((successor, iter(following[successor])))
                break
        else:
            order.append(node)
            stack.pop()
    number = {node: i for i, node in enumerate(order)}
    preceding = {node: [] for node in order}
    for node in order:
        for successor in following[node]:
            preceding[successor].append(node)
    parent = {0: 0}
    changed = True
    while changed:
        changed = False
        for node in reversed(order[:-1]):
            known = [p for p in preceding[node] if p in parent]
            new = known[0]
            for other in known[1:]:
                while new != other:
                    if number[new] < number[other]:
                        new = parent[new]
                    else:
                        other = parent[other]
            if parent.get(node) != new:
                parent[node] = new
                changed = True
    return parent, preceding


def innermost_loops(code):
    """Sets of instruction indices: the loops that contain no other loop. Loops that share a head are one."""
    following = successors(code)
    parent, preceding = dominators(following)

    def dominates(a, b):
        while b > 0 and b != a:
            b = parent[b]
        return a == b

    loops = {}
    for node in parent:
        for head in following[node]:
            if dominates(head, node):  # node jumps back
                body, todo = loops.setdefault(head, {head}), [node]
                while todo:
                    member = todo.pop()
                    if member not in body:
                        body.add(member)
                        todo += preceding[member]
    bodies = list(loops.values())
    return [body for body in bodies if not any(other < body for other in bodies)]


def frame_registers(code):
    """rbp is an ordinary register where the function did not make it the frame's."""
    frame = any(i.name.startswith("mov") and re.match(r"%rsp,\s*%rbp$", i.operands) for i in code)
    return ("%rsp", "%rbp") if frame else ("%rsp",)


def touches_stack(instruction, frame):
    if re.match(r"^(push|pop)", instruction.name):
        return True
    addressed = re.findall(r"\(([^)]*)\)", instruction.operands)
    return instruction.name != "lea" and any(register in address for address in addressed for register in frame)


def vectors(instruction):
    return re.search(r"%[xyz]mm", instruction.operands) is not None


def rotates(body):
    """Products and sums of packed floats: a loop over heads. Loops that only copy or scale rows have no sums."""
    names = [instruction.name for instruction in body]
    return any(map(FUSED.match, names)) or (any(map(MULTIPLY.match, names)) and any(map(ADD.match, names)))


def on_stack(instruction, frame):
    """What of an instruction lies on the stack: None, a "factor" that is only read, an "address" or another "vector"."""
    if not touches_stack(instruction, frame):
        return None
    if not vectors(instruction):
        return "address"
    written = instruction.operands.endswith(")")  # the last operand is where the result goes
    return "vector" if written else "factor"


def check_function(code, backend, may_lie_on_stack, complain):
    """The number of products in registers of full width in the function's largest loop over heads."""
    width, forbidden, fused = BACKENDS[backend]
    for register in forbidden:
        if any(f"%{register}" in instruction.operands for instruction in code):
            complain(f"uses {register} registers")
    frame = frame_registers(code)
    for i in code:  # the region of avx512 has instructions that not every processor with AVX-512 has
        if re.match(r"^v(cvtn|dp)\w*bf16", i.name):
            complain(f"uses {i.name} for floats")
    most = 0
    for loop in innermost_loops(code):
        body = [code[i] for i in sorted(loop)]
        if not rotates(body):
            continue
        products = [i for i in body if FUSED.match(i.name) or MULTIPLY.match(i.name)]
        of_full_width = sum(f"%{width}" in i.operands for i in products)
        most = max(most, of_full_width)
        where = f"loop of {len(body)} instructions, {len(products)} products, at {body[0].address:x}"
        if fused and of_full_width and any(ADD.match(i.name) for i in body):
            complain(f"{where}: adds without fusing")
        for instruction in body:
            lies = on_stack(instruction, frame)
            if instruction.name.startswith("call") or (lies and lies not in may_lie_on_stack):
                complain(f"{where}: {instruction.name} {instruction.operands}")
    return most


def check_backend(functions, backend, label, addresses_on_stack):
    """Prints what is wrong, and returns how much of it."""
    own = {name: code for name, code in functions.items() if re.search(rf"\bdetail::{backend}::\w+<", name)}
    complaints, most = [], 0
    for name, code in own.items():
        short = re.search(rf"{backend}::(\w+)", name).group(1)
        may_lie_on_stack = {"factor"}
        if re.search(r"::rotate_parts<true", name):
            may_lie_on_stack |= {"address", "vector"}
        elif addresses_on_stack and "rotate_parts<" in name:
            may_lie_on_stack.add("address")
        complain = lambda text: complaints.append(f"{short}: {text}")
        most = max(most, check_function(code, backend, may_lie_on_stack, complain))
    width = BACKENDS[backend][0]
    if most == 0:
        complaints.append(f"no loop over heads multiplies in {width} registers")
    instructions = sum(map(len, own.values()))
    print(f"{label}: {instructions} instructions; the largest loop over heads has {most} products in {width} registers")
    for complaint in complaints:
        print(f"  {complaint}")
    return len(complaints)


def check_calls(functions, label):
    """How many functions fill or copy the description of a call otherwise than field by field; complains about each."""
    failures, calls, kernels = 0, 0, 0

    def complain(name, text):
        nonlocal failures
        failures += 1
        print(f"  {name[:100]}: {text}")

    for name, code in functions.items():
        if any(re.match(r"^(stos|movs)[bwlq]?$", instruction.name) and "%es:(" in instruction.operands
               for instruction in code):
            complain(name, "clears or copies by a string instruction")
        if "run_any_rotation" in name:
            calls += 1
            if any(re.search("memset|memcpy", instruction.operands) for instruction in code):
                complain(name, "calls memset or memcpy")
        if "rotate_heads<" in name:
            kernels += 1
            if any(vectors(instruction) for instruction in code):
                complain(name, "copies the head_grid by vectors")
    if calls == 0 or kernels == 0:
        complain(label, "found no call of rotate, or no rotate_heads")
    print(f"calls {label}: {'FAILED' if failures else 'fill their descriptions field by field'}")
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--addresses-on-stack", action="store_true")
    arguments = parser.parse_args()
    failures = 0
    for pairing in PAIRINGS:
        functions = disassemble(arguments.compiler, arguments.include, arguments.work, pairing)
        for backend in BACKENDS:
            failures += check_backend(functions, backend, f"{backend} {pairing}", arguments.addresses_on_stack)
        failures += check_calls(functions, pairing)
    sys.exit(failures != 0)


if __name__ == "__main__":
    main()
