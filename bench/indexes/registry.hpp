#pragma once
// Every index by its registry name. An index is one source file in this directory that defines its
// info function; adding one is that file and one line in registry.cpp.
//
//   const index_info* index = find_index("tbb");        // nullptr: unknown
//   if (auto why = why_not(*index, workload, threads)) ...  // what it cannot do, in words
//
// Thread-safety: the table is immutable.

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "bench/indexes/any_index.hpp"
#include "bench/workload/workload.hpp"

namespace elidex::bench {

enum class key_type : std::uint8_t { u64, string };

struct index_info {
  std::string_view name;
  std::string_view description;
  std::unique_ptr<any_index<std::uint64_t>> (*make_u64)() = nullptr;
  std::unique_ptr<any_index<std::string>> (*make_string)() = nullptr;
  /// Without synchronisation: one thread at a time.
  bool single_thread = false;
  /// More threads load it faster; otherwise it is loaded by one.
  bool loads_in_parallel = false;
  /// Why it has no scan, no erase or no values to update, in words that follow "NAME "; empty: it
  /// has them.
  std::string_view no_scan = {};
  std::string_view no_erase = {};
  std::string_view no_update = {};
  /// Why this build lacks it, in words that follow "NAME is not built: "; empty: it is there.
  /// Otherwise it has no factory.
  std::string_view not_built = {};
  /// Why this machine runs it on its fallback, or empty.
  std::string (*remark)() = nullptr;
};

/// A new one with such keys.
template <class Key>
[[nodiscard]] std::unique_ptr<any_index<Key>> make_index(const index_info& index) {
  if constexpr (std::is_same_v<Key, std::string>) {
    return index.make_string();
  } else {
    return index.make_u64();
  }
}

[[nodiscard]] std::span<const index_info> indexes();
[[nodiscard]] const index_info* find_index(std::string_view name);

/// Why this index cannot run this, in one clause; nothing where it can.
[[nodiscard]] std::optional<std::string> why_not(const index_info& index, const workload& what,
                                                 unsigned threads, key_type keys);

}  // namespace elidex::bench
