"""Announces, in the assembly of a simulated program, the stores that the compiler does not announce.

    lines = announce_stores(lines)

With -fsanitize=thread GCC calls the machine in front of a store. It leaves out a structure that a call returns in
registers, a structure that a function returns directly into memory, and its own clearing and copying. The machine would
not see these stores, and an abort would not undo them.

Here each function is followed line by line, with the values that its registers and stack slots share. So it is known
which stores a call of the machine has announced. In front of any other store comes a call that keeps all registers and
flags (elidex_sim_unannounced_write in hooks.cpp). At a label nothing is known. So some stores are announced twice. The
machine notices that, and does not count the second time.

The machine restores a stack itself, so most stores through %rsp, and through %rbp where it points to the frame, are
left. Others may see a variable on the stack whose address is taken: it is announced where a call's result is stored.

Not announced: other stores to the stack that the compiler leaves out; thread-local variables, whose address cannot be
computed in one instruction; vector stores with a mask; and assembly of the program's own.
"""

import re

from dependences import OPERANDS, REGISTERS

_READS = re.compile(r"__tsan_(unaligned_|volatile_)?read|__tsan_vptr_read")
_WRITES = re.compile(r"__tsan_(?:unaligned_|volatile_)?write(\d+)\Z|__tsan_(vptr_update|write_range)\Z")
LABEL = re.compile(r"([.\w$]+):")
# Labels in the middle of a block, at which nothing arrives.
NO_TARGET = re.compile(r"\.L(EH[BE]|FB|FE|VL|BB|BE|COLD|HOT|SIM)\w*:")
_FRAME_POINTER = re.compile(r"\t\.cfi_(def_cfa_register 6|def_cfa 6,|escape 0x10,0x6,)")
_MEMORY = re.compile(r"([^(]*)\((%\w+)?(?:,(%\w+)(?:,(\d))?)?\)\Z")
_NUMBER = re.compile(r"-?\d+\Z")
_SYMBOL = re.compile(r"([^+-]*)([+-]\d+)?\Z")
_SLOT = re.compile(r"(-?\d*)\(%rsp\)\Z")
_SIZES = {"b": 1, "w": 2, "l": 4, "q": 8}
_READERS = re.compile(r"v?(cmp|test|bt[wlq]?\Z|u?comi|ptest|push|call|jmp|i?mul[bwlq]?\Z|i?div[bwlq]?\Z|prefetch|nop|lea"
                      r"|ldmxcsr|f(?!n?i?st)|clflush|endbr)")
_SCALAR = re.compile(r"v?mov(ss|d|w|sh)\Z|v?mov(sd|[lh]p[sd]|q)\Z|v?extractps\Z")
_INTEGER = re.compile(r"(?:mov|movnti|add|adc|sub|sbb|and|or|xor|neg|not|inc|dec|s[ah][lr]|r[oc][lr]|sh[lr]d|xchg|bt[src]"
                      r"|xadd|cmpxchg|movbe|kmov)([bwlq])\Z")
_FLOATS = {"fsts": 4, "fstps": 4, "fstl": 8, "fstpl": 8, "fstpt": 16, "fists": 2, "fistps": 2, "fistl": 4, "fistpl": 4,
           "fistpq": 8, "fistpll": 8, "fisttps": 2, "fisttpl": 4, "fisttpq": 8, "fisttpll": 8, "fnstcw": 2, "fnstsw": 2}
_WIDTHS = {"x": 16, "y": 32, "z": 64}
_LOST_IN_CALLS = ("a", "c", "d", "S", "D", "r8", "r9", "r10", "r11")
_RESULTS = {"a", "d", "x0", "x1"}


def _place(operand):
    """The name of a register, whatever part of it is meant, or the operand itself."""
    return REGISTERS.get(operand[1:], operand) if operand.startswith("%") else operand


