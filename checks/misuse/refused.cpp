// Calls that the compiler must refuse, each below what it must say (refused.py). Never linked.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "elidex/database.hpp"
#include "elidex/hash_map.hpp"
#include "elidex/ordered_map.hpp"

using namespace elidex;
using number = std::unique_ptr<int>;

void of_values_that_cannot_be_copied(ordered_map<std::string, number>& map,
                                     hash_map<int, number>& hash) {
  // ordered_map::get | "get() copies the value: use visit() or extract()"
  static_cast<void>(map.get("a"));
  // ordered_map::at | "at() copies the value: use visit() or extract()"
  static_cast<void>(map.at("a"));
  // ordered_map::get_or_insert | "get_or_insert() copies the value: use try_emplace()"
  map.get_or_insert("a", [] { return number(); });
  // ordered_map::update | "update() changes a copy: use std::shared_ptr values"
  map.update("a", [](number&) {});
  // ordered_map::upsert_with | "upsert_with() changes a copy: use std::shared_ptr values"
  map.upsert_with("a", [] { return number(); }, [](number&) {});
  // ordered_map::compute | "compute() changes a copy: use std::shared_ptr values"
  map.compute("a", [](std::optional<number>&) {});
  // hash_map::upsert_with | "upsert_with() changes a copy: use std::shared_ptr values"
  hash.upsert_with(1, [] { return number(); }, [](number&) {});
  // ordered_map::range | "range() copies the values: use scan()"
  map.range(all);
  // ordered_map::front | "this copies the value: use scan_n()"
  static_cast<void>(map.front());
  // ordered_map::cursor | "a cursor copies the values: use scan()"
  static_cast<void>(map.cursor());
}

void of_a_key_in_place_of_bounds(ordered_map<std::string, int>& map) {
  // ordered_map::scan | "scan() takes bounds, such as from(key)"
  map.scan("a", [](auto&&...) {});
  // ordered_map::range | "range() takes bounds, or two keys"
  map.range("a");
}

void of_other_arguments(ordered_map<std::string, int>& map,
                        ordered_map<std::pair<int, std::string>, int>& pairs) {
  // ordered_map::erase | "erase() takes a key or bounds"
  map.erase(1);
  // ordered_map::scan_n | "scan_n() takes bounds or a key"
  map.scan_n(1, 1, [](auto&&...) {});
  // ordered_map::scan | "bounds have the type of the map's keys, or one that converts to it"
  map.scan(from(1), [](auto&&...) {});
  // ordered_map::scan | "the prefix of a string is one string"
  map.scan(prefix("a", "b"), [](auto&&...) {});
  // ordered_map::scan | "the members of the prefix are no members of the keys"
  map.scan(prefix(1), [](auto&&...) {});
  // ordered_map::erase | "the members of the prefix are no members of the keys"
  pairs.erase(prefix(1, 2));
  // ordered_map::erase | "the bounds of integer keys are integers"
  pairs.erase(prefix(2.5));
  // ordered_map::range | "the bounds of integer keys are integers"
  pairs.range(from(std::pair(2.5F, "a")));
  // ordered_map::try_emplace | "the value cannot be constructed from these arguments"
  map.try_emplace("a", "b");
  // ordered_map::update | "the function takes a Value&"
  map.update("a", [](const std::string&) {});
  // ordered_map::update | "the function takes a Value& or auto&: what it does to a copy is lost"
  map.update("a", [](int n) { ++n; });
  // ordered_map::erase_if | "the function takes a const Value& and returns a bool"
  map.erase_if("a", [](int) {});
  // ordered_map::visit | "the function takes a const Value&, or for strings a std::string_view"
  map.visit("a", [](const std::string&) {});
  // ordered_map::scan | "a visitor takes a key and a value: const references, or views of strings"
  map.scan(all, [](const std::string&, int) {});
  // ordered_map::get_or_insert | "the value is a Value, or a function that returns one"
  map.get_or_insert("a", "no number");
  // ordered_map::multi_erase | "the range has no keys of the map"
  map.multi_erase(std::vector<int>{1});
  // ordered_map::bulk_load | "bulk_load() takes pairs: key and value"
  map.bulk_load(std::vector<std::string>{"a"});
  // ordered_map::count | "count() takes bounds, such as from(key): for one key, use contains()"
  static_cast<void>(map.count("a"));
  // ordered_map::compute | "the function takes a std::optional<Value>&"
  map.compute("a", [](int) {});
  // ordered_map::compute | "the function takes a reference: what it does to a copy is lost"
  map.compute("a", [](std::optional<int>) {});
}

struct person {
  int age;
};

void of_values_of_an_index(database::indexed_table<int, person>& people) {
  // indexed_table::add_index | "an index has integers, doubles or strings, such as ordered_key's"
  people.add_index<std::optional<int>>("by age", [](int, const person& one) { return one.age; });
}
