// The operations that ordered_map and hash_map have in common. Key, Value and errors: at the top of
// ordered_map.hpp and hash_map.hpp.
//
// Implementation notes
// A map_face translates keys (key_format.hpp) and values (map_value.hpp), and calls the table.
// Table is a tree or a hash table. Maker makes it.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "elidex/internal/map_value.hpp"
#include "elidex/internal/memory/made_on_demand.hpp"
#include "elidex/internal/tree/key_format.hpp"

namespace elidex::internal {

template <class Key, class Value, class Table, class Maker>
class map_face {
 protected:
  using keys = map_key<Key>;
  using values = map_value<Value>;
  using encoded = typename keys::encoded;
  using tree_argument = typename Table::key_argument;
  using holder = typename values::holder;
  using tree_value = typename values::tree_value;
  static constexpr bool passes_keys = std::same_as<typename keys::argument, tree_argument>;
  using key_item = std::remove_cvref_t<typename keys::argument>;

 public:
  using key_type = Key;
  using mapped_type = Value;
  // What the functions take: Key by value or reference, std::string_view, or a span of bytes.
  using key_argument = typename keys::argument;
  // const Value&, std::string_view, or a Value that is moved from.
  using value_argument = typename values::argument;

  // --- looking up ---

  // Returns the value of `key`, or std::nullopt.
  std::optional<Value> get(key_argument key) const {
    static_assert(values::can_be_copied, "get() copies the value: use visit() or extract()");
    return values::loaded(
        if_made(key, [](const Table& t, const tree_argument& code) { return t.get(code); }));
  }
  // Returns the value of `key`. Throws std::out_of_range if the key is absent.
  Value at(key_argument key) const {
    static_assert(values::can_be_copied, "at() copies the value: use visit() or extract()");
    std::optional<Value> value = get(key);
    if (!value) throw std::out_of_range("elidex: at: no such key");
    return *std::move(value);
  }
  // Returns whether the key is present.
  bool contains(key_argument key) const {
    return if_made(key, [](const Table& t, const tree_argument& code) { return t.contains(code); });
  }
  // Calls fn(value) for the value of `key`. Returns whether the key is present. fn receives a
  // reference to const, or a std::string_view, that is valid until it returns. fn holds no lock and
  // may use the map. If the map has strings or objects, no map of the process frees memory while fn
  // runs, so fn should not block.
  template <class Fn>
  bool visit(key_argument key, Fn&& fn) const {
    return if_made(key, [&](const Table& t, const tree_argument& code) {
      return t.visit(code, [&](const auto& value) {
        using loaded = decltype(values::loaded(value));
        static_assert(std::invocable<Fn&, loaded>,
                      "the function takes a const Value&, or for strings a std::string_view");
        if constexpr (std::invocable<Fn&, loaded>) std::invoke(fn, values::loaded(value));
      });
    });
  }
  // Looks up many keys, in any order: found[i] becomes the value of wanted[i], or std::nullopt.
  // Each look-up is linearizable. Together they are not a snapshot. They share the waiting for
  // memory, which makes them two to three times as fast as get() in a large map. Throws
  // std::invalid_argument if `found` is shorter than `wanted`, before any look-up. If a look-up
  // throws, some elements of `found` may have been set.
  template <std::ranges::input_range Keys>
  void multi_get(Keys&& wanted, std::span<std::optional<Value>> found) const {
    static_assert(values::can_be_copied, "multi_get() copies the values: use visit()");
    using given = std::ranges::range_reference_t<Keys>;
    if constexpr (std::convertible_to<Keys, std::span<const key_item>>) {
      get_many(wanted, found);
    } else {
      static_assert(std::convertible_to<given, key_argument>, "the range has no keys of the map");
      // An input range that is no forward range may overwrite the string with the next one.
      constexpr bool lasts = std::ranges::forward_range<Keys> && std::is_lvalue_reference_v<given>;
      static_assert(!std::ranges::view<key_item> || lasts ||
                        std::same_as<std::remove_cvref_t<given>, key_item>,
                    "the range makes temporary strings: collect them first");
      // A std::vector<bool> is no span.
      constexpr bool is_bool = std::same_as<key_item, bool>;
      std::vector<std::conditional_t<is_bool, char, key_item>> items;
      for (auto&& key : wanted) items.push_back(static_cast<key_item>(key));
      if constexpr (is_bool) {
        const auto both = std::make_unique<bool[]>(items.size());
        std::ranges::copy(items, both.get());
        get_many({both.get(), items.size()}, found);
      } else {
        get_many(items, found);
      }
    }
  }
  void multi_get(std::initializer_list<key_item> wanted,
                 std::span<std::optional<Value>> found) const {
    multi_get(std::span<const key_item>(wanted.begin(), wanted.size()), found);
  }