def stored_bytes(name, operands):
    """How many bytes an instruction stores at its last operand; 0: it stores nothing, or nowhere in memory."""
    if not operands or "(" not in operands[-1] or re.match(r"\*|.*{", operands[-1]) or _READERS.match(name):
        return 0
    vector = _WIDTHS.get(operands[0][1:2]) if operands[0][2:4] == "mm" else None
    if (plain := _INTEGER.match(name)) and not vector:
        return _SIZES[plain.group(1)]
    if name.startswith("set"):
        return 1
    if scalar := _SCALAR.match(name):
        return 8 if scalar.group(2) else 4
    if name in _FLOATS:
        return _FLOATS[name]
    if element := re.match(r"v?pextr([bwdq])\Z", name):
        return {"b": 1, "w": 2, "d": 4, "q": 8}[element.group(1)]
    if "extract" in name:
        return 32 if "x4" in name and "64" in name or "32x8" in name else 16
    return vector or 8  # the whole register, or at most so much


class _Values:
    """What registers and stack slots hold: (a value without a name, an offset). Equal pairs are equal addresses."""

    def __init__(self):
        self.forget()

    def forget(self):
        self.held, self.count, self.results = {}, 0, set()
        self.announced, self.is_made = None, False  # by the last call: (value, from, to); whether it was stored there

    def of(self, place):
        place = _place(place)
        if place not in self.held:
            self.count += 1
            self.held[place] = (self.count, 0)
        return self.held[place]

    def address(self, operand):
        """Of a memory operand, or of a symbol. None: unknown."""
        found = _MEMORY.match(operand)
        before, base, index, scale = found.groups() if found else (operand, None, None, None)
        if base == "%rip" or base is None and index is None:
            symbol = _SYMBOL.match(before)
            return symbol and (symbol.group(1), int(symbol.group(2) or 0))
        value, offset = self.of(base) if base else (None, 0)
        if before and not _NUMBER.match(before):
            return ("at", value, before, self.of(index) if index else None, scale), offset
        offset += int(before or 0)
        return (("at", value, "", self.of(index), scale) if index else value), offset

    def follow(self, name, operands, bytes_, lowest_taken):
        """An instruction other than a call, which stores so many bytes at its last operand."""
        if not operands:
            self.lose("a", "d")  # cltq, cqto
            return
        first, last = operands[0], operands[-1]
        if name.startswith(("push", "pop")) or last == "%rsp":
            self.lose_slots(lambda at: True)
            self.lose("sp", *([last] if name.startswith("pop") else []))
            return
        made = self.made(name, first, last)
        if name.startswith(("mul", "imul", "div", "idiv")) and len(operands) == 1:
            self.lose("a", "d")
        elif name.startswith("xchg"):
            self.lose(first, last)
        elif not name.startswith(("cmp", "test", "j", "nop", "prefetch")):
            self.lose(last)
        if bytes_:
            self.lose_stored(last, bytes_, lowest_taken)
        if made and (_place(last) != last or _SLOT.match(last)):
            self.held[_place(last)] = made

    def lose_stored(self, operand, bytes_, lowest_taken):
        """Forgets the stack slots that a store may have changed."""
        if slot := _SLOT.match(operand):
            low = int(slot.group(1) or 0)
            self.lose_slots(lambda at: low - 8 < at < low + bytes_)
        elif "%rsp" in operand:
            self.lose_slots(lambda at: True)
        elif lowest_taken is not None:  # through a pointer
            self.lose_slots(lambda at: at + 8 > lowest_taken)

    def made(self, name, first, last):
        """The value that the last operand has then, if it is known."""
        if name == "movq" and (_place(first) != first or _SLOT.match(first)):
            return self.of(first)
        if name == "leaq":
            return self.address(first)
        if name in ("movl", "movq") and first.startswith("$"):
            return ("number", int(first[1:])) if _NUMBER.match(first[1:]) else self.address(first[1:])
        if name in ("addq", "subq") and first.startswith("$") and _NUMBER.match(first[1:]):
            value, offset = self.of(last)
            return value, offset + int(first[1:]) * (1 if name == "addq" else -1)
        return None

    def lose(self, *operands):
        for operand in operands:
            place = _place(operand)
            self.results.discard(place)
            self.held.pop(place, None)

    def lose_slots(self, which):
        for place in [place for place in self.held if (slot := _SLOT.match(place)) and which(int(slot.group(1) or 0))]:
            del self.held[place]

    def call(self, name):
        if write := _WRITES.match(name):
            bytes_ = int(write.group(1) or 8)
            if write.group(2) == "write_range":
                kind, count = self.of("S")
                bytes_ = count if kind == "number" else 0
            value, offset = self.of("D")
            self.announced, self.is_made = (value, offset, offset + bytes_), False
        elif self.is_made or not _READS.match(name):
            self.announced = None  # a copy is announced as a write, then a read, and made behind both
        self.lose(*_LOST_IN_CALLS)
        self.results = set() if name.startswith("__tsan") else set(_RESULTS)

    def is_announced(self, operand, bytes_):
        """Of a store, which is made now."""
        address = self.address(operand)
        if address is None or self.announced is None:
            return False
        value, low, high = self.announced
        found = address[0] == value and low <= address[1] and address[1] + bytes_ <= high
        self.is_made = self.is_made or found
        return found


