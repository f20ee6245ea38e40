"""The instrumentation's counting of instructions, on small pieces of assembly."""

import importlib.util
import unittest
from pathlib import Path

SPEC = importlib.util.spec_from_file_location("instrument", Path(__file__).resolve().parents[1] / "instrument.py")
instrument = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(instrument)


def counted(text):
    return "".join(instrument.count_instructions(text.splitlines(keepends=True)))


def added(count, branches=0):
    more = f"\taddq\t${branches}, elidex_sim_instructions+8(%rip)\n" if branches else ""
    return f"\taddq\t${count}, elidex_sim_instructions(%rip)\n" + more


class Counting(unittest.TestCase):
    def test_a_straight_block_is_counted_in_front_of_its_return(self):
        self.assertEqual(counted("f:\n\tmovl\t$1, %eax\n\tret\n"), "f:\n\tmovl\t$1, %eax\n" + added(2) + "\tret\n")

    def test_a_block_that_ends_with_a_branch_is_counted_in_front_of_the_comparison(self):
        self.assertEqual(counted("\tmovl\t(%rdi), %eax\n\tcmpl\t$3, %eax\n\tjne\t.L2\n.L1:\n\tret\n"),
                         "\tmovl\t(%rdi), %eax\n" + added(3, 1) + "\tcmpl\t$3, %eax\n\tjne\t.L2\n.L1:\n" + added(1) + "\tret\n")

    def test_flags_that_are_still_needed_are_not_changed(self):
        for flags_live in ("\tsbbl\t%eax, %eax\n\tjmp\t.L1\n", "\taddsd\t%xmm0, %xmm1\n\tje\t.L1\n",
                           "\tadcq\t$0, %rax\n\tincl\t%ecx\n\tjc\t.L1\n", "\tmovl\t$1, %eax\n\tjmp\t*%rax\n"):
            self.assertEqual(counted(flags_live + ".L1:\n"), flags_live + ".L1:\n")

    def test_calls_of_the_machine_and_their_arguments_are_not_counted(self):
        self.assertEqual(counted("\tmovq\t%rbx, %rdi\n\tcall\t__tsan_read8\n\tmovq\t(%rbx), %rax\n\tret\n"),
                         "\tmovq\t%rbx, %rdi\n\tcall\t__tsan_read8\n\tmovq\t(%rbx), %rax\n" + added(2) + "\tret\n")

    def test_an_atomic_access_is_one_instruction(self):
        text = "\tmovl\t$2, %esi\n\tmovq\t%rbx, %rdi\n\tcall\t__tsan_atomic64_load\n"
        self.assertEqual(counted(text), text.replace("\tcall", added(1) + "\tcall"))

    def test_other_calls_are_counted_and_tail_calls_too(self):
        self.assertEqual(counted("\tcall\tg\n\tjmp\tg\n"), added(1) + "\tcall\tg\n" + added(1) + "\tjmp\tg\n")

    def test_the_sequence_of_a_thread_local_address_stays_whole(self):
        text = "\tdata16\tleaq\tx@tlsgd(%rip), %rdi\n\trex64\n\tcall\t__tls_get_addr@PLT\n"
        self.assertEqual(counted(text + "\tret\n"), text + added(4) + "\tret\n")

    def test_labels_of_exceptions_do_not_end_a_block(self):
        self.assertEqual(counted("\tmovl\t%eax, %ebx\n.LEHB0:\n\tcall\tg\n.LEHE0:\n"),
                         "\tmovl\t%eax, %ebx\n.LEHB0:\n" + added(2) + "\tcall\tg\n.LEHE0:\n")

    def test_nothing_is_added_inside_of_assembly(self):
        text = "#APP\n\tcmpl\t%eax, %ebx\n\tpause\n#NO_APP\n"
        self.assertEqual(counted(text + "\tret\n"), text + added(3) + "\tret\n")


if __name__ == "__main__":
    unittest.main()
