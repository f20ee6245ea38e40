#!/usr/bin/env python3
"""Compiles C++ programs for the simulated machine, as g++ does for this one: elidex-c++ [OPTIONS] FILES

    elidex-c++ -O2 bank.cpp -o bank
    ELIDEX_SIM="machine=haswell-i5-4670t locks=elided" ./bank

Options are those of g++. Sources become objects, and objects a program, in two commands (-c) or one. The program runs
on the machine: its accesses, locks, threads and clocks take simulated time. docs/MACHINE.md, "Your own program", says
what such a program may do and what ELIDEX_SIM sets. A call that the machine cannot run is refused by its name.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# In the source tree's build, instrument.py and these settings lie elsewhere than in an installation.
HERE = Path(__file__).resolve().parent
CONFIG = json.loads((HERE / "elidex-c++.json").read_text())


def place(text):
    """Paths of the settings are relative to this file."""
    return str((HERE / text).resolve())


sys.path.insert(0, place(CONFIG["scripts"]))
import instrument  # noqa: E402

# What computes from its arguments alone, or from state that no simulated thread shares; what the program is linked with.
MATH = ("a?(sin|cos|tan)h?|atan2|exp[2m]?1?|log(2|10|1p|b)?|pow|sqrt|cbrt|hypot|floor|ceil|l?l?round|trunc|l?l?rint|nearbyint|fmod|"
        "fabs|fmin|fmax|fdim|fma|remainder|ldexp|frexp|modf|nextafter|nexttoward|erfc?|[lt]gamma|copysign|scalbn|ilogb")
COMPUTES = [re.compile(pattern + r"\Z") for pattern in (
    rf"({MATH})[fl]?", r"l?l?abs|l?l?div", r"is(alnum|alpha|digit|lower|upper|space|punct|print|cntrl|graph|xdigit)|to(lower|upper)",
    r"s?rand(_r|om)?", r"[ed]rand48", r"srand48", r"getenv", r"sysconf|get_nprocs", r"_ZNSaI.*", r"elidex_program.*", r"elidex_outside.*",
    r"_ZNK?R?St7__cxx111\dbasic_\w?string(stream|buf).*", r"_ZSt2[05]__throw.*", r"_ZNK?St6locale.*", r"_ZNKSt5ctype.*",
    r"_ZNSt18condition_variable.*", r"(clock_)?nanosleep", r"_ZNSt11this_thread.*", r"_ZSt1[89]uncaught_exceptions?v", r"__dynamic_cast",
    r"_ZNSt12bad_weak_ptr.*", r"__once_proxy|_ZSt1\d__once_call.*", r"pthread_(equal|attr_\w+|mutexattr_(?!set(robust|protocol|prioceiling))\w+|condattr_\w+|rwlockattr_\w+)",
    r"std(in|out|err)", r"_ZSt[34](cin|cout|cerr|clog)", r"_ZNSt8ios_base.*", r"_ZNK?St9basic_ios.*", r"__cxa_atexit|atexit",
    r"_ZSt17__istream_extract.*", r"_ZT[VTIS].*",
)]
# And what makes a system call, or may, or turns text into numbers and back without being seen: the machine charges a
# system call in front of it, which a transaction cannot contain. A stub by another name does so (write_stubs()).
SYSTEM_CALLS = re.compile(
    r"(open|close|read|write|pread|pwrite|lseek|fsync|fdatasync|ftruncate|unlink|rename|mkdir|stat|fstat|access|mkstemp)(64)?\Z"
    r"|(f?open|fclose|fread|fwrite|f?gets|f?puts|f?putc|f?getc|getline|fflush|fseeko?|ftello?|rewind|setvbuf|fileno)(64)?\Z"
    r"|((__isoc(99|23)_)?(f|s)?scanf|(__isoc23_)?strto[dfl]|(__isoc23_)?strtou?ll?|ato[ifl]l?|v?sn?printf|feof|ferror|clearerr)\Z"
    r"|_?(tmpfile|putchar|puts|printf|fprintf|dprintf|vprintf|vfprintf|perror|remove)\Z"
    r"|_ZNS[oi].*|_ZStls.*|_ZStrs.*|_ZSt16__ostream_insert.*|_ZSt4endl.*|_ZSt5flush.*|_ZSt7getline.*"
    r"|_ZNSt(13basic_fstream|14basic_(of|if)stream|13basic_filebuf|15basic_streambuf|12__basic_file).*"
    # The C++ library counts an exception's references unseen, so an abort would not undo it.
    r"|_ZNK?St15__exception_ptr.*|_ZSt17current_exceptionv|_ZSt17rethrow_exception.*")
# What is refused for a reason of its own; everything else is refused because the machine would not see what it does.
REFUSED = [(re.compile(pattern + r"\Z"), why) for pattern, why in (
    (r"v?fork|exec\w+|posix_spawnp?|system|popen", "a run has one process"),
    (r"signal|sigaction|raise|kill|pthread_kill|sig\w+|alarm|setitimer", "a run has no signals"),
    (r"exit|_exit|_Exit|quick_exit", "a run ends when main() returns"),
    (r"(sig)?setjmp|_setjmp|__sigsetjmp|(sig)?longjmp|__longjmp_chk", "jumps between functions are not simulated"),
    (r"mmap|munmap|mprotect|shm\w+", "memory must come from new"),
    (r"malloc|calloc|realloc|free|posix_memalign|aligned_alloc", "memory must come from new"),
    (r"pthread_exit|pthread_cancel", "a thread ends when its function returns"),
    (r"pthread_mutexattr_set(robust|protocol|prioceiling)", "the machine's mutexes are neither robust nor do they inherit priorities"),
    (r"pthread_(key_create|key_delete|setspecific|getspecific)", "the machine has thread_local"),
    (r"sem_\w+|pthread_barrier_\w+", "the machine has std::counting_semaphore and std::barrier"),
    (r"time|gettimeofday", "the machine's clocks are std::chrono's and clock_gettime()"),
    (r"u?sleep", "the machine has std::this_thread::sleep_for() and nanosleep()"),
    (r"_ZNSt13random_device.*", "equal runs are equal"),
    (r"socket|connect|accept|bind|listen|send\w*|recv\w*|select|poll|epoll_\w+", "a run has no network"),
)]

# The work of the C++ library's containers on their own data, which is in the library, where the machine uses it too:
# programs have their own, by other names (containers.cpp, which this script compiles).
CONTAINERS = re.compile(r"_ZSt(18_Rb_tree_(in|de)crement|29_Rb_tree_insert|28_Rb_tree_rebalance|11_Hash_bytes).*"
                        r"|_ZNSt8__detail15_List_node_base.*|_ZNKSt8__detail20_Prime_rehash_policy.*")
RENAMED = [*instrument.RENAMED, "strcmp"]
OUTSIDE = "elidex_outside_"
# Of the library's own list: programs have stubs or containers.cpp for these, or are refused.
NOT_FOR_PROGRAMS = re.compile(r"snprintf|_ZSt11_Hash|pthread_\(setspecific")
COUNTED = instrument.COUNTER  # every object that we have compiled wants it
# A program that asks for HLE's prefixes must not compile: its atomic accesses become calls of the machine, which drop them.
NO_HLE = ("-U__ATOMIC_HLE_ACQUIRE", "-U__ATOMIC_HLE_RELEASE")
SOURCES = (".cpp", ".cc", ".cxx", ".c++", ".C")
WITH_VALUE = ("-I", "-L", "-D", "-U", "-include", "-imacros", "-isystem", "-iquote", "-idirafter", "-MF", "-MT", "-MQ", "-l", "-Xlinker")
NOT_SUPPORTED = re.compile(r"-(shared|static|pie|f(no-)?(PIE|pie|PIC|pic|plt)|flto.*|S|E|m32|m(rtm|hle)|x.*|fsanitize.*|fopenmp)\Z")
STANDARDS = re.compile(r"-std=(c|gnu)\+\+(2[0-9a-d])\Z")  # an older one leaves std::string in the library
ALLOCATORS = re.compile(r"_Zn[wa]m(\Z|RKSt9nothrow|St11align)|_Zd[la]Pv(\Z|m|St11align)")


class Refused(Exception):
    pass


def why_refused(name):
    plain = name.split("@")[0]
    return next((why for pattern, why in REFUSED if pattern.match(plain)),
                "the machine would not see what it reads and writes")


def compile_source(source, options, out, named):
    """Returns the compiler's status. `named`: what the user calls the object, if there is a file for it or not."""
    command = [CONFIG["compiler"], *CONFIG["compile"], "-O2", f"-I{place(CONFIG['include'])}", *options, "-U_FORTIFY_SOURCE", *NO_HLE,
               *dependency_file(options, named), "-c", source, "-o", out]

    def examine(lines):
        if unseen := list(instrument.unseen_instructions(lines)):
            shown = instrument.readable([function for function, *_ in unseen])
            raise Refused("\n".join(f"{source}: cannot run '{instruction}' in {function}: {why}" for function, (_, instruction, why)
                                    in zip(shown, unseen)))

    status = instrument.compile_counted(command, examine)
    if status == 0:
        wanted, defined = symbols(out)
        instrument.rename(out, [*((name, f"elidex_sim_{name}") for name in RENAMED if name in wanted),
                                *((name, f"elidex_program{name}") for name in wanted | defined if CONTAINERS.match(name)),
                                *((name, OUTSIDE + name) for name in wanted if SYSTEM_CALLS.match(name)),
                                ("main", "elidex_program_main")])
    return status


