// All kinds of bounds, with values of the key's type and of others, in and beyond the range of the
// keys: beside a filter that compares each key with the given values exactly.
#include "elidex/bounds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "elidex/column.hpp"
#include "elidex/ordered_map.hpp"

namespace elidex::testing {
namespace {

template <class T>
using limits = std::numeric_limits<T>;

// --- exact comparisons: -1, 0 or 1 ---

template <class T>
int compare_same(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}
template <class A, class B>
int compare_integers(A a, B b) {
  const bool is_a_negative = std::is_signed_v<A> && a < A{};
  const bool is_b_negative = std::is_signed_v<B> && b < B{};
  if (is_a_negative != is_b_negative) return is_a_negative ? -1 : 1;
  return is_a_negative
             ? compare_same(static_cast<std::intmax_t>(a), static_cast<std::intmax_t>(b))
             : compare_same(static_cast<std::uintmax_t>(a), static_cast<std::uintmax_t>(b));
}
int compare_mixed(auto fraction, auto integer) {
  if (std::isnan(fraction) || fraction >= 0x1p64F) return 1;
  if (fraction < -0x1p63F) return -1;
  const auto whole = std::floor(fraction);
  const int order = whole < 0 ? compare_integers(static_cast<std::int64_t>(whole), integer)
                              : compare_integers(static_cast<std::uint64_t>(whole), integer);
  return order == 0 && whole < fraction ? 1 : order;
}
template <class T>
concept has_many = requires { std::tuple_size<T>::value; };
template <class A, class B>
int compare(const A& a, const B& b);
template <std::size_t At, class A, class B>
int compare_members(const A& a, const B& b) {
  if constexpr (At == std::tuple_size_v<A>) {
    return 0;
  } else {
    const int order = compare(std::get<At>(a), std::get<At>(b));
    return order != 0 ? order : compare_members<At + 1>(a, b);
  }
}
template <class A, class B>
int compare(const A& a, const B& b) {
  if constexpr (has_many<A>) {
    return compare_members<0>(a, b);
  } else if constexpr (std::convertible_to<A, std::string_view>) {
    return compare_same(std::string_view(a), std::string_view(b));
  } else if constexpr (std::floating_point<A> && std::floating_point<B>) {
    if (std::isnan(a) || std::isnan(b)) return compare_same(std::isnan(a), std::isnan(b));
    return a < b ? -1 : b < a ? 1 : 0;
  } else if constexpr (std::floating_point<A>) {
    return compare_mixed(a, b);
  } else {
    return compare_integers(a, b);
  }
}

// --- a map, and what the scans of its ranges must find ---

template <class Key>
class bounds_test {
  using which_keys = internal::map_bounds<Key>;

 public:
  explicit bounds_test(std::vector<Key> keys) : keys_(std::move(keys)) {
    std::sort(keys_.begin(), keys_.end(),
              [](const Key& a, const Key& b) { return compare(a, b) < 0; });
    const auto same = [](const Key& a, const Key& b) { return compare(a, b) == 0; };
    keys_.erase(std::unique(keys_.begin(), keys_.end(), same), keys_.end());
    for (const Key& key : keys_) map_.insert(key, 0);
    EXPECT_EQ(map_.size(), keys_.size());
  }

