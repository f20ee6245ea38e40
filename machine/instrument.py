#!/usr/bin/env python3
"""Compiles one file of the simulated program: instrument.py [--strict] COMPILER ARGUMENTS...

The compiler calls the machine at accesses that it sees; those inside the C library's string functions it doesn't see.
So calls of them get other names, under which the machine has its own. Whatever else the object wants from outside must
be known not to touch the program's shared data behind the machine's back: with --strict, an import that is not on the
list below is an error.

The program also counts its instructions, for the machine to charge (count_instructions()), says which loads an access
waits for (dependences.py), and announces the stores that the compiler does not (unannounced_stores.py).
"""

import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from dependences import add_dependences  # noqa: E402
from unannounced_stores import LABEL, NO_TARGET, announce_stores  # noqa: E402

RENAMED = ["memcpy", "memmove", "memset", "memcmp", "memchr", "strlen"]

ALLOWED = [re.compile(pattern + r"\Z") for pattern in (
    # The machine, and what it stands in for.
    r"__tsan_\w+", r"elidex_sim_\w+", r"pthread_(create|join|detach|self|once)",
    r"pthread_(setspecific|getspecific|key_create|key_delete)", r"pthread_(mutex|cond|rwlock)_\w+",
    r"sched_yield", r"clock_gettime", r"syscall",
    # The program's own code, and the linker's tables.
    r"_ZN?K?6elidex.*", r"_ZN[KO]?6elidex.*", r"_ZT[VISTWH]N6elidex.*", r"_ZGV.*elidex.*", r"_GLOBAL_OFFSET_TABLE_",
    r"__tls_get_addr", r"__errno_location", r"__dso_handle", r"_DYNAMIC", r"__gxx_personality_v0", r"_Unwind_Resume", r"__stack_chk_fail",
    # Exceptions, start-up and memory: their data belongs to one thread or to the machine.
    r"__cxa_\w+", r"_Zn[wa].*", r"_Zd[la].*", r"_ZSt\d+terminatev", r"_ZSt9terminatev", r"_ZSt\d+__throw_\w+",
    r"_ZNSt15__exception_ptr.*", r"_ZSt17current_exceptionv", r"_ZSt17rethrow_exception.*", r"_ZT[VIS]S?t.*",
    r"_ZT[VIS]N10__cxxabiv1.*", r"_ZN[K]?St\d+(bad_alloc|exception|logic_error|runtime_error|invalid_argument|"
    r"length_error|out_of_range|system_error)\w*", r"_ZNK?St9exception.*", r"_ZNSt9bad_allocD.*",
    r"_ZNSt16invalid_argument.*", r"_ZNSt1[0-9]\w+_error.*", r"_ZSt7nothrow", r"abort", r"__assert_fail",
    # Asking the system for huge pages, and about the time: no data of the program.
    r"madvise", r"__popcountdi2", r"_ZNSt6chrono.*", r"getauxval",
    # Of shared_ptr: whether there has ever been a second thread. Its counts are seen.
    r"__libc_single_threaded",
    # Hashing the bytes of a caller's string.
    r"_ZSt11_Hash_bytesPKvmm",
    # Kinds of error codes: constants of the C++ library.
    r"_ZNSt3_V2\d+(system|generic)_categoryEv",
    # Printing: by one thread, into its own stream.
    r"snprintf", r"_ZNSo.*", r"_ZSt16__ostream_insert.*", r"_ZNSt9basic_ios.*",
    # Templates that the object has itself (weak) are not imports; those of the C++ library that it takes from there:
    # strings (of results and messages, by one thread), threads.
    r"_ZNK?St7__cxx1112basic_string.*", r"_ZNSt6thread.*", r"_ZT[VIS]NSt6thread.*", r"_ZSt\d+__throw.*", r"_ZNKSt13runtime_error.*",
)]


COUNTER = "elidex_sim_instructions"  # 8 bytes; behind them 8 that count conditional branches
# They write all flags of the condition and read none: in front of them no flag is needed any more.
SETS_ALL_FLAGS = re.compile(r"(cmp|test|add|sub|and|or|xor|neg)[bwlq]?\Z")
# A call of the machine is not the program's, nor are the instructions that pass its arguments. An atomic access is made
# by the call.
PASSES = [(re.compile(pattern), count) for pattern, count in (
    (r"__tsan_(unaligned_|volatile_)?(read|write)", 1), (r"__tsan_vptr", 1),
    (r"__tsan_atomic\d+_load", 1), (r"__tsan_atomic\d+_(store|exchange)", 1), (r"__tsan_atomic\d+_fetch", 2),
    (r"__tsan_atomic\d+_compare", 4), (r"__tsan_atomic_\w+_fence", 1),
)]


