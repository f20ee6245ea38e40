"""Which loads an access's address needs, on small pieces of assembly."""

import importlib.util
import re
import unittest
from pathlib import Path

SPEC = importlib.util.spec_from_file_location("dependences", Path(__file__).resolve().parents[1] / "dependences.py")
dependences = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(dependences)

READ, ATOMIC, WRITE = "\tcall\t__tsan_read8\n", "\tcall\t__tsan_atomic64_load\n", "\tcall\t__tsan_write8\n"


def function(body, name="f", section="\t.text\n"):
    return f"{section}\t.type\t{name}, @function\n{name}:\n{body}\tret\n\t.size\t{name}, .-{name}\n"


def needs(body):
    """access -> the loads that its address needs, both by their order in the text."""
    lines = "".join(dependences.add_dependences(function(body).splitlines(keepends=True))).split("\n")
    calls, order = {}, 0
    for line, following in zip(lines, [*lines[1:], ""]):
        if "__tsan" in line:
            order += 1
            if following.startswith(".LSIM"):
                calls[following.rstrip(":")] = order
    found = {}
    for one, other in re.findall(r"\.long\t(\S+), (\S+)", "\n".join(lines)):
        found.setdefault(calls[one], set()).add(calls[other])
    return found


class Dependences(unittest.TestCase):
    def test_a_loaded_value_becomes_an_address(self):
        self.assertEqual(needs(READ + "\tmovq\t(%rdi), %rdi\n" + READ), {2: {1}})

    def test_an_atomic_load_answers_in_a_register(self):
        self.assertEqual(needs(ATOMIC + "\tleaq\t8(%rbx,%rax,8), %rdi\n" + ATOMIC), {2: {1}})

    def test_a_store_needs_its_address_too_and_brings_nothing(self):
        self.assertEqual(needs(ATOMIC + "\tmovq\t%rax, %rdi\n" + WRITE + "\tmovq\t%rax, %rdi\n" + READ), {2: {1}, 3: {1}})

    def test_what_is_overwritten_is_forgotten(self):
        for forgets in ("xorl\t%eax, %eax", "movl\t$3, %eax", "leaq\t8(%rbx), %rax", "movq\t%r12, %rax", "popq\t%rax"):
            self.assertEqual(needs(ATOMIC + f"\t{forgets}\n\tmovq\t%rax, %rdi\n" + READ), {}, forgets)

    def test_arithmetic_keeps_both(self):
        body = ATOMIC + "\tmovq\t%rax, %r12\n" + ATOMIC + "\taddq\t%r12, %rax\n\tshlq\t$3, %rax\n\tmovq\t%rax, %rdi\n" + READ
        self.assertEqual(needs(body), {3: {1, 2}})

    def test_a_move_on_a_condition_needs_what_was_compared(self):
        body = ATOMIC + "\tcmpq\t%rax, %r14\n\tcmovnb\t%ebx, %ebp\n\tleaq\t(%r13,%rbp,8), %rdi\n" + ATOMIC
        self.assertEqual(needs(body), {2: {1}})

    def test_a_branch_on_a_loaded_value_is_no_dependence(self):
        body = ATOMIC + "\tcmpq\t%rax, %r14\n\tjb\t.L2\n\taddq\t$8, %rbx\n.L2:\n\tmovq\t%rbx, %rdi\n" + ATOMIC
        self.assertEqual(needs(body), {})

    def test_a_loop_carries_values_around(self):
        body = ".L3:\n\tmovq\t%rbx, %rdi\n" + READ + "\tmovq\t(%rbx), %rbx\n\ttestq\t%rbx, %rbx\n\tjne\t.L3\n"
        self.assertEqual(needs(body), {1: {1}})

    def test_slots_of_the_stack_are_followed(self):
        body = ATOMIC + "\tmovq\t%rax, 24(%rsp)\n\txorl\t%eax, %eax\n\tmovq\t24(%rsp), %rdi\n" + READ
        self.assertEqual(needs(body), {2: {1}})

    def test_what_a_function_returns_is_not_followed(self):
        self.assertEqual(needs(ATOMIC + "\tcall\tg\n\tmovq\t%rax, %rdi\n" + READ), {})

    def test_memory_that_was_not_announced_is_no_load(self):
        for other in ("movzbl\ttable(%rbx), %eax", "movsd\t.LC0(%rip), %xmm0", "movq\t8(%rsp), %rax"):
            body = READ + f"\tmovq\t(%rbx), %rcx\n\t{other}\n\tmovq\t%rax, %rdi\n" + READ
            self.assertEqual(needs(body), {}, other)
        framed = "\tmovq\t%rsp, %rbp\n" + READ + "\tmovq\t(%rbx), %rcx\n\tmovq\t-8(%rbp), %rdi\n" + READ
        self.assertEqual(needs(framed), {})
        kept = "\tmovq\t%rsp, %rbp\n" + ATOMIC + "\tmovq\t%rax, -8(%rbp)\n\tmovq\t-8(%rbp), %rdi\n" + READ
        self.assertEqual(needs(kept), {2: {1}})

    def test_the_part_that_runs_seldom_belongs_to_the_function(self):
        cold = "\t.section\t.text.unlikely\n\t.type\tf.cold, @function\nf.cold:\n.L9:\n\tmovq\t%rbx, %rdi\n" + WRITE + "\tjmp\t.L2\n\t.text\n"
        body = ATOMIC + "\tmovq\t%rax, %rbx\n\tje\t.L9\n.L2:\n\tmovq\t%rbx, %rdi\n" + READ + "\tret\n" + cold
        self.assertEqual(needs(body), {2: {1}, 3: {1}})

    def test_functions_know_nothing_of_each_other(self):
        text = function(ATOMIC) + function("\tmovq\t%rax, %rdi\n" + READ, "g")
        self.assertNotIn("LSIM", "".join(dependences.add_dependences(text.splitlines(keepends=True))))

    def test_the_section_stays_with_a_function_that_the_linker_may_drop(self):
        text = function(READ + "\tmovq\t(%rdi), %rdi\n" + READ,
                        section='\t.section\t.text._Z1fv,"axG",@progbits,_Z1fv,comdat\n')
        made = "".join(dependences.add_dependences(text.splitlines(keepends=True)))
        self.assertIn('\t.pushsection\telidex_sim_dependences,"aG",@progbits,_Z1fv,comdat\n', made)


if __name__ == "__main__":
    unittest.main()