  // Each kind of bounds with each of the values, and each two of them.
  template <class Given>
  bounds_test& with(const std::vector<Given>& given) {
    for (const Given& a : given) {
      expect(from(a), [&](const Key& key) { return compare(key, a) >= 0; });
      expect(above(a), [&](const Key& key) { return compare(key, a) > 0; });
      expect(below(a), [&](const Key& key) { return compare(key, a) < 0; });
      expect(up_to(a), [&](const Key& key) { return compare(key, a) <= 0; });
      for (const Given& b : given) {
        const auto behind = [&](const Key& key) { return compare(key, a) >= 0; };
        expect(between(a, b), [&](const Key& k) { return behind(k) && compare(k, b) < 0; });
        expect(closed(a, b), [&](const Key& k) { return behind(k) && compare(k, b) <= 0; });
        expect(bounds<Given>(a, true, b, true),
               [&](const Key& k) { return compare(k, a) > 0 && compare(k, b) <= 0; });
      }
    }
    return *this;
  }
  template <class... First>
  bounds_test& with_prefix(const First&... first) {
    expect(prefix(first...), [&](const Key& key) { return begins_with<0>(key, first...); });
    return *this;
  }
  template <class Bounds, class Predicate>
  void expect(const Bounds& which, const Predicate& has) {
    std::vector<Key> wanted;
    std::copy_if(keys_.begin(), keys_.end(), std::back_inserter(wanted), has);
    expect_keys(which_keys(which), wanted);
    std::reverse(wanted.begin(), wanted.end());
    expect_keys(which_keys(which.descending()), wanted);
    expect_keys(which_keys(which).descending(), wanted);
  }

 private:
  template <std::size_t At>
  static bool begins_with(const Key& /*key*/) {
    return true;
  }
  template <std::size_t At, class First, class... More>
  static bool begins_with(const Key& key, const First& first, const More&... more) {
    const auto& member = std::get<At>(key);
    if constexpr (At + 1 == std::tuple_size_v<Key> &&
                  std::convertible_to<First, std::string_view>) {
      return std::string_view(member).starts_with(first);
    } else {
      return compare(member, first) == 0 && begins_with<At + 1>(key, more...);
    }
  }
  void expect_keys(const which_keys& which, const std::vector<Key>& wanted) {
    for (const std::size_t limit : {wanted.size() + 1, std::size_t{2}}) {
      std::size_t at = 0;
      map_.scan_n(which, limit, [&](const auto& key, int) {
        EXPECT_TRUE(at < wanted.size() && compare(Key(key), wanted[at]) == 0);
        ++at;
      });
      EXPECT_EQ(at, std::min(limit, wanted.size()));
    }
  }