  // --- adding ---

  // Adds `key` if it is absent. Returns whether it did.
  bool insert(key_argument key, value_argument value) {
    holder made(std::forward<value_argument>(value));
    return table().insert(encoded(key).get(), made);
  }
  // Adds `key`, or overwrites its value. Returns whether it added the key.
  bool upsert(key_argument key, value_argument value) {
    holder made(std::forward<value_argument>(value));
    return table().upsert(encoded(key).get(), made);
  }
  // The standard's name of upsert().
  bool insert_or_assign(key_argument key, value_argument value) {
    return upsert(key, std::forward<value_argument>(value));
  }
  // Adds `key` with Value(args...) if it is absent. Returns whether it did. Like the standard's, it
  // leaves the arguments alone if the key is present. It may move from them and still return false
  // if another thread adds the key meanwhile.
  template <class... Args>
  bool try_emplace(key_argument key, Args&&... args) {
    static_assert(std::constructible_from<Value, Args...>,
                  "the value cannot be constructed from these arguments");
    if (contains(key)) return false;
    return insert(key, Value(std::forward<Args>(args)...));
  }
  // Returns the value of `key`, and whether it added the key. Adds an absent key with the value
  // that make() returns, as one atomic step. `make` may also be the value itself. Rules for make():
  // as for compute().
  template <class Make>
  std::pair<Value, bool> get_or_insert(key_argument key, Make&& make) {
    static_assert(values::can_be_copied, "get_or_insert() copies the value: use try_emplace()");
    if constexpr (values::is_plain && values::is_same) {
      return table().get_or_insert(encoded(key).get(), [&] { return Value(made_by(make)); });
    } else {
      bool added = false;
      std::optional<Value> result;
      computed(table(), encoded(key).get(), [&](std::optional<Value>& value) {
        added = !value;
        if (added) value.emplace(made_by(make));
        result.emplace(*value);
      });
      return {*std::move(result), added};
    }
  }

  // --- changing ---

  // Calls fn(value), where value is a Value&, and stores what fn leaves there, as one atomic step.
  // Returns whether the key is present. Rules for fn: as for compute().
  template <class Fn>
  bool update(key_argument key, Fn&& fn) {
    static_assert(values::can_be_copied, "update() changes a copy: use std::shared_ptr values");
    static_assert(std::invocable<Fn&, Value&>, "the function takes a Value&");
    static_assert(!std::invocable<Fn&, Value>,
                  "the function takes a Value& or auto&: what it does to a copy is lost");
    if constexpr (values::is_same) {
      return if_made(key, [&](Table& t, const tree_argument& code) {
        return t.update(code, [&](Value& value) { std::invoke(fn, value); });
      });
    } else {
      return if_made(key, [&](Table& t, const tree_argument& code) {
        return computed(t, code, [&](std::optional<Value>& value) {
          if (value) std::invoke(fn, *value);
        });
      });
    }
  }
  // Adds an absent key with the value that make() returns, or calls change(value) for the value of
  // a present one, as one atomic step. `make` may also be the value itself. Returns whether it
  // added the key. Rules for make() and change(): as for compute().
  template <class Make, class Change>
  bool upsert_with(key_argument key, Make&& make, Change&& change) {
    static_assert(values::can_be_copied,
                  "upsert_with() changes a copy: use std::shared_ptr values");
    static_assert(std::invocable<Change&, Value&>, "the function takes a Value&");
    static_assert(!std::invocable<Change&, Value>,
                  "the function takes a Value& or auto&: what it does to a copy is lost");
    bool added = false;
    computed(table(), encoded(key).get(), [&](std::optional<Value>& value) {
      added = !value;
      if (value) {
        std::invoke(change, *value);
      } else {
        value.emplace(made_by(make));
      }
    });
    return added;
  }
  // Calls fn(value), where value is a std::optional<Value>&: the value of `key`, or empty if the
  // key is absent. Afterwards the key has the value that fn leaves there, or is absent if fn leaves
  // it empty. The whole is one atomic step. Returns whether the key is present then.
  //
  // fn may run more than once. Only the effect of its last run on the value counts. fn must not use
  // the map, and should be short, because other operations near the key may wait for it. If fn
  // throws, compute() passes the exception on and changes nothing.
  template <class Fn>
  bool compute(key_argument key, Fn&& fn) {
    static_assert(values::can_be_copied, "compute() changes a copy: use std::shared_ptr values");
    static_assert(std::invocable<Fn&, std::optional<Value>&>,
                  "the function takes a std::optional<Value>&");
    static_assert(!std::invocable<Fn&, std::optional<Value>>,
                  "the function takes a reference: what it does to a copy is lost");
    return computed(table(), encoded(key).get(), fn);
  }

