"""The page and the check that every public function has a row."""

import shutil
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import public_api
import public_functions
import table
from table import Row

# As clang prints it: a class template with overloads, private functions and nested classes, two of
# which are defined outside of it; and a function outside of classes.
TREE = """\
Dumping elidex:
NamespaceDecl 0x1 </usr/include/c++/12/new:3:1, include/elidex/made_up.hpp:90:1> line:3:11 elidex
|-ClassTemplateDecl 0x2 <line:5:1, line:60:1> line:6:7 shelf
| |-TemplateTypeParmDecl 0x3 <line:5:11, col:17> col:17 class depth 0 index 0 T
| |-CXXRecordDecl 0x4 <line:6:1, line:60:1> line:6:7 class shelf definition
| | |-DefinitionData empty
| | |-CXXRecordDecl 0x5 <col:1, col:7> col:7 implicit class shelf
| | |-CXXMethodDecl 0x6 <line:7:3, col:20> col:8 of_the_class 'void ()'
| | |-AccessSpecDecl 0x7 <line:8:2, col:8> col:2 public
| | |-CXXConstructorDecl 0x8 <line:9:3, col:9> col:3 shelf<T> 'void ()'
| | |-CXXConstructorDecl 0x9 <line:10:3, col:48> col:3 shelf<T> 'void (const shelf<T> &)' delete
| | |-FunctionTemplateDecl 0xa <line:11:3, line:12:3> line:11:8 visit
| | | |-TemplateTypeParmDecl 0xb <col:3, col:9> col:9 referenced class depth 1 index 0 Fn
| | | `-CXXMethodDecl 0xc <line:11:3, line:12:3> line:11:8 visit 'void (Fn &&) const'
| | |-CXXMethodDecl 0xd <line:13:3, col:20> col:8 used put 'bool (int)'
| | |-CXXMethodDecl 0xe <line:14:3, col:20> col:8 put 'bool (int, int)'
| | |-CXXRecordDecl 0xf <line:15:3, line:20:3> line:15:10 struct nested definition
| | | `-CXXMethodDecl 0x10 <line:16:3, col:20> col:8 inner 'void ()'
| | |-CXXRecordDecl 0x1e <line:21:3, col:9> col:9 referenced class drawer
| | |-AccessSpecDecl 0x11 <line:30:2, col:8> col:2 private
| | |-CXXRecordDecl 0x12 <line:31:3, line:40:3> line:31:10 struct hidden definition
| | | `-CXXMethodDecl 0x13 <line:32:3, col:20> col:8 inside_private 'void ()'
| | |-CXXRecordDecl 0x21 <line:40:3, col:10> col:10 struct secret
| | `-CXXMethodDecl 0x14 <line:41:3, col:20> col:8 kept 'void ()'
| `-ClassTemplateSpecializationDecl 0x15 <line:5:1, line:60:1> line:6:7 class shelf definition
|   `-CXXMethodDecl 0x16 <line:13:3, col:20> col:8 of_an_instance 'bool (int)'
|-CXXMethodDecl 0x1b parent 0x4 prev 0xd <line:61:1, line:62:1> line:61:8 put 'bool (int)'
|-CXXRecordDecl 0x1c parent 0x4 prev 0x1e <line:63:1, line:66:1> line:63:14 class drawer definition
| |-AccessSpecDecl 0x1d <line:64:2, col:8> col:2 public
| `-CXXMethodDecl 0x1f <line:65:3, col:20> col:8 open 'void ()'
|-CXXRecordDecl 0x20 parent 0x4 prev 0x21 <line:67:1, line:69:1> line:67:15 struct secret definition
| `-CXXMethodDecl 0x22 <line:68:3, col:20> col:8 inside_secret 'void ()'
|-FunctionDecl 0x17 <line:70:1, col:20> col:6 free_function 'void (int)'
|-NamespaceDecl 0x18 <line:71:1, line:75:1> line:71:11 internal
| `-FunctionDecl 0x19 <line:72:1, col:20> col:6 internal 'void (int)'
`-FunctionDecl 0x1a <include/elidex/other.hpp:1:1, col:20> col:6 of_another_header 'void (int)'
""".splitlines()


