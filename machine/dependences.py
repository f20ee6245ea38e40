"""Finds, in the assembly of a simulated program, the loads from which each access's address is computed.

    lines = add_dependences(lines)

The machine lets a thread run on behind a load that misses. A later access must wait only if its address needs the
awaited value. The machine sees values and addresses, but not what was computed in between. Here each function is
followed instruction by instruction: which loads have contributed to a register, a stack slot or the flags. A call of
the machine that announces an access gets a label behind it where this matters. The section elidex_sim_dependences lists
pairs of such labels: an access, and a load that its address needs.

Not followed: values that pass through memory other than the function's own stack, arguments, and what functions return.
The machine itself notices pointers that have been loaded (engine_memory.cpp).
"""

import re

SECTION = "elidex_sim_dependences"

_NAMES = {"ax": "a", "bx": "b", "cx": "c", "dx": "d", "si": "S", "di": "D", "bp": "P", "sp": "sp"}
REGISTERS = {f"{prefix}{name}": short for name, short in _NAMES.items() for prefix in ("r", "e", "")}
REGISTERS |= {name + half: _NAMES[name + "x"] for name in "abcd" for half in "lh"}
REGISTERS |= {name + "l": short for name, short in _NAMES.items() if len(name) == 2}
REGISTERS |= {f"r{n}{size}": f"r{n}" for n in range(8, 16) for size in ("", "d", "w", "b")}
REGISTERS |= {f"{kind}mm{n}": f"x{n}" for n in range(16) for kind in "xy"}

_REGISTER = re.compile(r"%(\w+)")
_STACK = re.compile(r"(-?\d*)\(%rsp\)\Z")
_FRAME = re.compile(r"(-?\d*)\(%rbp\)\Z")
_CONSTANT = re.compile(r"[^(]*[A-Za-z_.][^(]*(\(|\Z)")  # a name in front: data that the compiler knows
OPERANDS = re.compile(r"(?:[^,(]|\([^)]*\))+")
_LOADS = re.compile(r"__tsan_(unaligned_|volatile_)?read\d|__tsan_vptr_read")
_STORES = re.compile(r"__tsan_(unaligned_|volatile_)?write\d|__tsan_atomic\d+_store")
_ATOMICS = re.compile(r"__tsan_atomic\d+_(load|exchange|fetch|compare)")
_MOVES = re.compile(r"(v?mov|cvt|popcnt|[lt]zcnt|bs[fr]|v?pmovmsk|v?movmsk|v?pshuf|v?sqrt)")
_READS_FLAGS = re.compile(r"(set|cmov|adc|sbb|rcl|rcr)")
_COMPARES = re.compile(r"(cmp[bwlq]?|test[bwlq]?|bt[wlq]?|v?u?comis[sd])\Z")
_NO_EFFECT = re.compile(r"(nop|push|data16|rex64|lock|rep|mfence|pause|endbr|prefetch|ud2|hlt|leave)")
_WIDE = re.compile(r"(i?mul|i?div)[bwlq]?\Z")
_TARGET = re.compile(r"\.L\w+\Z")


def _sources(operand, framed=False):
    """The registers of an operand; a slot of the stack by its text; "load" for other memory, which was announced."""
    if operand.startswith("%"):
        name = REGISTERS.get(operand[1:])
        return (name,) if name else ()
    if operand.startswith("$") or _CONSTANT.match(operand):
        return ()
    if _STACK.match(operand) or framed and _FRAME.match(operand):
        return (operand,)
    return ("load",)


def _address(operand):
    return tuple(REGISTERS[name] for name in _REGISTER.findall(operand) if name in REGISTERS and name != "rip")


def _step(name, text, framed):
    """(targets, sources) of an instruction; None: it changes nothing."""
    operands = [part.strip() for part in OPERANDS.findall(text)] if text else []
    if not operands:
        return (("d",), ("a",)) if name in ("cqto", "cltd", "cqo", "cdq") else None
    if _NO_EFFECT.match(name) or name.startswith("j"):
        return None
    if name == "pop" or name.startswith("popq"):
        return _sources(operands[0], framed), ()
    sources = [source for operand in operands[:-1] for source in _sources(operand, framed)]
    last = operands[-1]
    into = _sources(last, framed)
    if _COMPARES.match(name):
        return ("flags",), (*sources, *into)
    if name.startswith("lea"):
        return into, _address(operands[0])
    if _WIDE.match(name) and len(operands) == 1:
        return ("a", "d", "flags"), (*into, "a", "d")
    if name.startswith("xor") or name.startswith("pxor") or name.startswith("sub"):
        if len(operands) == 2 and operands[0] == last:
            return (*into, "flags"), ()
    if _READS_FLAGS.match(name):
        sources.append("flags")
    keeps = not (_MOVES.match(name) or name.startswith("set") or len(operands) >= 3)
    if into == ("load",):  # a store, or an operation on memory
        return (("flags",), (*sources, "load")) if keeps else None
    return (into if not keeps else (*into, "flags")), (*sources, *(into if keeps else ()))


