"""The site's own scripts, and that every public function has an entry in the reference."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SITE = ROOT / "docs" / "site"
sys.path[:0] = [str(SITE), str(ROOT / "checks" / "misuse")]
import cli  # noqa: E402
import header_text  # noqa: E402
import links  # noqa: E402
import snippets  # noqa: E402
import stage  # noqa: E402

try:
    import clang.cindex  # noqa: F401
    import build_site
    import reference
    LIBCLANG = True
except ImportError:
    LIBCLANG = False

BUILD = Path(os.environ.get("ELIDEX_BUILD") or ROOT / "build" / "release")
LIBRARY, TOOL = BUILD / "src" / "libelidex.a", BUILD / "cli" / "elidex"


class HeaderText(unittest.TestCase):
    def test_a_list_of_terms_is_a_table(self):
        made = header_text.markdown(["Errors:", "  std::bad_alloc     no memory,", "                     at all",
                                     "  std::out_of_range  at() of an absent key"])
        self.assertIn("| `std::bad_alloc` | no memory, at all |", made)
        self.assertIn("### Errors", made)

    def test_a_term_of_a_table_may_have_no_explanation(self):
        made = header_text.markdown(["Others:", "  log_error       a damaged directory; problem() says which", "  std::bad_alloc"])
        self.assertIn("| `std::bad_alloc` |  |", made)

    def test_an_example_is_code(self):
        self.assertIn("```cpp\nmap.insert(1, 2);\n```", header_text.markdown(["A map.", "", "  map.insert(1, 2);"]))

    def test_the_implementation_notes_are_left_out(self):
        self.assertEqual(header_text.markdown(["A map.", "", "Implementation notes", "A proof."]), "A map.")

    def test_names_are_code_and_links(self):
        self.assertEqual(header_text.inline("get() of std::string, a < b", {"get": "map-get"}),
                         "[`get()`](#map-get) of `std::string`, a &lt; b")

    def test_a_name_keeps_its_case_after_a_label(self):
        self.assertEqual(header_text.capitalized("std::bad_alloc, and more"), "std::bad_alloc, and more")
        self.assertEqual(header_text.capitalized("any thread"), "Any thread")


class Staging(unittest.TestCase):
    def test_indented_code_becomes_a_fence(self):
        self.assertEqual(stage.for_python_markdown("Text:\n\n    ./x\n\n    ./y\n\nEnd"),
                         "Text:\n\n```text\n./x\n\n./y\n```\n\nEnd")

    def test_a_list_or_table_below_a_paragraph_gets_a_blank_line(self):
        self.assertEqual(stage.for_python_markdown("Text:\n- a\n- b"), "Text:\n\n- a\n- b")
        self.assertEqual(stage.for_python_markdown("Text:\n| a |\n| - |"), "Text:\n\n| a |\n| - |")

    def test_links_to_sources_lead_to_copies_in_the_site(self):
        staged = stage.Stage(Path("unused"))
        self.assertEqual(staged.page("[`m`](../include/elidex/mutex.hpp)", "docs/MAPS.md", "MAPS.md"),
                         "[`m`](source/include/elidex/mutex.hpp.md)")
        self.assertEqual(staged.page("[x](../README.md#use-it) `[](a)`", "docs/MAPS.md", "MAPS.md"),
                         "[x](project.md#use-it) `[](a)`")
        with self.assertRaises(ValueError):
            staged.page("[x](nothing.md)", "docs/MAPS.md", "MAPS.md")


class Links(unittest.TestCase):
    def test_it_finds_a_missing_file_an_anchor_and_a_load_from_the_network(self):
        with tempfile.TemporaryDirectory() as directory:
            Path(directory, "a.html").write_text(
                '<p id="x"><a href="b.html"></a><a href="#x"></a><a href="#y"></a><script src="https://a/b"></script>')
            pages, checked, complaints = links.check(Path(directory))
        self.assertEqual((pages, checked), (1, 3))
        self.assertEqual(complaints, ["a.html: loads https://a/b from the network", "a.html: no file for b.html",
                                      "a.html: no anchor for #y"])


class Snippets(unittest.TestCase):
    PAGE = ("```cpp\n#include <map>\nint main() {}\n```\n\n```output\n2\n```\n\n```output\n3\n```\n"
            "```cpp\nint main() {\n}\n```\n```text\nno\n```\n")

    def test_it_finds_the_snippets_of_a_page(self):
        first, second = snippets.snippets_of("docs/a.md", self.PAGE)
        self.assertEqual((first.line, first.text, first.output), (2, "#include <map>\nint main() {}\n", "2\n3\n"))
        self.assertTrue(second.line == 14 and second.output is None)
        with self.assertRaises(ValueError):
            snippets.snippets_of("docs/a.md", "```output\n1\n```\n")

    def lacks(self, code):
        return list(snippets.incomplete(snippets.Snippet("docs/a.md", 2, code)))

    def test_a_program_that_a_reader_cannot_copy_as_printed_is_an_error(self):
        main = "int main() { std::cout << 1; }\n"
        self.assertEqual(self.lacks("#include <iostream>\n" + main), [])
        self.assertEqual(self.lacks(main), ["docs/a.md:2: std::cout needs #include <iostream>"])
        self.assertEqual(self.lacks("map.insert(1, 2);\n"), ["docs/a.md:2: not a whole program: it has no main()"])
        self.assertEqual(self.lacks("int main() { std::no_such_name x; }\n"),
                         ["docs/a.md:2: std::no_such_name: add it to NAMES in docs/site/snippets.py"])
        self.assertEqual(self.lacks('int main() { puts("std::cout"); }  // std::thread\n'), [])

    def test_a_public_header_gives_the_headers_that_it_includes_itself(self):
        main = "int main() { std::string name; }\n"
        self.assertEqual(self.lacks('#include "elidex/ordered_map.hpp"\n' + main), [])
        self.assertEqual(self.lacks('#include "elidex/version.hpp"\n' + main),
                         ["docs/a.md:2: std::string needs #include <string>"])

    def test_programs_are_compiled_with_their_own_headers_only(self):
        found = snippets.snippets_of("docs/a.md", "```cpp\n#include <map>\nint main() {\n}\n```\n")
        self.assertEqual([line for line in snippets.unit(found).splitlines() if line.startswith("#include")],
                         ["#include <map>", "#include <cstdlib>"])  # the last one is the runner's, below the program

    def test_a_snippet_that_prints_something_else_or_does_not_compile_is_an_error(self):
        with tempfile.TemporaryDirectory() as directory:
            archive = Path(directory, "empty.a")
            subprocess.run(["ar", "rc", archive], check=True)
            found = snippets.snippets_of(
                "docs/a.md", "```cpp\n#include <iostream>\nint main() { std::cout << 1; }\n```\n```output\n2\n```\n")
            program, complaint = snippets.compiled(snippets.unit(found), archive, b"")
            self.assertIsNone(complaint)
            self.assertIn("docs/a.md:2: prints", snippets.difference(program, 0, found[0]))
            wrong = snippets.snippets_of("docs/a.md", "```cpp\nint main() {\nnothing();\n}\n```\n")
            self.assertRegex(snippets.compiled(snippets.unit(wrong), archive, b"")[1], r"docs/a.md:3:")

    @unittest.skipUnless(shutil.which("clang-format-19"), "no clang-format-19; ./dev lint installs it")
    def test_snippets_have_the_project_s_format(self):
        for page in snippets.pages():
            self.assertEqual(page.read_text(), snippets.formatted(page.read_text()), "snippets.py --format")

    @unittest.skipUnless(LIBRARY.exists(), "build/release has no library; ./dev build makes it")
    def test_the_snippets_of_all_pages(self):
        total, complaints = snippets.check(LIBRARY, snippets.cpus())
        self.assertEqual(complaints, [])
        self.assertGreater(total, 45)


@unittest.skipUnless(LIBCLANG, "no libclang; ./dev docs installs it, and checks the same")
class Site(unittest.TestCase):
    def test_links_and_spelling(self):
        build_site.build(reference.read())
        pages, checked, complaints = links.check(build_site.OUT)
        self.assertEqual(complaints + build_site.spelling(), [])
        self.assertGreater(checked, 10 * pages)
        tasks = {page: distance for page, distance in links.clicks(build_site.OUT).items() if page.startswith("cookbook/")}
        self.assertEqual(len(tasks), len(list((ROOT / "docs" / "cookbook").glob("*.md"))))
        self.assertLessEqual(max(tasks.values()), 3)


class Pages(unittest.TestCase):
    def test_every_task_of_the_cookbook_is_in_its_table_and_in_the_navigation(self):
        table = (ROOT / "docs" / "cookbook" / "index.md").read_text()
        navigation = (SITE / "mkdocs.yml").read_text()
        tasks = [path.name for path in (ROOT / "docs" / "cookbook").glob("*.md") if path.name != "index.md"]
        self.assertGreaterEqual(len(tasks), 25)
        for task in tasks:
            self.assertIn(f"]({task})", table)
            self.assertIn(f" cookbook/{task}\n", navigation)

    @unittest.skipUnless(TOOL.exists(), "build/release has no tool; ./dev build makes it")
    def test_the_page_of_the_command_line_has_the_help_texts(self):
        self.assertEqual(cli.PAGE.read_text(), cli.page_of(TOOL), "python3 docs/site/cli.py writes it")


@unittest.skipUnless(LIBCLANG, "no libclang; ./dev docs installs it, and checks the same")
class Reference(unittest.TestCase):
    def test_every_public_function_has_an_entry(self):
        self.assertEqual(reference.missing(reference.names(reference.read())), [])

    def test_every_public_function_has_a_text(self):
        self.assertEqual(list(reference.without_text(reference.read())), [])

    def test_the_check_can_fail(self):
        self.assertIn("hash_map::get", reference.missing(reference.names(reference.read()) - {"hash_map::get"}))


if __name__ == "__main__":
    unittest.main()