  // --- erasing ---

  // Removes `key`. Returns whether the key was present.
  bool erase(key_argument key) {
    return if_made(key, [](Table& t, const tree_argument& code) { return t.erase(code); });
  }
  // Removes `key` if pred(value) is true for its value, as one atomic step. Returns whether it
  // removed the key. Rules for pred(): as for compute().
  template <class Pred>
  bool erase_if(key_argument key, Pred&& pred) {
    static_assert(std::predicate<Pred&, const Value&>,
                  "the function takes a const Value& and returns a bool");
    if constexpr (values::is_object) {
      return if_made(key, [&](Table& t, const tree_argument& code) {
        return t.erase_if(code,
                          [&](const Value& value) -> bool { return std::invoke(pred, value); });
      });
    } else {
      return if_made(key, [&](Table& t, const tree_argument& code) {
        bool erased = false;
        computed(t, code, [&](std::optional<Value>& value) {
          erased = value && std::invoke(pred, std::as_const(*value));
          if (erased) value.reset();
        });
        return erased;
      });
    }
  }
  // Removes `key` and returns its value, or std::nullopt if the key is absent. For values that
  // cannot be copied, it waits for the operations and visitors of all other threads in the process.
  // So no visitor may wait for the calling thread. Called by a visitor itself, it throws
  // std::logic_error and removes nothing.
  std::optional<Value> extract(key_argument key) {
    return if_made(key, [&](Table& t, const tree_argument& code) {
      if constexpr (!values::is_same) {
        std::optional<tree_value> taken;
        t.compute(code, [&](std::optional<tree_value>& raw) { taken = std::exchange(raw, {}); });
        return values::loaded(std::move(taken));
      } else if constexpr (values::can_be_copied) {
        std::optional<Value> taken;
        t.compute(code, [&](std::optional<Value>& value) {
          taken.reset();
          if (value) taken.emplace(*value);
          value.reset();
        });
        return taken;
      } else {
        return t.extract(code);
      }
    });
  }

  // --- many keys ---

