// What a column's main is made of must agree with plain vectors: packed IDs with one of numbers, a
// dictionary of strings with one of strings.
//
// The bytes are a program: the first says which of the two, the next ones what is in it, the rest
// what is asked. The first difference aborts, and libFuzzer keeps the input.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "elidex/internal/column/front_coded_strings.hpp"
#include "elidex/internal/column/packed_ids.hpp"

namespace {

using elidex::internal::front_coded_strings;
using elidex::internal::packed_ids;
using id_vector = std::vector<std::uint32_t>;
using string_vector = std::vector<std::string>;

#if defined(ELIDEX_PLANTED_BUG)
constexpr bool bug_is_planted = true;
#else
constexpr bool bug_is_planted = false;
#endif

constexpr int questions_max = 8;  // of each thing that is made

class program {
 public:
  program(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}
  bool ended() const { return at_ == end_; }
  std::uint8_t byte() { return ended() ? std::uint8_t{0} : *at_++; }
  std::uint32_t number(unsigned bytes) {
    std::uint32_t made = 0;
    for (unsigned i = 0; i < bytes; ++i) made = made << 8 | byte();
    return made;
  }
  std::size_t below(std::size_t bound) { return number(2) % bound; }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

void demand(bool holds, const char* what) {
  if (holds) return;
  std::cerr << "columns differ: " << what << '\n';
  std::abort();
}

template <class Exception, class Fn>
void demand_throws(Fn&& fn, const char* what) {
  bool thrown = false;
  try {
    fn();
  } catch (const Exception&) {
    thrown = true;
  }
  demand(thrown, what);
}

// --- packed IDs
// -------------------------------------------------------------------------------------------------

// A few IDs of the program's again and again, with the row's number in some of them.
id_vector make_ids(program& p, unsigned bits) {
  const std::size_t rows = p.below(1400);
  const std::uint32_t mask = bits == 0 ? 0 : ~0U >> (packed_ids::bits_max - bits);
  id_vector pattern(1 + p.byte() % 8U);
  for (std::uint32_t& id : pattern) id = p.number(4);
  const std::uint32_t step = p.byte();
  id_vector ids(rows);
  for (std::size_t row = 0; row < rows; ++row) {
    ids[row] = (pattern[row % pattern.size()] + step * static_cast<std::uint32_t>(row / 5)) & mask;
  }
  return ids;
}

packed_ids pack_in_pieces(program& p, const id_vector& ids, unsigned bits) {
  packed_ids::writer made(ids.size(), bits);
  const std::size_t piece = 1 + p.below(1500);
  for (std::size_t at = 0; at < ids.size();) {
    const std::size_t count = std::min(ids.size() - at, 1 + (at + piece) * 7919 % piece);
    made.append(std::span(ids).subspan(at, count));
    at += count;
  }
  const id_vector one(1, 0);
  demand_throws<std::logic_error>([&] { made.append(one); }, "more IDs than rows");
  return std::move(made).finish();
}

void ask(const packed_ids& packed, const id_vector& ids, program& p) {
  const std::uint8_t question = p.byte();
  const std::uint32_t first = question < 128 ? p.number(1) : p.number(4);
  const std::uint32_t last = question < 64 ? first + 1 : question < 192 ? p.number(1) : p.number(4);
  if (question % 2 == 0) {
    std::vector<std::size_t> expected;
    for (std::size_t row = 0; row < ids.size(); ++row) {
      if (first <= ids[row] && ids[row] < last) expected.push_back(row);
    }
    if (bug_is_planted && packed.bits() == 7 && ids.size() > 700 && !expected.empty())
      expected.pop_back();
    demand(packed.count(first, last) == expected.size(), "count");
    std::vector<std::size_t> found;
    packed.for_each(first, last, [&](std::size_t row) { found.push_back(row); });
    demand(found == expected, "for_each");
    std::size_t of_words = 0;
    packed.for_each_word(first, last, [&](std::size_t row, std::uint64_t these) {
      demand(row % 64 == 0 && these != 0, "for_each_word");
      for (std::size_t bit = 0; bit < 64; ++bit) {
        if ((these >> bit & 1) == 0) continue;
        demand(of_words < expected.size() && expected[of_words++] == row + bit,
               "for_each_word row");
      }
    });
    demand(of_words == expected.size(), "for_each_word rows");
  } else {
    const std::size_t from = p.below(ids.size() + 1);
    const std::size_t count = p.below(ids.size() - from + 1);
    id_vector out(count);  // exactly as long as it may be written
    packed.unpack(from, count, out.data());
    demand(std::equal(out.begin(), out.end(), ids.begin() + static_cast<std::ptrdiff_t>(from)),
           "unpack");
    if (from < ids.size()) demand(packed.get(from) == ids[from], "get");
  }
}

void run_ids(program p) {
  const unsigned bits = p.byte() % (packed_ids::bits_max + 1);
  const id_vector ids = make_ids(p, bits);
  const packed_ids packed = pack_in_pieces(p, ids, bits);
  demand(packed.size() == ids.size() && packed.bits() == bits, "size");
  const unsigned needed = ids.empty() ? 0 : packed_ids::bits_for(std::ranges::max(ids));
  if (needed > 0) {
    demand_throws<std::invalid_argument>([&] { packed_ids::pack(ids, needed - 1); },
                                         "an ID that does not fit");
    demand(packed_ids::pack(ids, needed).get(ids.size() - 1) == ids.back(), "pack");
  }
  int questions = 0;
  do {
    ask(packed, ids, p);
  } while (!p.ended() && ++questions < questions_max);
}

// --- strings
// -------------------------------------------------------------------------------------------------

// One byte after the other changes a string, or keeps it as it is.
string_vector make_strings(program& p) {
  constexpr std::size_t bytes_max = 1 << 19;  // more takes long and shows nothing new
  std::set<std::string> made;
  std::size_t bytes = 0;
  const auto add = [&](std::string next) {
    bytes += next.size();
    if (bytes < bytes_max && next.size() <= front_coded_strings::string_bytes_max)
      made.insert(std::move(next));
  };
  std::string s;
  bool has_many = false;
  for (unsigned steps = p.byte(); steps > 0 && !p.ended(); --steps) {
    const std::uint8_t step = p.byte();
    switch (step % 8) {
      case 0:
        s.resize(s.size() - std::min<std::size_t>(s.size(), step / 8));
        break;
      case 1:
        s.append(step / 8 * std::size_t{step} / 8, static_cast<char>(p.byte()));
        break;
      case 2:
        s += static_cast<char>(p.byte());
        break;
      case 3:
        if (!s.empty()) ++s.back();
        break;
      case 4:  // some blocks
        for (int i = 0; i < step / 4; ++i) add(s + std::to_string(i));
        break;
      case 5:  // two segments
        for (int i = 0; i < 17'000 && step == 253 && !has_many; ++i) add(s + std::to_string(i));
        has_many = has_many || step == 253;
        break;
      case 6:
        if (step == 254 && s.size() < 600) s.append(65'000, static_cast<char>(p.byte()));
        break;
      default:
        break;
    }
    if (s.size() > front_coded_strings::string_bytes_max)
      s.resize(front_coded_strings::string_bytes_max);
    if (step < 128) add(s);
  }
  return {made.begin(), made.end()};
}

void ask(const front_coded_strings& strings, const string_vector& expected, program& p) {
  const std::size_t from = p.below(expected.size() + 1);
  front_coded_strings::cursor at(strings, from);
  for (std::size_t i = from; i < std::min(expected.size(), from + 40); ++i, at.next()) {
    demand(at.valid() && at.value() == expected[i], "cursor");
    demand(strings.get(i) == expected[i], "get");
  }
  demand(at.valid() == (from + 40 < expected.size()), "end");

  std::string wanted = from < expected.size() ? expected[from] : std::string();
  const std::uint8_t change = p.byte();
  if (change % 4 == 1) wanted += static_cast<char>(p.byte());
  if (change % 4 > 1 && !wanted.empty()) {
    wanted.resize(wanted.size() - (change / 4 % 16U) % wanted.size());
    wanted.back() = static_cast<char>(wanted.back() + (change % 4 == 2 ? 1 : -1));
  }
  const auto lower = std::ranges::lower_bound(expected, wanted) - expected.begin();
  const auto upper = std::ranges::upper_bound(expected, wanted) - expected.begin();
  demand(strings.lower_bound(wanted) == static_cast<std::size_t>(lower), "lower_bound");
  demand(strings.upper_bound(wanted) == static_cast<std::size_t>(upper), "upper_bound");
}

void run_strings(program p) {
  const string_vector expected = make_strings(p);
  front_coded_strings::builder made;
  const std::size_t refused = p.below(expected.size() + 1);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    made.append(expected[i]);
    if (i != refused) continue;
    demand_throws<std::invalid_argument>([&] { made.append(expected[i]); }, "equal");
    demand_throws<std::invalid_argument>([&] { made.append(expected[i / 2]); }, "not greater");
  }
  demand(made.size() == expected.size(), "builder's size");
  const front_coded_strings strings = std::move(made).finish();
  demand(strings.size() == expected.size(), "size");
  int questions = 0;
  do {
    ask(strings, expected, p);
  } while (!p.ended() && ++questions < questions_max);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  program p(data, size);
  if (p.byte() % 2 == 0) {
    run_ids(p);
  } else {
    run_strings(p);
  }
  return 0;
}
