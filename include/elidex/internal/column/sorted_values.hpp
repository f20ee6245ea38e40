// The main's dictionary of numbers: different values, ascending. The position of a value is its ID.
//
//   sorted_values<std::uint64_t>::builder building;
//   for (auto v : ascending) building.append(v);
//   const sorted_values<std::uint64_t> values = std::move(building).finish();
//   values.get(3);
//   values.lower_bound(42);     // the ID of the first value that is not less, or size()
//
// sorted_dictionary<Image> is this class, or front_coded_strings, which has the same functions.
//
// Thread-safety: immutable once made.
// Errors: append() and finish() throw std::bad_alloc.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "elidex/internal/column/front_coded_strings.hpp"
#include "elidex/internal/tree/codec.hpp"

namespace elidex::internal {

template <std::unsigned_integral Image>
class sorted_values {
 public:
  class builder {
   public:
    void append(Image next) { values_.push_back(next); }
    std::size_t size() const noexcept { return values_.size(); }
    sorted_values finish() && {
      values_.shrink_to_fit();
      return sorted_values(std::move(values_));
    }

   private:
    std::vector<Image> values_;
  };

  class cursor {
   public:
    cursor(const sorted_values& of, std::size_t from) noexcept
        : at_(of.values_.data() + from), end_(of.end()) {}
    bool valid() const noexcept { return at_ != end_; }
    Image value() const noexcept { return *at_; }
    void next() noexcept { ++at_; }

   private:
    const Image* at_;
    const Image* end_;
  };

  sorted_values() = default;

  std::size_t size() const noexcept { return values_.size(); }
  Image get(std::size_t id) const noexcept { return values_[id]; }
  std::size_t lower_bound(Image wanted) const noexcept {
    return static_cast<std::size_t>(std::lower_bound(values_.begin(), values_.end(), wanted) -
                                    values_.begin());
  }
  std::size_t upper_bound(Image wanted) const noexcept {
    return static_cast<std::size_t>(std::upper_bound(values_.begin(), values_.end(), wanted) -
                                    values_.begin());
  }
  std::size_t memory_bytes() const noexcept {
    return sizeof(*this) + values_.capacity() * sizeof(Image);
  }

 private:
  explicit sorted_values(std::vector<Image> values) noexcept : values_(std::move(values)) {}
  const Image* end() const noexcept { return values_.data() + values_.size(); }

  std::vector<Image> values_;
};

template <class Image>
struct sorted_dictionary_of {
  using type = sorted_values<Image>;
};
template <>
struct sorted_dictionary_of<std::string> {
  static_assert(front_coded_strings::string_bytes_max >= key_bytes_max,
                "a main takes what a delta takes");
  using type = front_coded_strings;
};
template <class Image>
using sorted_dictionary = typename sorted_dictionary_of<Image>::type;

}  // namespace elidex::internal