  // Calls upsert(keys[i], values[i]) for each i. Returns the number of added keys. Each call is
  // atomic; the whole is not. With the same key twice, the last value stays. Throws
  // std::invalid_argument, before any change, if there are not as many values as keys. After
  // another exception the changes made so far stay. The calls share the waiting for memory in a
  // hash_map, and in an ordered_map from integers to plain values if the keys and the values lie in
  // arrays or vectors of just these types. Such an ordered_map may change different keys in another
  // order. Other maps change the keys in order.
  template <std::ranges::forward_range Keys, std::ranges::forward_range Values>
  std::size_t multi_upsert(Keys&& wanted, Values&& given) {
    static_assert(values::can_be_copied, "multi_upsert() copies the values: use upsert()");
    static_assert(std::convertible_to<std::ranges::range_reference_t<Keys>, key_argument>,
                  "the range has no keys of the map");
    static_assert(std::convertible_to<std::ranges::range_reference_t<Values>, value_argument>,
                  "the range has no values of the map");
    if (std::ranges::distance(given) != std::ranges::distance(wanted))
      throw std::invalid_argument("elidex: multi_upsert: as many values as keys expected");
    if constexpr (lie_in_an_array<Keys, key_item> && lie_in_an_array<Values, Value> &&
                  changes_together) {
      if (std::ranges::empty(wanted)) return 0;
      return table().multi_upsert(std::span<const key_item>(wanted), std::span<const Value>(given));
    }
    std::size_t added = 0;
    auto value = std::ranges::begin(given);
    prefetched(wanted, [&](auto&& key) {
      added +=
          upsert(static_cast<key_argument>(key), static_cast<value_argument>(*value)) ? 1U : 0U;
      ++value;
    });
    return added;
  }
  // Calls erase() for each key. Returns the number of removed keys. Each call is atomic; the whole
  // is not. Order, and waiting for memory: as for multi_upsert().
  template <std::ranges::input_range Keys>
  std::size_t multi_erase(Keys&& wanted) {
    static_assert(std::convertible_to<std::ranges::range_reference_t<Keys>, key_argument>,
                  "the range has no keys of the map");
    if constexpr (lie_in_an_array<Keys, key_item> && changes_together) {
      Table* const made = table_.if_made();
      return made == nullptr ? 0 : made->multi_erase(std::span<const key_item>(wanted));
    }
    std::size_t erased = 0;
    prefetched(wanted,
               [&](auto&& key) { erased += erase(static_cast<key_argument>(key)) ? 1U : 0U; });
    return erased;
  }

  // --- the whole map ---

  // Removes all keys and gives their memory back. No other thread may use the map meanwhile.
  void clear() noexcept { table_ = made_on_demand<Table, Maker>(table_.maker()); }

  // Returns the number of keys. Exact when no operation runs.
  std::size_t size() const noexcept {
    const Table* const made = table_.if_made();
    return made == nullptr ? 0 : made->size();
  }
  // Returns whether size() is 0.
  bool empty() const noexcept { return size() == 0; }
  // Returns the bytes that the map uses, without what the values own. Exact when no operation runs,
  // except for malloc's overhead, which is an estimate.
  std::size_t memory_bytes() const noexcept {
    const Table* const made = table_.if_made();
    return sizeof(*this) + (made == nullptr ? 0 : made->memory_bytes());
  }
  // Frees the memory of earlier erasures now, instead of at the next erasures. Keeps memory that a
  // reader may still reach.
  void reclaim() noexcept {
    if (Table* const made = table_.if_made()) made->reclaim();
  }

 protected:
  explicit map_face(Maker maker) : table_(std::move(maker)) {}
  map_face(map_face&&) noexcept = default;
  map_face& operator=(map_face&&) noexcept = default;
  ~map_face() = default;

  Table& table() { return table_.get(); }
  const Table& table() const { return table_.get(); }
  const Table* table_if_made() const noexcept { return table_.if_made(); }
  // Throws std::invalid_argument for a key that no table takes.
  static void check(const tree_argument& code) {
    static_cast<void>(key_codec<typename keys::tree_key>::search_key_of(code));
  }