def dependency_file(options, named):
    """The compiler would name it, and its target, after the assembly that it writes."""
    if "-MF" in options or not {"-MD", "-MMD"} & set(options):
        return []
    return ["-MF", str(Path(named).with_suffix(".d")), *([] if "-MT" in options or "-MQ" in options else ["-MT", named])]


def write_stubs(names, path):
    """Functions that charge a system call and hand on, whether they are called or their address is taken."""
    path.write_text("".join(f"\t.globl\t{OUTSIDE}{name}\n\t.type\t{OUTSIDE}{name}, @function\n{OUTSIDE}{name}:\n"
                            f"\tsubq\t$8, %rsp\n\tcall\telidex_sim_system_call\n\taddq\t$8, %rsp\n\tjmp\t{name}@PLT\n"
                            for name in sorted(names)) + '\t.section\t.note.GNU-stack,"",@progbits\n')


def symbols(path):
    """What an object or archive wants from outside, and what it defines. A weak symbol may stay undefined."""
    listing = subprocess.run(["nm", "--format=posix", path], check=True, capture_output=True, text=True).stdout
    wanted, defined = set(), set()
    for name, kind in re.findall(r"^(\S+) (\w)", listing, re.MULTILINE):
        if kind == "U":
            wanted.add(name)
        elif kind != "w":
            defined.add(name)
    return wanted - defined, defined


