// The records of a range of an ordered map, as a C++20 range.
//
//   for (const auto& [key, value] : map.range(10, 20)) ...
//   auto first = map.range(all) | std::views::take(10);
//   for (const auto& r : map.range("a", "q")) copies.push_back(r);   // std::pair<std::string, int>
//
// An input range: it can be walked once. The walk copies the next records of the map when it needs
// them, up to records_at_once, as of one moment.
//
// Thread-safety: a range is for one thread at a time. Other threads may use the map.
// Iterator validity: an iterator is valid until the next ++ and while the range lives. So are its
// record and that record's views. The map must outlive the range, and may change at any time.
// Errors: begin() and ++ throw std::bad_alloc. The walk may then be continued with the same ++.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <ranges>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "elidex/internal/tree/key_format.hpp"
#include "elidex/internal/tree/map_bounds.hpp"

namespace elidex::internal {

// A record with a view in place of its string or bytes. It converts to a pair that owns them.
template <class KeyView, class ValueView, class Key, class Value>
struct viewed_record : std::pair<KeyView, ValueView> {
  // Not the pair's own constructors: with these, records and pairs would convert to each other, and
  // have no common type.
  template <class K, class V>
  viewed_record(K&& key, V&& value)
      : std::pair<KeyView, ValueView>(std::forward<K>(key), std::forward<V>(value)) {}
  operator std::pair<Key, Value>() const {
    return {owned<Key>(this->first), owned<Value>(this->second)};
  }

 private:
  template <class T, class View>
  static T owned(const View& view) {
    if constexpr (std::same_as<T, View>) {
      return view;
    } else {
      return T(view.begin(), view.end());
    }
  }
};

// The records of one step of a walk. The characters of all strings are in one buffer, because an
// allocation for each would take longer than the walk.
template <class Key, class Value>
class range_batch {
  using key_view = typename map_key<Key>::view;
  using value_view = std::conditional_t<std::same_as<Value, std::string>, std::string_view, Value>;
  static constexpr bool views_key = !std::same_as<key_view, Key>;
  static constexpr bool views_value = !std::same_as<value_view, Value>;
  static constexpr bool has_views = views_key || views_value;

 public:
  using owned_record = std::pair<Key, Value>;
  using record =
      std::conditional_t<has_views, viewed_record<key_view, value_view, Key, Value>, owned_record>;

  range_batch() = default;
  range_batch(const range_batch& other)
      : records_(other.records_), text_(other.text_), text_used_(other.text_used_) {
    move_views();
  }
  range_batch& operator=(const range_batch&) = delete;
  // The buffers keep their addresses.
  range_batch(range_batch&&) = default;
  range_batch& operator=(range_batch&&) = default;
  ~range_batch() = default;

  void clear() noexcept {
    records_.clear();
    text_used_ = 0;
  }
  void reserve(std::size_t records) {
    records_.reserve(records);
    if constexpr (has_views) {
      constexpr std::size_t text_each = 24;  // chosen
      if (text_.size() < records * text_each) text_.resize(records * text_each);
    }
  }
  template <class K, class V>
  void add(K&& key, V&& value) {
    if constexpr (has_views) {
      const std::size_t bytes = text_bytes<views_key>(key) + text_bytes<views_value>(value);
      if (text_.size() - text_used_ < bytes) [[unlikely]]
        grow_text(bytes);
    }
    // The key's text first, as grow_text() expects.
    auto&& kept_key = kept<views_key>(std::forward<K>(key));
    records_.emplace_back(std::forward<decltype(kept_key)>(kept_key),
                          kept<views_value>(std::forward<V>(value)));
  }
  std::size_t size() const noexcept { return records_.size(); }
  const record* begin() const noexcept { return records_.data(); }
  const record* end() const noexcept { return records_.data() + records_.size(); }

 private:
  template <bool IsView, class T>
  static std::size_t text_bytes(const T& part) noexcept {
    if constexpr (IsView) return part.size();
    return 0;
  }
  // A view of a copy of the text, for which there is room. Other parts stay as they are.
  template <bool IsView, class T>
  decltype(auto) kept(T&& part) noexcept {
    if constexpr (IsView) {
      char* const at = text_.data() + text_used_;
      if (!part.empty()) std::memcpy(at, part.data(), part.size());
      text_used_ += part.size();
      return std::remove_cvref_t<T>(reinterpret_cast<decltype(part.data())>(at), part.size());
    } else {
      return std::forward<T>(part);
    }
  }
  void grow_text(std::size_t more) {
    text_.resize(std::max(2 * text_.size(), text_used_ + more));
    move_views();
  }
  // After the buffer has moved.
  void move_views() noexcept {
    if constexpr (has_views) {
      const char* at = text_.data();
      for (record& r : records_) {
        move_view<views_key>(r.first, at);
        move_view<views_value>(r.second, at);
      }
    }
  }
  template <bool IsView, class T>
  static void move_view(T& part, const char*& at) noexcept {
    if constexpr (IsView) {
      part = T(reinterpret_cast<decltype(part.data())>(at), part.size());
      at += part.size();
    }
  }