  std::vector<Key> keys_;
  ordered_map<Key, int> map_;
};

template <class T>
std::vector<T> all_values() {
  std::vector<T> values;
  for (int n = limits<T>::min(); n <= limits<T>::max(); ++n) values.push_back(static_cast<T>(n));
  return values;
}
template <class T>
std::vector<T> edges() {
  return {limits<T>::min(),
          static_cast<T>(limits<T>::min() + 1),
          T{0},
          T{1},
          static_cast<T>(limits<T>::max() - 1),
          limits<T>::max()};
}
const std::vector<int> small_edges{limits<int>::min(),
                                   -300,
                                   -129,
                                   -128,
                                   -127,
                                   -1,
                                   0,
                                   1,
                                   44,
                                   126,
                                   127,
                                   128,
                                   254,
                                   255,
                                   256,
                                   257,
                                   300,
                                   limits<int>::max()};

template <class Key>
void with_all_integers(bounds_test<Key> test) {
  test.with(small_edges)
      .with(edges<std::int8_t>())
      .with(edges<std::uint8_t>())
      .with(edges<std::int16_t>())
      .with(edges<std::uint32_t>())
      .with(edges<std::int64_t>())
      .with(edges<std::uint64_t>())
      .with(std::vector<char>{0, 1, 'a'});
  for (const bool b : {false, true}) {
    test.expect(from(b), [&](const Key& key) { return compare(key, int{b}) >= 0; });
    test.expect(up_to(b), [&](const Key& key) { return compare(key, int{b}) <= 0; });
  }
}

TEST(Bounds, OfIntegers) {
  with_all_integers(bounds_test(all_values<std::uint8_t>()));
  with_all_integers(bounds_test(all_values<std::int8_t>()));
  with_all_integers(bounds_test(edges<std::int64_t>()));
  with_all_integers(bounds_test(edges<std::uint64_t>()));
}
TEST(Bounds, OfBools) {
  with_all_integers(bounds_test<bool>({false, true}));
}
enum plain { low = -1, middle = 5, high = 1000 };  // converts to int
TEST(Bounds, OfEnumerationsThatAreIntegers) {
  ordered_map<std::uint8_t, int> map{{0, 0}, {5, 0}, {255, 0}};
  const auto nothing = [](auto&&...) {};
  EXPECT_EQ(map.scan(between(low, high), nothing), 3U);
  EXPECT_EQ(map.scan(above(middle), nothing), 1U);
}
#if defined(__SIZEOF_INT128__)
TEST(Bounds, OfIntegersOf128Bits) {
  const auto nothing = [](auto&&...) {};
  ordered_map<internal::unsigned_128, int> map{{0, 0}, {1, 0}, {~internal::unsigned_128{0}, 0}};
  EXPECT_EQ(map.scan(from(-1), nothing), 3U);
  EXPECT_EQ(map.scan(up_to(-1), nothing), 0U);
  EXPECT_EQ(map.scan(closed(1, ~std::uint64_t{0}), nothing), 1U);
  ordered_map<std::uint64_t, int> words{{0, 0}, {~std::uint64_t{0}, 0}};
  EXPECT_EQ(words.scan(below(internal::unsigned_128{1} << 64U), nothing), 2U);
  EXPECT_EQ(words.scan(from(-(internal::signed_128{1} << 64U)), nothing), 2U);
}
#endif

template <class T, class... More>
std::vector<T> numbers(More... more) {
  const T infinity = limits<T>::infinity();
  std::vector<T> all_of_them{
      -infinity, -1, 0, 1, infinity, limits<T>::quiet_NaN(), static_cast<T>(more)...};
  for (const T one : {limits<T>::max(), limits<T>::denorm_min(), limits<T>::min(), T(0.1L)}) {
    all_of_them.push_back(one);
    all_of_them.push_back(-one);
  }
  return all_of_them;
}
template <class T>
std::vector<T> beyond_floats() {
  std::vector<T> all_of_them = numbers<T>(1e300L, -1e300L, 1e-300L, -1e-300L, 16777217, -16777217);
  const T last = limits<float>::max();
  for (const T one : {std::nextafter(last, 2 * last), std::nextafter(last, T{0}), T{2} * last}) {
    all_of_them.push_back(one);
    all_of_them.push_back(-one);
  }
  return all_of_them;
}
template <class Number>
std::vector<Number> integers_around(int bits) {
  const Number middle = static_cast<Number>(Number{1} << bits);
  return {static_cast<Number>(middle - 1), middle, static_cast<Number>(middle + 1),
          static_cast<Number>(middle + 2), static_cast<Number>(middle + 3)};
}
TEST(Bounds, OfFloats) {
  bounds_test<float> test(numbers<float>(16777216, 16777218, 0x1p63, 0x1p64, -0x1p63,
                                         std::nextafter(0.1F, 0.0F), std::nextafter(0.1F, 1.0F)));
  test.with(numbers<float>())
      .with(beyond_floats<double>())
      .with(beyond_floats<long double>())
      .with(integers_around<int>(24))
      .with(edges<std::int8_t>())
      .with(edges<std::int32_t>())
      .with(edges<std::int64_t>())
      .with(edges<std::uint64_t>());
}
TEST(Bounds, OfDoubles) {
  bounds_test<double> test(numbers<double>(0x1p53, 0x1p53 + 2, 0x1p53 + 4, 0x1p62, 0x1p63, -0x1p63,
                                           0x1p64, std::nextafter(0x1p63, 0),
                                           std::nextafter(0x1p64, 0), 0.1F));
  test.with(numbers<double>())
      .with(numbers<float>())
      .with(numbers<long double>(0x1p53L + 1))
      .with(integers_around<std::int64_t>(53))
      .with(integers_around<std::uint64_t>(53))
      .with(integers_around<std::uint64_t>(63))
      .with(edges<std::int64_t>())
      .with(edges<std::uint64_t>());
}
#if defined(__SIZEOF_INT128__)
TEST(Bounds, OfFloatsBesideIntegersOf128Bits) {
  ordered_map<float, int> map{{limits<float>::max(), 0}, {limits<float>::infinity(), 0}};
  const auto nothing = [](auto&&...) {};
  EXPECT_EQ(map.scan(above(~internal::unsigned_128{0}), nothing), 1U);
  EXPECT_EQ(map.scan(below(~internal::unsigned_128{0}), nothing), 1U);
}
#endif

// --- pairs, tuples and arrays ---

template <class Key, class First, class Second>
std::vector<Key> products(const std::vector<First>& first, const std::vector<Second>& second) {
  std::vector<Key> all_of_them;
  for (const First& a : first) {
    for (const Second& b : second) all_of_them.push_back(Key(a, b));
  }
  return all_of_them;
}
const std::vector<std::uint8_t> bytes{0, 1, 44, 254, 255};
const std::vector<std::int8_t> signed_bytes{-128, -1, 0, 44, 127};
const std::vector<int> beyond_bytes{-300, -129, -1, 0, 2, 44, 128, 255, 256, 300};
const std::vector<std::string> strings{"", "a", std::string("a\0", 2), "ab", "\xff", "\xff\xff"};
const std::vector<const char*> texts{"", "a", "aa", "\xff"};

TEST(Bounds, OfPairs) {
  using key = std::pair<std::uint8_t, std::int8_t>;
  bounds_test<key> test(products<key>(bytes, signed_bytes));
  test.with(products<key>(bytes, signed_bytes))
      .with(products<std::pair<int, int>>(beyond_bytes, beyond_bytes))
      .with(products<std::pair<std::int64_t, unsigned>>(beyond_bytes, signed_bytes));
  for (const int a : beyond_bytes) {
    test.with_prefix(a);
    for (const int b : beyond_bytes) test.with_prefix(a, b);
  }
}
TEST(Bounds, OfPairsThatDoNotFitIntoAWord) {
  using key = std::pair<std::uint64_t, std::int64_t>;
  const std::vector<std::uint64_t> wide{0, 1, ~std::uint64_t{0}};
  bounds_test<key> test(products<key>(wide, edges<std::int64_t>()));
  test.with(products<std::pair<int, int>>(beyond_bytes, beyond_bytes))
      .with(products<std::pair<std::int64_t, std::uint64_t>>(edges<std::int64_t>(), wide));
  test.with_prefix(-1).with_prefix(1).with_prefix(1, ~std::uint64_t{0}).with_prefix(1, 0U);
}
TEST(Bounds, OfPairsThatBeginWithAString) {
  using key = std::pair<std::string, std::uint8_t>;
  bounds_test<key> test(products<key>(strings, bytes));
  test.with(products<std::pair<const char*, int>>(texts, beyond_bytes))
      .with(products<std::pair<std::string, std::int64_t>>(strings, bytes));
  for (const std::string& s : strings) {
    test.with_prefix(s).with_prefix(std::string_view(s));
    for (const int b : beyond_bytes) test.with_prefix(s, b);
  }
}
TEST(Bounds, OfTuplesThatEndWithAString) {
  using key = std::tuple<std::int8_t, std::string>;
  using other_key = std::tuple<std::uint8_t, std::string>;
  bounds_test<key> test(products<key>(signed_bytes, strings));
  bounds_test<other_key> other(products<other_key>(bytes, strings));
  const auto given = products<std::pair<int, const char*>>(beyond_bytes, texts);
  test.with(given).with(products<std::tuple<int, std::string>>(beyond_bytes, strings));
  other.with(given);
  for (const int a : beyond_bytes) {
    test.with_prefix(a);
    other.with_prefix(a);
    for (const char* const text : texts) {
      test.with_prefix(a, text);
      other.with_prefix(a, text);
    }
  }
}
TEST(Bounds, OfArrays) {
  using key = std::array<std::uint8_t, 3>;
  std::vector<key> keys;
  for (const std::uint8_t a : bytes) {
    for (const std::uint8_t b : bytes) {
      for (const std::uint8_t c : {std::uint8_t{0}, std::uint8_t{255}}) keys.push_back({a, b, c});
    }
  }
  bounds_test<key> test(keys);
  test.with(keys);
  for (const int a : beyond_bytes) {
    test.with_prefix(a);
    for (const int b : beyond_bytes) {
      test.with_prefix(a, b);
      for (const int c : beyond_bytes) test.with_prefix(a, b, c);
    }
  }
}
TEST(Bounds, OfNestedPairs) {
  using inner = std::pair<std::uint8_t, std::int8_t>;
  using key = std::pair<inner, std::string>;
  bounds_test<key> test(products<key>(products<inner>(bytes, signed_bytes), strings));
  const std::vector<int> some{-1, 0, 255, 256};
  const auto given = products<std::pair<int, int>>(some, some);
  test.with(products<std::pair<std::pair<int, int>, const char*>>(given, texts));
  for (const auto& one : given) test.with_prefix(one).with_prefix(one, "a");
}
TEST(Bounds, OfPairsOfFractions) {
  using key = std::pair<float, std::uint8_t>;
  bounds_test<key> test(products<key>(numbers<float>(), bytes));
  test.with(
      products<std::pair<double, int>>(std::vector<double>{-1e300, 0.1, 1, 1e300}, beyond_bytes));
  test.with_prefix(0.1).with_prefix(0.1F).with_prefix(1).with_prefix(1e300).with_prefix(1, 300);
}
TEST(Bounds, OfStringsAndBytes) {
  bounds_test<std::string> test(strings);
  test.with(strings).with(texts);
  for (const std::string& s : strings) {
    const auto begins_so = [&](const std::string& key) { return key.starts_with(s); };
    test.expect(prefix(s), begins_so);
    test.expect(prefix(std::string_view(s)), begins_so);
  }
}

TEST(Bounds, OfTheFirstKeyOfAScan) {
  const auto nothing = [](auto&&...) {};
  ordered_map<std::uint8_t, int> map{{0, 0}, {44, 0}, {255, 0}};
  EXPECT_EQ(map.scan_n(300, 9, nothing), 0U);
  EXPECT_EQ(map.scan_n(-1, 9, nothing), 3U);
  EXPECT_EQ(map.scan_n(44, 9, nothing), 2U);
  ordered_map<std::pair<std::string, std::uint8_t>, int> pairs{{{"a", 44}, 0}, {{"b", 0}, 0}};
  EXPECT_EQ(pairs.scan_n(std::pair("a", 300), 9, nothing), 1U);
  EXPECT_EQ(pairs.scan_n(std::pair("a", -1), 9, nothing), 2U);
  column<float> fractions;
  fractions.insert(0.1F);
  EXPECT_EQ(fractions.scan_n(0.1, 9, nothing), 1U);
  EXPECT_EQ(fractions.scan_n(1e300, 9, nothing), 0U);
}
TEST(Bounds, OfColumns) {
  column<std::uint8_t> small;
  for (const int n : {0, 44, 255}) small.insert(static_cast<std::uint8_t>(n));
  EXPECT_EQ(small.count(below(300)), 3U);
  EXPECT_EQ(small.count(from(300)), 0U);
  EXPECT_EQ(small.count(closed(-1, 44)), 2U);
  column<float> fractions;
  for (const float f : {-1.0F, 0.1F, limits<float>::infinity()}) fractions.insert(f);
  EXPECT_EQ(fractions.count(above(0.1)), 2U);
  EXPECT_EQ(fractions.count(closed(0.1F, 1e300)), 1U);
  column<double> large;
  large.insert(0x1p53);
  EXPECT_EQ(large.count(from((std::int64_t{1} << 53) + 1)), 0U);
}

}  // namespace
}  // namespace elidex::testing