def check(objects):
    """Refuses what the machine cannot run, and returns the names of what makes system calls. `objects` are pairs: a file, and what the user calls it."""
    wanted, defined = {}, set()
    for path, shown in objects:
        names, here = symbols(path)
        if COUNTED not in names:
            raise Refused(f"{shown}: was not compiled by elidex-c++")
        defined |= here
        wanted |= {name: shown for name in names if name not in wanted}
    if "elidex_program_main" not in defined:
        raise Refused("no file has a main()")
    if allocators := [name for name in defined if ALLOCATORS.match(name)]:
        raise Refused(f"cannot link {instrument.readable(allocators)[0]}: the machine has its own")
    known = [*(pattern for pattern in instrument.ALLOWED if not NOT_FOR_PROGRAMS.match(pattern.pattern)), *COMPUTES]
    unknown = [name for name in wanted if name not in defined and not any(pattern.match(name) for pattern in known)]
    if unknown:
        raise Refused("\n".join(f"{wanted[name]}: cannot run {shown}: {why_refused(name)}"
                                for name, shown in zip(unknown, instrument.readable(unknown))))
    return {name.removeprefix(OUTSIDE) for name in wanted if name.startswith(OUTSIDE)}


def link(objects, options, out):
    libraries = Path(place(CONFIG["libraries"]))
    return subprocess.run([CONFIG["compiler"], "-no-pie", *objects, *options, "-o", out,
                           "-Wl,--whole-archive", libraries / "libelidex-program.a", "-Wl,--no-whole-archive",
                           libraries / "libelidex_simulated.a", libraries / "libelidex_machine.so",
                           "-Xlinker", "-rpath", "-Xlinker", libraries, "-ldl"]).returncode


def split(words):
    """The command line's sources, objects, other options, and what -o and -c say."""
    sources, objects, options, out, compile_only = [], [], [], None, False
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if NOT_SUPPORTED.match(word):
            raise Refused(f"{word}: is not supported")
        if word.startswith("-std=") and not STANDARDS.match(word):
            raise Refused(f"{word}: is not supported (expected c++20 or later)")
        if word == "-o" or word in WITH_VALUE:
            if at == len(words):
                raise Refused(f"{word}: value missing (expected a value after it)")
            if word == "-o":
                out = words[at]
            else:
                options += [word, words[at]]
            at += 1
        elif word.startswith("-o"):
            out = word[2:]
        elif word == "-c":
            compile_only = True
        elif word.startswith("-"):
            options.append(word)
        elif word.endswith(SOURCES):
            sources.append(word)
        elif word.endswith((".o", ".a")):
            objects.append(word)
        else:
            raise Refused(f"{word}: unknown kind of file (expected {', '.join(SOURCES)}, .o or .a)")
    return sources, objects, options, out, compile_only


def main(words):
    if not words or words[0] in ("-h", "--help"):
        print(__doc__.strip())
        return 0
    try:
        sources, objects, options, out, compile_only = split(words)
        if not sources and not objects:
            raise Refused("expected a file to compile")
        if missing := [name for name in [*sources, *objects] if not Path(name).is_file()]:
            raise Refused(f"{missing[0]}: no such file")
        if compile_only:
            if out is not None and len(sources) != 1:
                raise Refused("-o: expected one source file with -c")
            for source in sources:
                named = out or Path(source).stem + ".o"
                if status := compile_source(source, options, named, named):
                    return status
            return 0
        with tempfile.TemporaryDirectory() as directory:
            compiled = [str(Path(directory) / f"{number}.o") for number in range(len(sources))]
            for source, made in zip(sources, compiled):
                if status := compile_source(source, options, made, Path(source).stem + ".o"):
                    return status
            outside = check([*zip(compiled, sources), *((name, name) for name in objects)])
            stubs = Path(directory) / "outside.s"
            write_stubs(outside, stubs)
            return link([*compiled, *objects, stubs], options, out or "a.out")
    except subprocess.CalledProcessError as error:
        print(f"elidex-c++: {Path(error.cmd[0]).name} failed (see its messages above)", file=sys.stderr)
        return 1
    except Refused as refused:
        for line in str(refused).split("\n"):
            print(f"elidex-c++: {line}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