  std::vector<record> records_;
  std::vector<char> text_;  // a moved std::string may have its characters elsewhere
  std::size_t text_used_ = 0;
};

template <class Map>
class map_range : public std::ranges::view_interface<map_range<Map>> {
  using batch = range_batch<typename Map::key_type, typename Map::mapped_type>;

 public:
  using value_type = typename batch::owned_record;
  using record = typename batch::record;
  // Measured: walks of 100 records need one descent, and longer ones few (docs/decisions/maps.md).
  static constexpr std::size_t records_at_first = 128;
  static constexpr std::size_t records_at_once = 512;

  class iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using difference_type = std::ptrdiff_t;
    using value_type = map_range::value_type;

    iterator() = default;
    const record& operator*() const noexcept { return *range_->at_; }
    const record* operator->() const noexcept { return &**this; }
    iterator& operator++() {
      range_->advance();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& it, std::default_sentinel_t /*end*/) noexcept {
      return it.is_at_end();
    }

   private:
    friend map_range;
    bool is_at_end() const noexcept { return range_->at_ == range_->end_; }
    explicit iterator(map_range& range) noexcept : range_(&range) {}
    map_range* range_ = nullptr;
  };

  map_range(const Map& map, map_bounds<typename Map::key_type> which)
      : map_(&map), left_(std::move(which)) {}
  // A copy is at the same record.
  map_range(const map_range& other)
      : map_(other.map_),
        left_(other.left_),
        records_(other.records_),
        many_(other.many_),
        is_at_end_(other.is_at_end_) {
    if (other.at_ == nullptr) return;
    at_ = records_.begin() + (other.at_ - other.records_.begin());
    end_ = records_.end();
  }
  map_range(map_range&& other) noexcept
      : map_(other.map_),
        left_(std::move(other.left_)),
        records_(std::move(other.records_)),
        spare_(std::move(other.spare_)),
        at_(std::exchange(other.at_, nullptr)),
        end_(std::exchange(other.end_, nullptr)),
        many_(other.many_),
        is_at_end_(std::exchange(other.is_at_end_, true)) {}
  map_range& operator=(map_range other) noexcept {
    std::swap(map_, other.map_);
    std::swap(left_, other.left_);
    std::swap(records_, other.records_);
    std::swap(spare_, other.spare_);
    std::swap(at_, other.at_);
    std::swap(end_, other.end_);
    std::swap(many_, other.many_);
    std::swap(is_at_end_, other.is_at_end_);
    return *this;
  }
  ~map_range() = default;

  // Returns an iterator at the next record. Copies records of the map if none is left.
  iterator begin() {
    if (at_ == nullptr && !is_at_end_) fill();
    return iterator(*this);
  }
  // Returns the end, with which an iterator is compared.
  static std::default_sentinel_t end() noexcept { return std::default_sentinel; }

 private:
  void advance() {
    if (at_ + 1 != end_ || is_at_end_) [[likely]] {
      ++at_;
    } else {
      fill_behind(at_->first);
    }
  }
  [[gnu::noinline]] void fill_behind(const auto& key) {
    left_.continue_behind(key);
    fill();
  }
  void fill() {
    spare_.clear();
    spare_.reserve(many_);
    const auto add = [&](auto&& key, auto&& value) {
      spare_.add(std::forward<decltype(key)>(key), std::forward<decltype(value)>(value));
    };
    map_->scan_range(left_, many_, add);
    is_at_end_ = spare_.size() < many_;
    many_ = records_at_once;
    std::swap(records_, spare_);
    at_ = records_.begin();
    end_ = records_.end();
  }

  const Map* map_ = nullptr;
  map_bounds<typename Map::key_type> left_;
  batch records_;
  batch spare_;  // the records before these: their memory is used again
  const record* at_ = nullptr;
  const record* end_ = nullptr;
  std::size_t many_ = records_at_first;
  bool is_at_end_ = false;  // no records behind these
};

}  // namespace elidex::internal

// Makes std::views::keys and structured bindings treat the record as a pair.
template <class KeyView, class ValueView, class Key, class Value>
struct std::tuple_size<elidex::internal::viewed_record<KeyView, ValueView, Key, Value>>
    : std::integral_constant<std::size_t, 2> {};
template <std::size_t N, class KeyView, class ValueView, class Key, class Value>
struct std::tuple_element<N, elidex::internal::viewed_record<KeyView, ValueView, Key, Value>>
    : std::tuple_element<N, std::pair<KeyView, ValueView>> {};
