"""Each rule finds a planted violation, and does not find one where there is none."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import style  # noqa: E402

CLEAN_HEADER = "// Purpose.\n#pragma once\n"


def found(path, text):
    return list(style.violations(style.SourceFile(path, text.split("\n"))))


class Rules(unittest.TestCase):
    def assert_found(self, path, text, words):
        self.assertTrue(any(words in line for line in found(path, text)), found(path, text))

    def test_clean_header_passes(self):
        self.assertEqual(found("include/elidex/internal/a.hpp", CLEAN_HEADER), [])

    def test_weak_order_needs_its_partner(self):
        weak = CLEAN_HEADER + "int x = a.load(std::memory_order_relaxed);\n"
        self.assert_found("include/elidex/a.hpp", weak, "partner")
        named = CLEAN_HEADER + "// relaxed: pairs with the store in f().\nint x = a.load(std::memory_order_relaxed);\n"
        self.assertEqual(found("include/elidex/internal/a.hpp", named), [])
        strong = CLEAN_HEADER + "int x = a.load(std::memory_order_seq_cst);\n"
        self.assertEqual(found("include/elidex/internal/a.hpp", strong), [])

    def test_transactions_live_in_one_header(self):
        self.assert_found("include/elidex/a.hpp", CLEAN_HEADER + "auto s = _xbegin();\n", "only htm.hpp")
        self.assert_found("include/elidex/a.hpp", CLEAN_HEADER + "#include <immintrin.h>\n", "key_search.hpp")

    def test_namespaces_of_headers(self):
        taken = CLEAN_HEADER + "namespace elidex::bench {\nusing namespace internal;\n}\n"
        self.assertEqual(found("bench/a.hpp", taken), [])
        self.assert_found("include/elidex/internal/a.hpp", taken, "no `using namespace`")
        self.assert_found("bench/a.hpp", CLEAN_HEADER + "using namespace internal;\n", "no `using namespace`")
        self.assert_found("bench/a.hpp", taken.replace("internal", "std"), "no `using namespace`")
        self.assert_found("include/elidex/internal/a.hpp", CLEAN_HEADER + "namespace elidex::db {\n}\n",
                          "is in namespace elidex::internal")

    def test_library_depends_on_nothing(self):
        self.assert_found("src/a.cpp", "#include <tbb/spin_rw_mutex.h>\n", "does not depend")
        self.assert_found("src/a.cpp", "#include <iostream>\n", "never prints")
        self.assert_found("src/a.cpp", "void f() { std::exit(1); }\n", "never prints or exits")
        self.assertEqual(found("bench/a.cpp", "#include <tbb/spin_rw_mutex.h>\n"), [])

    def test_waiters_do_not_yield(self):
        self.assert_found("src/a.cpp", "std::this_thread::yield();\n", "does not yield")
        self.assert_found("src/a.cpp", "  wait.once_or_yield();\n", "before a sleep")
        self.assertEqual(found("src/sleeping_lock.cpp", "  wait.once_or_yield();\n"), [])
        self.assertEqual(found("bench/a.cpp", "std::this_thread::yield();\n"), [])

    def test_headers(self):
        self.assert_found("bench/a.hpp", "// Purpose.\n", "#pragma once")
        self.assert_found("bench/a.hpp", "#pragma once\n", "purpose")
        self.assert_found("bench/a.hpp", CLEAN_HEADER + "using namespace std;\n", "using namespace")

    def test_wall(self):
        self.assert_found("include/elidex/a.hpp", CLEAN_HEADER, "belongs in internal/")
        self.assertEqual(found("include/elidex/internal/tree/a.hpp", CLEAN_HEADER), [])
        self.assert_found("src/a.cpp", '#include "papers/eunomia/masstree.hpp"\n', "src/ does not include")
        self.assert_found("machine/a.cpp", '#include "elidex/htm.hpp"\n', "machine/ does not include")
        self.assert_found("examples/a.cpp", '#include "elidex/internal/sync/pause.hpp"\n', "public headers only")
        self.assert_found("include/elidex/internal/tree/a.hpp", CLEAN_HEADER + "class masstree;\n", "a paper's word")
        self.assertEqual(found("bench/a.cpp", '#include "papers/eunomia/masstree.hpp"\n'), [])

    def test_leftovers_names_and_length(self):
        self.assert_found("src/a.cpp", "// TODO: later\n", "leftover")
        self.assert_found("src/a.cpp", "int x; \n", "white space")
        self.assert_found("src/CamelCase.cpp", "", "snake_case")
        self.assert_found("src/a.cpp", "int " + "x" * 100 + ";\n", "columns")

    def test_functions_are_short(self):
        body = "  ++x;\n" * style.FUNCTION_LINES_MAX
        for head in ("void f() {", "TEST(A, B) {", "template <class T>\nint f(int a,\n      int b) {"):
            self.assert_found("src/a.cpp", head + "\n" + body + "}\n", "a function of")
        self.assert_found("src/a.cpp", "class a {\n  void f() {\n" + body + "  }\n};\n", "a function of")
        self.assertEqual(found("src/a.cpp", "class a {\n" + body + "};\nvoid f() {\n}\n"), [])
        self.assertEqual(found("src/a.cpp", "namespace a {\n" + "void f() {\n  ++x;\n}\n" * 40 + "}\n"), [])


if __name__ == "__main__":
    unittest.main()
