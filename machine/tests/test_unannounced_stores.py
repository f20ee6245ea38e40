"""Which stores are announced, on small pieces of assembly."""

import importlib.util
import re
import unittest
from pathlib import Path

SPEC = importlib.util.spec_from_file_location("unannounced_stores",
                                              Path(__file__).resolve().parents[1] / "unannounced_stores.py")
unannounced_stores = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(unannounced_stores)

CALL, WRITE, READ = "\tcall\tf\n", "\tcall\t__tsan_write8\n", "\tcall\t__tsan_read8\n"
STORE = "\tmovq\t%rax, (%rbx)\n"


def added(body, name="g"):
    """(bytes, operand) of each announcement that is added."""
    text = "".join(unannounced_stores.announce_stores(f"{name}:\n{body}\tret\n".splitlines(keepends=True)))
    return [(int(bytes_), operand) for operand, bytes_ in
            re.findall(r"\tleaq\t(.*), %rdi\n\tcall\t\*elidex_sim_unannounced_write(\d+)@", text)]


class UnannouncedStores(unittest.TestCase):
    def test_a_structure_in_registers(self):
        self.assertEqual(added(CALL + STORE + "\tmovq\t%rdx, 8(%rbx)\n"), [(8, "(%rbx)"), (8, "8(%rbx)")])

    def test_an_announced_store_is_left(self):
        self.assertEqual(added(WRITE + STORE), [])
        self.assertEqual(added(WRITE + READ + "\tmovq\t(%r8), %rax\n" + STORE), [])
        self.assertEqual(added("\tcall\t__tsan_vptr_update\n" + STORE), [])

    def test_an_announcement_covers_its_bytes_only(self):
        self.assertEqual(added(WRITE + STORE + "\tmovb\t$1, 8(%rbx)\n"), [(1, "8(%rbx)")])
        self.assertEqual(added("\tcall\t__tsan_write16\n" + STORE + "\tmovl\t$0, 8(%rbx)\n"), [])
        self.assertEqual(added("\tcall\t__tsan_write_range\n" + 5 * STORE), [])

    def test_calls_and_labels_end_an_announcement(self):
        for between in (CALL, "\tcall\t*8(%rax)\n", "\tcall\t__tsan_atomic64_load\n", ".L7:\n"):
            self.assertEqual(added(WRITE + between + STORE), [(8, "(%rbx)")], between)
        for between in (".LEHB2:\n", ".LSIM3:\n", "\tje\t.L3\n", "\t.loc 1 2 3\n"):
            self.assertEqual(added(CALL + WRITE + between + STORE), [], between)

    def test_the_stack_is_left(self):
        self.assertEqual(added(CALL + "\tmovq\t%rax, 8(%rsp)\n\tmovq\t%rax, (%rsp,%rcx)\n"), [])
        self.assertEqual(added("\tmovq\t%rsp, %rbp\n" + CALL + "\tmovq\t%rax, -8(%rbp)\n"), [])
        self.assertEqual(added(CALL + "\tmovq\t%rax, -8(%rbp)\n"), [(8, "-8(%rbp)")])

    def test_the_counters_and_thread_locals_are_left(self):
        self.assertEqual(added(CALL + "\taddq\t$3, elidex_sim_instructions(%rip)\n\tmovq\t%rax, %fs:(%rbx)\n"), [])

    def test_statics_are_announced(self):
        self.assertEqual(added(CALL + "\tmovq\t%rax, total+8(%rip)\n"), [(8, "total+8(%rip)")])

    def test_a_function_without_calls_keeps_what_is_below_its_stack_pointer(self):
        body = f"g:\n{STORE}\tret\n"
        text = "".join(unannounced_stores.announce_stores(body.splitlines(keepends=True)))
        self.assertTrue(text.startswith("g:\n\tleaq\t-128(%rsp), %rsp\n\tpushq\t%rdi\n"), text)
        self.assertIn("\tpopq\t%rdi\n\tleaq\t128(%rsp), %rsp\n" + STORE, text)

    def test_assembly_of_the_programs_own_is_left(self):
        self.assertEqual(added("#APP\n" + STORE + "#NO_APP\n" + STORE), [(8, "(%rbx)")])

    def test_sizes(self):
        for line, bytes_ in (
            ("movb\t%al, (%rbx)", 1), ("movw\t%ax, (%rbx)", 2), ("movl\t$0, (%rbx)", 4), ("addq\t%rax, (%rbx)", 8),
            ("incl\t(%rbx)", 4), ("sarw\t(%rbx)", 2), ("setne\t(%rbx)", 1), ("movq\t%xmm0, (%rbx)", 8), ("movss\t%xmm0, (%rbx)", 4),
            ("movsd\t%xmm0, (%rbx)", 8), ("movhps\t%xmm0, (%rbx)", 8), ("movups\t%xmm0, (%rbx)", 16), ("movdqa\t%xmm0, (%rbx)", 16),
            ("vmovdqu\t%ymm0, (%rbx)", 32), ("vmovdqu64\t%zmm0, (%rbx)", 64), ("vextracti128\t$1, %ymm0, (%rbx)", 16),
            ("pextrw\t$1, %xmm0, (%rbx)", 2), ("movnti\t%rax, (%rbx)", 8), ("fstpl\t(%rbx)", 8), ("fstpt\t(%rbx)", 16),
        ):
            self.assertEqual(added(CALL + f"\t{line}\n"), [(bytes_, "(%rbx)")], line)

    def test_what_stores_nothing(self):
        for line in ("movq\t(%rbx), %rax", "cmpq\t%rax, (%rbx)", "testb\t$1, (%rbx)", "leaq\t(%rbx), %rax", "prefetcht0\t(%rbx)",
                     "divq\t(%rbx)", "pushq\t(%rbx)", "jmp\t*(%rbx)", "ucomisd\t(%rbx), %xmm0",
                     "vmovdqu32\t%ymm0, (%rbx){%k1}", "movq\t%rax, %rbx"):
            self.assertEqual(added(CALL + f"\t{line}\n"), [], line)


if __name__ == "__main__":
    unittest.main()
