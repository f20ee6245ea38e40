// A dictionary of strings does what a sorted vector of them does: around the ends of its blocks and
// segments, with strings of any bytes and of any length up to the longest.
#include "elidex/internal/column/front_coded_strings.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/random_seed.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

using string_vector = std::vector<std::string>;
using namespace std::string_literals;

front_coded_strings made_of(const string_vector& strings) {
  front_coded_strings::builder made;
  for (const std::string& s : strings) made.append(s);
  EXPECT_EQ(made.size(), strings.size());
  return std::move(made).finish();
}

// A value as it is, and those just before and behind it.
string_vector neighbours_of(const std::string& s) {
  string_vector neighbours{s, s + '\0', s + '\xFF', s + "m"};
  if (!s.empty()) {
    neighbours.push_back(s.substr(0, s.size() - 1));
    neighbours.push_back(s.substr(0, s.size() / 2));
    for (const int difference : {-1, 1}) {
      std::string other = s;
      other.back() = static_cast<char>(other.back() + difference);
      neighbours.push_back(other);
      other = s;
      other[s.size() / 2] = static_cast<char>(other[s.size() / 2] + difference);
      neighbours.push_back(other);
    }
  }
  return neighbours;
}

void expect_bounds(const front_coded_strings& made, const string_vector& strings,
                   const std::string& wanted) {
  const auto lower = std::ranges::lower_bound(strings, wanted) - strings.begin();
  const auto upper = std::ranges::upper_bound(strings, wanted) - strings.begin();
  ASSERT_EQ(made.lower_bound(wanted), static_cast<std::size_t>(lower)) << wanted.substr(0, 100);
  ASSERT_EQ(made.upper_bound(wanted), static_cast<std::size_t>(upper)) << wanted.substr(0, 100);
}

// Every `step`-th string and the values around it, and cursors from there over the next forty.
void expect_same(const front_coded_strings& made, const string_vector& strings,
                 std::size_t step = 1) {
  ASSERT_EQ(made.size(), strings.size());
  for (std::size_t i = 0; i < strings.size(); i += step) {
    ASSERT_EQ(made.get(i), strings[i]) << i;
    for (const std::string& wanted : neighbours_of(strings[i]))
      expect_bounds(made, strings, wanted);
  }
  for (const std::string& wanted :
       {""s, "\0"s, "m"s, "\x7F"s, "\x80"s, "\xFF"s, std::string(100, '\xFF')}) {
    expect_bounds(made, strings, wanted);
  }
  for (std::size_t from = 0; from <= strings.size(); from += step) {
    front_coded_strings::cursor at(made, from);
    for (std::size_t i = from; i < std::min(strings.size(), from + 40); ++i, at.next()) {
      ASSERT_TRUE(at.valid());
      ASSERT_EQ(at.value(), strings[i]) << i << " from " << from;
    }
    ASSERT_EQ(at.valid(), from + 40 < strings.size());
  }
}

void expect_right(const std::set<std::string>& strings, std::size_t step = 1) {
  const string_vector sorted(strings.begin(), strings.end());
  expect_same(made_of(sorted), sorted, step);
}

TEST(FrontCodedStrings, MayBeNone) {
  expect_same(front_coded_strings(), {});
  expect_right({});
  EXPECT_FALSE(front_coded_strings::cursor(front_coded_strings(), 0).valid());
}

TEST(FrontCodedStrings, MayBeOne) {
  expect_right({"one"});
  expect_right({""});
  expect_right({"\0"s});
  expect_right({"\xFF\xFF"});
}

TEST(FrontCodedStrings, AreRightAroundTheEndsOfBlocks) {
  for (const std::size_t count : {2U, 15U, 16U, 17U, 31U, 32U, 33U, 48U, 100U}) {
    std::set<std::string> strings;
    for (std::size_t i = 0; i < count; ++i) strings.insert("name" + std::to_string(1000 + i * i));
    expect_right(strings);
  }
}

TEST(FrontCodedStrings, MayBeginAndEndAlike) {
  // Each is the next one's beginning, and then each ends like its predecessor.
  std::set<std::string> longer;
  for (std::size_t length = 0; length < 70; ++length) longer.insert(std::string(length, 'a'));
  expect_right(longer);
  std::set<std::string> tails;
  for (char c = 'a'; c <= 'z'; ++c) {
    for (std::size_t length = 0; length < 5; ++length)
      tails.insert(std::string(40, 'h') + c + std::string(length, 'z'));
  }
  expect_right(tails);
}

TEST(FrontCodedStrings, MayHaveAnyBytes) {
  std::set<std::string> strings{""};
  for (const char a : {'\0', '\1', '\x7F', '\x80', '\xFE', '\xFF'}) {
    for (const char b : {'\0', 'b', '\xFF'}) {
      for (std::size_t length = 0; length < 4; ++length)
        strings.insert(std::string(length, a) + b + std::string(length, b));
    }
  }
  ASSERT_GT(strings.size(), 33U);
  expect_right(strings);
}