def _announcement(operand, bytes_, leaf):
    # A function without calls may keep data below its stack pointer.
    down, up = ("\tleaq\t-128(%rsp), %rsp\n", "\tleaq\t128(%rsp), %rsp\n") if leaf else ("", "")
    if on_stack := re.match(r"(-?\d*)\(%rsp", operand):
        operand = str(int(on_stack.group(1) or 0) + 8) + operand[on_stack.end(1):]
    # Not through the linker's table of procedures, which uses a register.
    return (f"{down}\tpushq\t%rdi\n\tleaq\t{operand}, %rdi\n"
            f"\tcall\t*elidex_sim_unannounced_write{bytes_}@GOTPCREL(%rip)\n\tpopq\t%rdi\n{up}")


class _Function:
    """What is to be known of a function before its lines are followed."""

    def __init__(self):
        self.calls = self.has_frame = False
        self.taken = {"%rsp": None, "%rbp": None}  # the lowest offset of which the address is taken


def _functions(lines):
    found, now = {}, _Function()
    for line in lines:
        if (label := LABEL.match(line)) and not line.startswith("."):
            now = found.setdefault(label.group(1).split(".cold")[0], _Function())
        elif line.startswith("\tcall\t"):
            now.calls = True
        elif _FRAME_POINTER.match(line):
            now.has_frame = True
        elif taken := re.match(r"\tleaq\t(-?\d*)\((%rsp|%rbp)[),]", line):
            offset = int(taken.group(1) or 0)
            before = now.taken[taken.group(2)]
            now.taken[taken.group(2)] = offset if before is None else min(before, offset)
        elif line == "\tmovq\t%rsp, %rdi\n":
            now.taken["%rsp"] = 0
    return found


def _is_wanted(operand, stored, function, values):
    """Whether a store to the stack may be of a variable that others see, or the store is not to the stack."""
    if re.search(r"%[fg]s|elidex_sim_", operand):
        return False
    stack = re.match(r"(-?\d*)\((%rsp|%rbp)", operand)
    if not stack or stack.group(2) == "%rbp" and not function.has_frame:
        return True
    lowest = function.taken[stack.group(2)]
    return _place(stored) in values.results and lowest is not None and int(stack.group(1) or 0) >= lowest


def announce_stores(lines):
    """The lines with the announcements added."""
    functions = _functions(lines)
    out, function, in_asm, values = [], _Function(), False, _Values()
    for line in lines:
        if line.startswith("#"):
            in_asm = line.startswith("#APP") or (in_asm and not line.startswith("#NO_APP"))
            values.forget()
        elif label := LABEL.match(line):
            if not line.startswith("."):
                function = functions[label.group(1).split(".cold")[0]]
            if not NO_TARGET.match(line):
                values.forget()
        elif line.startswith("\t") and not line.startswith("\t.") and not in_asm:
            name, _, text = line.strip().partition("\t")
            text = text.partition("#")[0].strip()
            if name == "call":
                values.call(text.partition("@")[0])
            else:
                operands = [operand.strip() for operand in OPERANDS.findall(text)]
                bytes_ = stored_bytes(name, operands)
                if (bytes_ and not values.is_announced(operands[-1], bytes_)
                        and _is_wanted(operands[-1], operands[0], function, values)):
                    out.append(_announcement(operands[-1], bytes_, not function.calls))
                values.follow(name, operands, bytes_, function.taken["%rsp"])
        out.append(line)
    return out
