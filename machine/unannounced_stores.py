"""Announces, in the assembly of a simulated program, the stores that the compiler does not announce.

    lines = announce_stores(lines)

With -fsanitize=thread GCC calls the machine in front of a store. It leaves out a structure that a call returns in
registers, a structure that a function returns directly into memory, and its own clearing and copying. The machine would
not see these stores, and an abort would not undo them.

Here each function is followed line by line. A call of the machine announces the stores behind it, as many bytes as its
name says. Any other call and any label end that. In front of a store that is not announced comes a call that keeps all
registers and flags (elidex_sim_unannounced_write in hooks.cpp). Some stores behind a label are announced twice, which
has no effect but its time, a hit in the first-level cache.

Not announced: stores through %rsp, and through %rbp where it points to the frame, because the machine restores the
stack itself; thread-local variables, whose address cannot be computed in one instruction; vector stores with a mask;
and stores in assembly of the program's own, which the machine does not see anyway.
"""

import re

WRITES = re.compile(r"__tsan_(?:unaligned_|volatile_)?write(\d+)|__tsan_vptr_update|__tsan_write_range")
READS = re.compile(r"__tsan_(unaligned_|volatile_)?read|__tsan_vptr_read")
LABEL = re.compile(r"([.\w$]+):")
# Labels in the middle of a block, at which nothing arrives.
NO_TARGET = re.compile(r"\.L(EH[BE]|FB|FE|VL|BB|BE|COLD|HOT|SIM)\w*:")
_OPERANDS = re.compile(r"(?:[^,(]|\([^)]*\))+")
_SIZES = {"b": 1, "w": 2, "l": 4, "q": 8}
_SCALAR = re.compile(r"v?mov(ss|d)\Z|v?mov(sd|[lh]p[sd]|q)\Z|v?extractps\Z")
_WHOLE = re.compile(r"v?mov([au]p[sd]|dq[au]\d*|nt(dq|p[sd]))\Z")
_INTEGER = re.compile(r"(?:mov|movnti|add|adc|sub|sbb|and|or|xor|neg|not|inc|dec|s[ah][lr]|ro[lr]|sh[lr]d|xchg)([bwlq])\Z")
_OTHERS = {"movnti": 8, "pextrb": 1, "pextrw": 2, "pextrd": 4, "pextrq": 8, "extractf128": 16, "extracti128": 16}
_FLOATS = re.compile(r"f(?:i?stp?)(s|l|ll|t|)\Z")


def stored_bytes(name, operands):
    """How many bytes an instruction stores at its last operand; 0: it stores nothing, or nowhere in memory."""
    if not operands or "(" not in operands[-1] or operands[-1].startswith("*") or "{" in operands[-1]:
        return 0
    if plain := _INTEGER.match(name):
        if not (name == "movq" and operands[0].startswith(("%xmm", "%mm"))):
            return _SIZES[plain.group(1)]
    if name.startswith("set"):
        return 1
    if scalar := _SCALAR.match(name):
        return 8 if scalar.group(2) else 4
    if _WHOLE.match(name):
        return {"x": 16, "y": 32, "z": 64}.get(operands[0][1:2], 16)
    if floating := _FLOATS.match(name):
        return {"s": 4, "l": 8, "ll": 8, "t": 16, "": 2}[floating.group(1)]
    return _OTHERS.get(name.removeprefix("v"), 0)


def _announcement(operand, bytes_, leaf):
    # A function without calls may keep data below its stack pointer.
    down, up = ("\tleaq\t-128(%rsp), %rsp\n", "\tleaq\t128(%rsp), %rsp\n") if leaf else ("", "")
    # Not through the linker's table of procedures, which uses a register.
    return (f"{down}\tpushq\t%rdi\n\tleaq\t{operand}, %rdi\n"
            f"\tcall\t*elidex_sim_unannounced_write{bytes_}@GOTPCREL(%rip)\n\tpopq\t%rdi\n{up}")


def _functions_with_calls(lines):
    name, found = "", set()
    for line in lines:
        if (label := LABEL.match(line)) and not line.startswith("."):
            name = label.group(1).split(".cold")[0]
        elif line.startswith("\tcall\t"):
            found.add(name)
    return found


def announce_stores(lines):
    """The lines with the announcements added."""
    calling = _functions_with_calls(lines)
    out, name, framed, in_asm, announced = [], "", False, False, 0
    for line in lines:
        if line.startswith("#"):
            in_asm = line.startswith("#APP") or (in_asm and not line.startswith("#NO_APP"))
        elif label := LABEL.match(line):
            if not line.startswith("."):
                function = label.group(1).split(".cold")[0]
                framed = framed and function == name
                name = function
            if not NO_TARGET.match(line):
                announced = 0
        elif line.startswith("\t") and not line.startswith("\t.") and not in_asm:
            word, _, text = line.strip().partition("\t")
            if word == "call":
                if write := WRITES.match(text):
                    announced += int(write.group(1) or 8) if "range" not in write.group() else 1 << 40
                elif not READS.match(text):
                    announced = 0
            elif line == "\tmovq\t%rsp, %rbp\n":
                framed = True
            else:
                operands = [operand.strip() for operand in _OPERANDS.findall(text)]
                bytes_ = stored_bytes(word, operands)
                if bytes_ and not re.search(r"%rsp|%[fg]s|elidex_sim_" + ("|%rbp" if framed else ""), operands[-1]):
                    if announced <= 0:
                        out.append(_announcement(operands[-1], bytes_, name not in calling))
                    announced = max(announced - bytes_, 0)
        out.append(line)
    return out