TEST(FrontCodedStrings, MayBeAsLongAsAllowed) {
  constexpr std::size_t most = front_coded_strings::string_bytes_max;
  std::set<std::string> strings;
  for (const std::size_t length : {254U, 255U, 256U, 257U, 511U, 65'535U, 65'536U}) {
    strings.insert(std::string(length, 'q'));
    strings.insert(std::string(length - 1, 'q') + 'z');
    strings.insert(std::string(length, '\xFF'));
    strings.insert(std::to_string(length) + std::string(length - 5, '\0'));
  }
  for (int i = 0; i < 40; ++i) strings.insert("short" + std::to_string(i));
  expect_right(strings);
  front_coded_strings::builder made;
  made.append(std::string(most, 'a'));
  EXPECT_THROW(made.append(std::string(most + 1, 'b')), std::length_error);
}

TEST(FrontCodedStrings, LikeNamesOfThings) {
  random_numbers random(seed_or(1));
  static constexpr const char* hosts[] = {"https://example.org/", "https://example.org/wiki/",
                                          "https://www.example.com/shop/", "urn:"};
  std::set<std::string> strings;
  while (strings.size() < 5000)
    strings.insert(hosts[random.below(4)] + std::to_string(random.below(1'000'000)));
  expect_right(strings, 7);
}

TEST(FrontCodedStrings, OfFewDifferentBytes) {
  random_numbers random(seed_or(2));
  for (int round = 0; round < repetitions(40); ++round) {
    std::set<std::string> strings;
    const std::size_t count = random.below(100);
    const std::size_t longest = 1 + random.below(round % 4 == 0 ? 600 : 12);
    for (std::size_t i = 0; i < count; ++i) {
      std::string s(random.below(longest + 1), '\0');
      for (char& c : s) c = "\0a\xFF"[random.below(round % 3 == 0 ? 2 : 3)];
      strings.insert(s);
    }
    expect_right(strings);
  }
}

TEST(FrontCodedStrings, OfSeveralSegments) {
  // What the first and the last one share differs from segment to segment; and in some, heads agree
  // in more than their keys.
  string_vector strings;
  for (int i = 0; i < 40'000; ++i) {
    const std::string number = std::to_string(1'000'000 + i);
    strings.push_back((i < 17'000   ? "a/"
                       : i < 20'000 ? "a/b/c/d/e/f/g/"
                                    : "a/b/c/d/e/f/g/h/") +
                      number);
  }
  ASSERT_TRUE(std::ranges::is_sorted(strings));
  const front_coded_strings made = made_of(strings);
  expect_same(made, strings, 13);
  std::size_t i = 0;
  for (front_coded_strings::cursor at(made, 0); at.valid(); at.next())
    ASSERT_EQ(at.value(), strings[i++]);
  EXPECT_EQ(i, strings.size());
  std::size_t bytes = 0;
  for (const std::string& s : strings) bytes += s.size();
  EXPECT_LT(made.memory_bytes(), bytes / 3);
  EXPECT_GT(made.memory_bytes(), strings.size() * 3);  // two lengths and at least a byte of each
}

TEST(FrontCodedStrings, OutOfOrderAreRefused) {
  for (const auto& [first, second] : {std::pair{"b"s, "a"s},
                                      {"b"s, "b"s},
                                      {""s, ""s},
                                      {"a"s, ""s},
                                      {"ab"s, "a"s},
                                      {"\x80"s, "\x7F"s}}) {
    front_coded_strings::builder made;
    made.append(first);
    EXPECT_THROW(made.append(second), std::invalid_argument) << first << ' ' << second;
    made.append(first + "z");  // what was refused left nothing behind
    expect_same(std::move(made).finish(), {first, first + "z"});
  }
}

TEST(FrontCodedStrings, CanBeMoved) {
  string_vector strings;
  for (char c = 'A'; c <= 'Z'; ++c) strings.emplace_back(3, c);
  front_coded_strings first = made_of(strings);
  front_coded_strings second = std::move(first);
  expect_same(second, strings);
  first = made_of({"x"});
  second = std::move(first);
  expect_same(second, {"x"});
}

// One block each: lengths that just fit into a byte, and those that just do not.
TEST(FrontCodedStrings, KeepsLengthsAroundWhatAByteHolds) {
  for (const std::size_t length : {254U, 255U, 256U, 257U}) {
    const std::string same(length, 'm');
    for (const std::vector<std::string>& all :
         {std::vector<std::string>{same}, {"a", same}, {same, same + "a", same + "b"}}) {
      front_coded_strings::builder building;
      for (const std::string& one : all) building.append(one);
      const front_coded_strings made = std::move(building).finish();
      for (std::size_t i = 0; i < all.size(); ++i) {
        EXPECT_EQ(made.get(i), all[i]) << length;
        EXPECT_EQ(made.lower_bound(all[i]), i) << length;
      }
    }
  }
}

}  // namespace
}  // namespace elidex::testing