def count_instructions(lines):
    """Adds to the counter, once in each block of instructions without a branch, how many there are, and the branch that
    ends it if it has a condition.

    An addition changes the flags. So it is put in front of a call or a return, or of the last instruction that sets all
    flags anyway. A block without such a place is not counted: nearly all of these are a jump, or moves between registers.
    """
    out, pending, place, in_asm = [], 0, None, False

    def add_at(where, branches=0):
        nonlocal pending, place
        if pending > 0 and where is not None:
            more = f"\taddq\t${branches}, {COUNTER}+8(%rip)\n" if branches else ""
            out[where] = f"\taddq\t${pending}, {COUNTER}(%rip)\n" + more + out[where]
        pending, place = 0, None

    for line in lines:
        if line.startswith("#"):
            in_asm = line.startswith("#APP") or (in_asm and not line.startswith("#NO_APP"))
            out.append(line)
        elif LABEL.match(line):
            if not NO_TARGET.match(line):
                add_at(place)
            out.append(line)
        elif not line.startswith("\t") or line.startswith("\t."):
            out.append(line)
        else:
            words = line.split(None, 2)
            name, operand = words[0], words[1] if len(words) > 1 else ""
            out.append(line)
            here = len(out) - 1
            if in_asm:
                pending += 1
            elif name == "call" and "__tls_get_addr" in operand:
                pending += 1  # the linker knows the whole sequence: nothing goes between
            elif name == "call":
                passed = next((count for pattern, count in PASSES if pattern.match(operand)), -1)
                pending -= passed
                add_at(here)
            elif name == "ret" or (name == "jmp" and not operand.startswith((".L", "*"))):
                pending += 1
                add_at(here)
            elif name.startswith("j"):
                pending += 1
                add_at(place, 0 if name == "jmp" else 1)
            else:
                if SETS_ALL_FLAGS.match(name):
                    place = here
                pending += 1
    return out


# Instructions whose effect the machine does not see, or that bring in the host's time or chance.
UNSEEN = [(re.compile(pattern + r"\Z"), why) for pattern, why in (
    (r"xbegin|xend|xabort|xtest", "the program's own transactions are not simulated (expected locks=elided in ELIDEX_SIM)"),
    (r"xacquire|xrelease", "HLE prefixes are not simulated (expected locks=elided in ELIDEX_SIM)"),
    (r"rdtscp?|rdpmc", "it reads the host's clock (expected std::chrono or clock_gettime())"),
    (r"rdrand\w?|rdseed\w?", "equal runs are equal"),
)]
HARMLESS_ASM = re.compile(r"(pause|nop|rep;? ?nop|[mls]fence)\Z")


def unseen_instructions(lines):
    """(function, instruction, why) for each instruction of a compiler's output that the machine cannot run."""
    function, in_asm = "", False
    for line in lines:
        text = line.strip()
        if line.startswith("#"):
            in_asm = line.startswith("#APP") or (in_asm and not line.startswith("#NO_APP"))
        elif LABEL.match(line) and not line.startswith("."):
            function = text.partition(":")[0]
        elif line.startswith("\t") and text and not text.startswith("."):
            why = next((why for pattern, why in UNSEEN if pattern.match(text.split()[0])), None)
            if why is None and in_asm and not HARMLESS_ASM.match(text):
                why = "the machine does not see inline assembly (expected std::atomic or a builtin)"
            if why is not None:
                yield function, " ".join(text.split()), why


def compile_counted(command, examine=None):
    """Runs the compiler, and the assembler on what it has written with the counting added; returns the status.
    examine(lines) may refuse what the compiler has written, by an exception."""
    at = command.index("-o") + 1
    assembly = Path(command[at] + ".s")
    try:
        status = subprocess.run([*("-S" if word == "-c" else word for word in command[:at]), assembly,
                                 *("-S" if word == "-c" else word for word in command[at + 1:])]).returncode
        if status == 0:
            lines = assembly.read_text().splitlines(keepends=True)
            if examine is not None:
                examine(lines)
            counted = "".join(count_instructions(lines)).splitlines(keepends=True)
            assembly.write_text("".join(announce_stores(add_dependences(counted))))
            status = subprocess.run([command[0], "-c", "-o", command[at], assembly]).returncode
    finally:
        assembly.unlink(missing_ok=True)
    return status


def imports(path):
    listing = subprocess.run(["nm", "--undefined-only", "--format=posix", path], check=True, capture_output=True,
                             text=True).stdout
    return [line.split()[0] for line in listing.splitlines() if line.strip()]


def rename(path, renames):
    if renames:
        subprocess.run(["objcopy", *(f"--redefine-sym={old}={new}" for old, new in renames), path], check=True)


def readable(names):
    answer = subprocess.run(["c++filt", *names], capture_output=True, text=True, check=True).stdout
    return answer.rstrip("\n").split("\n")


def compile_for_machine(command, strict):
    """One file of the library or of our own programs; returns the status."""
    status = compile_counted(command)
    if status != 0:
        return status
    path = Path(command[command.index("-o") + 1])
    wanted = imports(path)
    rename(path, [(name, f"elidex_sim_{name}") for name in RENAMED if name in wanted])
    unknown = [name for name in wanted if name not in RENAMED and not any(pattern.match(name) for pattern in ALLOWED)]
    if strict and unknown:
        path.unlink()
        for name in readable(unknown):
            print(f"{path.name}: the simulated program must not call {name}: the machine would not see what it touches"
                  " (machine/instrument.py)", file=sys.stderr)
        return 1
    return 0


def main(words):
    strict = words[0] == "--strict"
    command = words[1:] if strict else words
    if "-c" not in command:
        return subprocess.run(command).returncode
    return compile_for_machine(command, strict)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