class _Function:
    """The instructions of one function, as blocks, and its accesses."""

    def __init__(self, name):
        self.name, self.framed = name, False  # framed: %rbp points to the stack
        self.blocks, self.at_label, self.sites = [], {}, []  # sites: index of the line of the call
        self.begin(None)

    def begin(self, label):
        self.block = {"steps": [], "to": [], "falls": True}
        self.blocks.append(self.block)
        if label:
            self.at_label[label] = len(self.blocks) - 1

    def add(self, line, name, text):
        steps = self.block["steps"]
        if name == "call":
            callee = text.split("@")[0]
            results = [place for kind, place in ((_LOADS, "load"), (_ATOMICS, "a"), (_STORES, None)) if kind.match(callee)]
            if results:
                self.sites.append(line)
                steps.append(("site", len(self.sites), results[0]))
            elif not callee.startswith("__tsan"):
                steps.append((("a", "d", "x0"), ()))
            return
        if name.startswith("j"):
            if _TARGET.match(text):
                self.block["to"].append(text)
            self.block["falls"] = name != "jmp"
            self.begin(None)
            return
        if name in ("ret", "ud2"):
            self.block["falls"] = False
            self.begin(None)
            return
        if name == "movq" and text == "%rsp, %rbp":
            self.framed = True
        elif step := _step(name, text, self.framed):
            steps.append(step)

    def follow(self):
        """site -> mask of the loads that its address needs; bit n stands for site n."""
        needs = [0] * (len(self.sites) + 1)
        entry = [None] * len(self.blocks)
        entry[0] = {}
        waiting = [0]
        while waiting:
            at = waiting.pop()
            state = dict(entry[at])
            block = self.blocks[at]
            for step in block["steps"]:
                if step[0] == "site":
                    needs[step[1]] |= state.get("D", 0)
                    if step[2]:
                        state[step[2]] = 1 << step[1]
                else:
                    mask = 0
                    for source in step[1]:
                        mask |= state.get(source, 0)
                    if "load" in step[1]:
                        state["load"] = 0  # what was announced has been loaded
                    for target in step[0]:
                        state[target] = mask
            following = [self.at_label[label] for label in block["to"] if label in self.at_label]
            if block["falls"] and at + 1 < len(self.blocks):
                following.append(at + 1)
            for after in following:
                known = entry[after]
                if known is None:
                    entry[after] = dict(state)
                    waiting.append(after)
                    continue
                changed = False
                for name, mask in state.items():
                    if mask & ~known.get(name, 0):
                        known[name] = known.get(name, 0) | mask
                        changed = True
                if changed:
                    waiting.append(after)
        return needs


def add_dependences(lines):
    """The lines with the labels and the section added."""
    behind, ends = {}, {}  # line -> label to put behind it; line -> text to put behind it
    function, group, in_asm, count = None, "", False, 0
    for at, line in enumerate(lines):
        if line.startswith("#"):
            in_asm = line.startswith("#APP") or (in_asm and not line.startswith("#NO_APP"))
        elif line.startswith("\t.section"):
            named = re.match(r"\t\.section\t\.text[^,]*,\"axG\",@progbits,([^,]+),comdat", line)
            group = named.group(1) if named else ""
        elif line.startswith("\t.text"):
            group = ""
        elif typed := re.match(r"\t\.type\t(\S+), @function", line):
            if function is not None and typed.group(1).startswith(function.name + ".cold"):
                function.block["falls"] = False  # the rest of it, in another section
                function.begin(None)
            else:
                function = _Function(typed.group(1))
        elif function is not None and line.startswith(f"\t.size\t{function.name},"):
            pairs = []
            for site, mask in enumerate(function.follow()):
                pairs += [(site, other) for other in range(1, mask.bit_length()) if mask >> other & 1]
            named = {}
            for site in sorted({n for pair in pairs for n in pair}):
                count += 1
                named[site] = behind[function.sites[site - 1]] = f".LSIM{count}"
            if pairs:
                flags = f'"aG",@progbits,{group},comdat' if group else '"a",@progbits'
                text = "".join(f"\t.long\t{named[a]}, {named[b]}\n" for a, b in pairs)
                ends[at] = f"\t.pushsection\t{SECTION},{flags}\n{text}\t.popsection\n"
            function = None
        elif function is None or in_asm or line.startswith("\t.") or line.startswith(" "):
            continue
        elif line.startswith("\t"):
            words = line.strip().split(None, 1)
            function.add(at, words[0], words[1] if len(words) > 1 else "")
        elif line.startswith(".L") and line.rstrip().endswith(":"):
            function.begin(line.strip()[:-1])
    return [part for at, line in enumerate(lines) for part in (
        line, *([behind[at] + ":\n"] if at in behind else ()), *([ends[at]] if at in ends else ()))]