class PublicFunctions(unittest.TestCase):
    def functions(self):
        return public_functions.public_functions(TREE, ["elidex/made_up.hpp"])

    def test_what_is_public(self):
        self.assertEqual(sorted(self.functions()),
                         ["free_function", "shelf::drawer::open", "shelf::nested::inner",
                          "shelf::put", "shelf::shelf", "shelf::visit"])
        self.assertEqual(self.functions()["shelf::put"], ["bool (int)", "bool (int, int)"])

    def test_a_class_under_another_name(self):
        with mock.patch.dict(public_api.NAMES, {"elidex::shelf": "board"}):
            self.assertIn("board::put", self.functions())
            self.assertIn("board::board", self.functions())
            self.assertIn("board::nested::inner", self.functions())

    def test_a_base_class_of_two_classes(self):
        with mock.patch.dict(public_api.NAMES, {"elidex::shelf": ("board", "rack")}):
            self.assertLessEqual({"board::put", "board::board", "rack::put", "rack::rack"},
                                 set(self.functions()))

    def complaints(self, rows, excuses):
        with mock.patch.object(public_api, "NOTHING_TO_MISUSE", excuses):
            return list(public_functions.complaints(self.functions(), rows))

    def test_a_function_without_a_row_is_found(self):
        rows = [Row("shelf::put", "bad argument", "false"),
                Row("shelf::visit", "re-entrance", "works")]
        found = self.complaints(rows, {"values": ("shelf::*::*", "shelf::shelf")})
        self.assertEqual(found, ["free_function: a public function without a row in docs/MISUSE.md",
                                 "shelf::visit: no row for: callback throws"])

    def test_a_row_or_an_excuse_of_nothing_is_found(self):
        rows = [Row("shelf::gone", "bad argument", "false")]
        found = self.complaints(rows, {"values": ("shelf::*", "free_function", "board::*")})
        self.assertEqual(found, [
            "shelf::gone: a row for what is no public function",
            "board::*: excused in public_api.py, and there is no such public function"])

    def test_an_internal_type_in_a_signature_is_found(self):
        with mock.patch.object(public_api, "NOTHING_TO_MISUSE", {"values": ("shelf::put",)}):
            found = list(public_functions.complaints({"shelf::put": ["void (internal::record *)"]}, []))
            with mock.patch.dict(public_api.NAMES, {"elidex::internal::record": "record"}):
                self.assertFalse(public_functions.names_internal_type("void (internal::record *)"))
        self.assertEqual(found, ["shelf::put: a public signature names an internal type"])

    def test_of_the_inside_only_what_a_public_header_names(self):
        inside = [public_functions.Function(f"elidex::internal::{name}", "include/elidex/made_up.hpp")
                  for name in ("synchronization::all", "btree::get", "map_face::get", "row::set")]
        with mock.patch.object(public_functions, "named_for_users", lambda: {"row"}):
            self.assertEqual([public_functions.users_names(one, ["elidex/made_up.hpp"]) for one in inside],
                             [[], [], ["hash_map::get", "ordered_map::get"], ["row::set"]])

    def test_kinds_that_a_class_asks_for(self):
        with mock.patch.dict(public_api.KINDS, {"shelf": {"closed object"}}):
            excuses = {"values": ("shelf::[vs]*", "shelf::*::*", "free_function")}
            found = self.complaints([Row("shelf::put", "bad argument", "false")], excuses)
        self.assertEqual(found, ["shelf::put: no row for: closed object"])

    @unittest.skipUnless(shutil.which("clang++-19"), "no clang++-19: ./dev lint installs it")
    def test_clang_finds_the_canary(self):
        lines = public_functions.dump([public_functions.CANARY], ["."])
        found = public_functions.public_functions(lines, [public_functions.CANARY])
        self.assertEqual(sorted(found), sorted(public_functions.CANARY_FUNCTIONS))


class Page(unittest.TestCase):
    rows = [Row("shelf::put", "bad argument", "false | nothing"),
            Row("shelf::visit", "re-entrance", "waits for itself", "elidex/made_up.hpp",
                "must not use the shelf")]

    def test_rows_are_read_back(self):
        text = table.page(self.rows)
        link = "[made_up.hpp](../include/elidex/made_up.hpp)"
        self.assertIn(f"**Undefined**: waits for itself ({link})", text)
        self.assertEqual([(row.function, row.kind) for row in table.read_page(text)],
                         [(row.function, row.kind) for row in self.rows])

    def test_rows_come_once_and_in_order(self):
        text = "b\tre-entrance\tworks\t\t\na\tre-entrance\tworks\t\t\nb\tre-entrance\tworks\t\t\n"
        self.assertEqual([row.function for row in table.read_rows(text)], ["a", "b"])

    def test_a_promise_that_is_gone_is_found(self):
        with tempfile.TemporaryDirectory() as directory:
            header = Path(directory) / "elidex" / "made_up.hpp"
            header.parent.mkdir()
            header.write_text("  // fn must not\n  // use the shelf, ever.\n")
            self.assertEqual(list(table.broken_promises(self.rows, Path(directory))), [])
            header.write_text("// fn may use the shelf\n")
            self.assertEqual(list(table.broken_promises(self.rows, Path(directory))),
                             ["shelf::visit: elidex/made_up.hpp does not say "
                              '"must not use the shelf"'])

    def test_a_page_that_differs_is_found(self):
        now = table.page(self.rows)
        before = table.page(self.rows[:1])
        self.assertEqual(len(list(table.differences(now, before))), 1)
        self.assertEqual(list(table.differences(now, now)), [])


if __name__ == "__main__":
    unittest.main()