 private:
  // Returns fn(table, code), or what it would return for an absent key if the map has no table yet.
  template <class Fn>
  auto if_made(key_argument key, Fn&& fn) const {
    const encoded code(key);
    if (Table* const made = table_.if_made()) [[likely]]
      return fn(*made, code.get());
    check(code.get());
    return decltype(fn(*table_.if_made(), code.get())){};
  }
  template <class Range, class Item>
  static constexpr bool lie_in_an_array = std::constructible_from<std::span<const Item>, Range&> &&
                                          std::same_as<std::ranges::range_value_t<Range>, Item>;
  // Whether the table can change several keys in one call.
  static constexpr bool changes_together = [] {
    if constexpr (values::is_same && passes_keys) {
      return requires(Table& t, std::span<const key_item> some_keys,
                      std::span<const Value> some_values) {
        t.multi_upsert(some_keys, some_values);
        t.multi_erase(some_keys);
      };
    } else {
      return false;
    }
  }();
  // Calls fn(key) for each key in order. A table that has prefetch() is told of each key some calls
  // before its turn.
  template <class Keys, class Fn>
  void prefetched(Keys& wanted, Fn&& fn) const {
    using given = std::ranges::range_reference_t<Keys>;
    // A range may make its keys. Those that are cheap to make are made twice.
    constexpr bool are_cheap =
        (std::is_reference_v<given> || std::is_trivially_copyable_v<given>) &&
        (passes_keys || !std::same_as<typename keys::tree_key, std::string>);
    constexpr bool can_prefetch =
        requires(const Table& t, const tree_argument& code) { t.prefetch(code); };
    if constexpr (std::ranges::forward_range<Keys> && are_cheap && can_prefetch) {
      if (const Table* const made = table_if_made()) {
        constexpr std::size_t ahead_most = 32;  // chosen: more than a core's requests for memory
        auto ahead = std::ranges::begin(wanted);
        const auto end = std::ranges::end(wanted);
        const auto prefetch_one = [&] {
          if (ahead == end) return;
          made->prefetch(encoded(static_cast<key_argument>(*ahead)).get());
          ++ahead;
        };
        for (std::size_t i = 0; i < ahead_most; ++i) prefetch_one();
        for (auto&& key : wanted) {
          prefetch_one();
          fn(key);
        }
        return;
      }
    }
    for (auto&& key : wanted) fn(key);
  }
  // The value, or what the function returns.
  template <class Make>
  static decltype(auto) made_by(Make& make) {
    constexpr bool is_value = std::same_as<std::remove_cvref_t<Make>, Value>;
    if constexpr (!is_value && std::invocable<Make&>) {
      return std::invoke(make);
    } else {
      static_assert(std::constructible_from<Value, const Make&>,
                    "the value is a Value, or a function that returns one");
      return std::as_const(make);
    }
  }
  // compute() without its assertions.
  template <class Fn>
  static bool computed(Table& t, const tree_argument& code, Fn&& fn) {
    if constexpr (!values::can_be_copied) {
      return false;  // the caller has refused this with a static_assert
    } else if constexpr (values::is_same) {
      return t.compute(code, [&](std::optional<Value>& value) { std::invoke(fn, value); });
    } else {
      return t.compute(code, [&](std::optional<tree_value>& raw) {
        std::optional<Value> value = values::loaded(std::optional<tree_value>(raw));
        std::invoke(fn, value);
        raw.reset();
        if (value) raw.emplace(values::stored(*value));
      });
    }
  }
  // multi_get() without its assertions.
  void get_many(std::span<const key_item> wanted, std::span<std::optional<Value>> found) const {
    if (found.size() < wanted.size())
      throw std::invalid_argument("elidex: multi_get: fewer values than keys (expected as many)");
    const Table* const made = table_if_made();
    if constexpr (values::is_same && passes_keys) {
      if (made != nullptr) return made->multi_get(wanted, found);
    }
    std::vector<encoded> codes;
    codes.reserve(wanted.size());
    for (const auto& key : wanted) codes.emplace_back(key);
    std::vector<std::remove_cvref_t<tree_argument>> all;
    all.reserve(wanted.size());
    for (const encoded& code : codes) all.push_back(code.get());
    if (made == nullptr) {
      for (const auto& code : all) check(code);
      for (std::size_t i = 0; i < all.size(); ++i) found[i].reset();
    } else if constexpr (values::is_same) {
      made->multi_get(all, found);
    } else {
      std::vector<std::optional<tree_value>> raw(wanted.size());
      made->multi_get(all, raw);
      for (std::size_t i = 0; i < raw.size(); ++i) {
        found[i].reset();
        if (raw[i]) found[i].emplace(values::loaded(*raw[i]));
      }
    }
  }

  made_on_demand<Table, Maker> table_;
};

}  // namespace elidex::internal
