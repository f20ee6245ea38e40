"""Which stores are announced, on small pieces of assembly."""

import importlib.util
import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
SPEC = importlib.util.spec_from_file_location("unannounced_stores",
                                              Path(__file__).resolve().parents[1] / "unannounced_stores.py")
unannounced_stores = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(unannounced_stores)

CALL, READ = "\tcall\tf\n", "\tcall\t__tsan_read8\n"
WRITE = "\tmovq\t%rbx, %rdi\n\tcall\t__tsan_write8\n"
STORE = "\tmovq\t%rax, (%rbx)\n"
RANGE = "\tmovl\t$24, %esi\n\tmovq\t%rbx, %rdi\n\tcall\t__tsan_write_range\n"


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
        self.assertEqual(added("\tmovq\t%rbx, %rdi\n\tcall\t__tsan_vptr_update\n" + STORE), [])
        self.assertEqual(added(RANGE + STORE + "\tmovups\t%xmm0, 8(%rbx)\n"), [])

    def test_an_announcement_covers_its_bytes_only(self):
        self.assertEqual(added(WRITE + STORE + "\tmovb\t$1, 8(%rbx)\n"), [(1, "8(%rbx)")])
        self.assertEqual(added(WRITE + "\tmovq\t%rax, (%r12)\n" + STORE), [(8, "(%r12)")])
        self.assertEqual(added(RANGE + "\tmovq\t%rax, 24(%rbx)\n" + STORE), [(8, "24(%rbx)")])
        self.assertEqual(added(WRITE + "\tmovups\t%xmm0, (%rbx)\n"), [(16, "(%rbx)")])

    def test_an_announcement_counts_once(self):
        self.assertEqual(added(WRITE + STORE + READ + STORE), [(8, "(%rbx)")])
        other = "\tmovq\t%r12, %rdi\n\tcall\t__tsan_write8\n\tmovq\t%rax, (%r12)\n"
        self.assertEqual(added(WRITE + STORE + other + STORE), [(8, "(%rbx)")])

    def test_a_range_of_unknown_size(self):
        self.assertEqual(added("\tmovl\t$24, %esi\n\tmovl\t%eax, %esi\n" + RANGE[RANGE.index("\tmovq"):] + STORE), [(8, "(%rbx)")])

    def test_addresses_are_followed(self):
        at_8 = "\tleaq\t8(%rbx), %rdi\n\tcall\t__tsan_write8\n"
        for between, operand in (("", "8(%rbx)"), ("\tmovq\t%rbx, %r12\n", "8(%r12)"), ("\taddq\t$8, %rbx\n", "(%rbx)"),
                                 ("\tmovq\t%rbx, 16(%rsp)\n\tmovq\t16(%rsp), %rax\n", "8(%rax)"),
                                 ("\tleaq\t16(%rbx), %r13\n", "-8(%r13)")):
            self.assertEqual(added(at_8 + between + f"\tmovq\t%rdx, {operand}\n"), [], between)
        spilled = "\tmovq\t%rbx, 16(%rsp)\n"
        for between in ("\tmovups\t%xmm0, 8(%rsp)\n", "\tmovl\t$0, 20(%rsp)\n", "\tmovq\t$0, (%rsp,%rcx)\n", "\tpushq\t%rax\n"):
            self.assertIn((8, "8(%rax)"), added(at_8 + spilled + between + "\tmovq\t16(%rsp), %rax\n\tmovq\t%rdx, 8(%rax)\n"), between)
        taken = "\tleaq\t16(%rsp), %r14\n"
        self.assertIn((8, "8(%rax)"), added(at_8 + spilled + taken + "\tmovq\t$0, (%r14)\n\tmovq\t16(%rsp), %rax\n\tmovq\t%rdx, 8(%rax)\n"))
        for between in ("\tmovq\t(%rbx), %rbx\n", "\taddq\t%rax, %rbx\n", "\txorl\t%ebx, %ebx\n", "\tpopq\t%rbx\n"):
            self.assertEqual(added(at_8 + between + "\tmovq\t%rdx, 8(%rbx)\n"), [(8, "8(%rbx)")], between)
        indexed = "\tleaq\t8(%rbx,%r12,8), %rdi\n\tcall\t__tsan_write8\n\tmovq\t%rdx, "
        self.assertEqual(added(indexed + "8(%rbx,%r12,8)\n"), [])
        self.assertEqual(added(indexed + "16(%rbx,%r12,8)\n"), [(8, "16(%rbx,%r12,8)")])
        of_static = "\tmovl\t$total+8, %edi\n\tcall\t__tsan_write8\n\tmovq\t%rdx, "
        self.assertEqual(added(of_static + "total+8(%rip)\n"), [])
        self.assertEqual(added(of_static + "total(%rip)\n"), [(8, "total(%rip)")])

    def test_calls_and_labels_end_an_announcement(self):
        for between in (CALL, "\tcall\t*8(%rax)\n", ".L7:\n", "\tcall\t__tsan_atomic64_load\n"):
            self.assertEqual(added(WRITE + between + STORE), [(8, "(%rbx)")], between)
        for between in (".LEHB2:\n", ".LSIM3:\n", "\tje\t.L3\n", "\t.loc 1 2 3\n"):
            self.assertEqual(added(CALL + WRITE + between + STORE), [], between)

    def test_the_stack_is_left(self):
        self.assertEqual(added(CALL + "\tmovq\t%rbx, 8(%rsp)\n\tmovq\t%rax, (%rsp,%rcx)\n"), [])
        framed = "\tmovq\t%rsp, %rbp\n\t.cfi_def_cfa_register 6\n"
        self.assertEqual(added(framed + CALL + "\tmovq\t%rax, -8(%rbp)\n"), [])
        self.assertEqual(added("\tmovq\t%rsp, %rbp\n" + CALL + "\tmovq\t%rax, -8(%rbp)\n"), [(8, "-8(%rbp)")])

    def test_a_variable_on_the_stack_that_others_may_see(self):
        taken = "\tleaq\t16(%rsp), %rdi\n" + CALL
        self.assertEqual(added(taken + "\tmovq\t%rax, 16(%rsp)\n\tmovq\t%rdx, 24(%rsp)\n"), [(8, "24(%rsp)"), (8, "32(%rsp)")])
        self.assertEqual(added(taken + "\tmovq\t%rax, 8(%rsp)\n"), [])
        self.assertEqual(added(taken + "\tmovl\t$1, %eax\n\tmovq\t%rax, 16(%rsp)\n"), [])  # not a call's result
        framed = "\t.cfi_def_cfa_register 6\n\tleaq\t-32(%rbp), %rdi\n"
        self.assertEqual(added(framed + CALL + "\tmovq\t%xmm0, -32(%rbp)\n"), [(8, "-32(%rbp)")])

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
            ("pextrw\t$1, %xmm0, (%rbx)", 2), ("movnti\t%rax, (%rbx)", 8), ("fstpl\t(%rbx)", 8), ("fstpt\t(%rbx)", 16), ("fistpq\t(%rbx)", 8), ("fisttpq\t(%rbx)", 8),
            ("vextracti64x4\t$1, %zmm0, (%rbx)", 32), ("kmovw\t%k0, (%rbx)", 2), ("vpmovqd\t%zmm0, (%rbx)", 64),
            ("movq\t%rax, (%rbx)\t# the comment, (of) -fverbose-asm", 8),
        ):
            self.assertEqual(added(CALL + f"\t{line}\n"), [(bytes_, "(%rbx)")], line)

    def test_what_stores_nothing(self):
        for line in ("movq\t(%rbx), %rax", "cmpq\t%rax, (%rbx)", "testb\t$1, (%rbx)", "leaq\t(%rbx), %rax", "prefetcht0\t(%rbx)",
                     "divq\t(%rbx)", "pushq\t(%rbx)", "jmp\t*(%rbx)", "fldl\t(%rbx)", "btq\t%rax, (%rbx)", "ucomisd\t(%rbx), %xmm0",
                     "vmovdqu32\t%ymm0, (%rbx){%k1}", "movq\t%rax, %rbx"):
            self.assertEqual(added(CALL + f"\t{line}\n"), [], line)


if __name__ == "__main__":
    unittest.main()
