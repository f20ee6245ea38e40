// Key sets and request streams: distinct keys, adjacent hot keys, equal seeds and equal work, the
// workloads' mixtures.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "bench/support/bad_input.hpp"
#include "bench/workload/workload.hpp"

namespace {

using namespace elidex::bench;
using u64_stream = request_stream<std::uint64_t>;

std::filesystem::path file_with(const std::string& text) {
  static int files = 0;
  const std::filesystem::path file = testing::TempDir() + "elidex_keys_" +
                                     std::to_string(getpid()) + "_" + std::to_string(++files) +
                                     ".txt";
  std::ofstream(file, std::ios::binary) << text;
  return file;
}

stream_shape shape(std::string_view what, std::string_view where = "uniform",
                   std::uint64_t requests = 20000) {
  return {.what = find_workload(what), .where = *parse_distribution(where), .requests = requests};
}

template <class Key>
struct unpacked {
  request_kind kind;
  Key key;
  std::uint32_t scan_length;
  friend bool operator==(const unpacked&, const unpacked&) = default;
};

template <class Key>
std::vector<unpacked<Key>> requests_of(const request_stream<Key>& stream) {
  std::vector<unpacked<Key>> all;
  for (request_cursor<Key> at(stream); at.remaining() > 0;) {
    const auto one = at.next();
    all.push_back({one.kind, Key(one.key), one.kind == request_kind::scan ? at.scan_length() : 0});
  }
  return all;
}

TEST(key_set, random_keys_are_distinct_and_ascending) {
  const auto keys = random_keys(100'000, 1);
  ASSERT_EQ(keys.size(), 100'000U);
  std::vector<bool> loaded(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i > 0) {
      ASSERT_LT(keys.at(i - 1), keys.at(i));
    }
    ASSERT_FALSE(loaded[keys.load_rank(i)]);
    loaded[keys.load_rank(i)] = true;
  }
}

TEST(key_set, fresh_keys_are_in_no_key_set_and_handed_out_once) {
  const auto keys = random_keys(10'000, 1);
  std::set<std::uint64_t> all;
  for (std::size_t i = 0; i < keys.size(); ++i) all.insert(keys.at(i));
  random_bits bits(1);
  for (unsigned thread = 0; thread < 8; ++thread) {
    for (std::uint64_t i = 0; i < 1000; ++i)
      EXPECT_TRUE(all.insert(keys.fresh(thread, i, bits)).second);
  }
  const auto words = read_keys(file_with("a\nb\nabc\n"), std::nullopt, 1);
  std::set<std::string> strings{"a", "b", "abc"};
  for (unsigned thread = 0; thread < 8; ++thread) {
    for (std::uint64_t i = 0; i < 1000; ++i)
      EXPECT_TRUE(strings.insert(words.fresh(thread, i, bits)).second);
  }
}

TEST(key_set, reads_one_key_per_line_in_byte_order) {
  const auto keys = read_keys(file_with("b\n\xc3\xa9t\xc3\xa9\nZebra\na b\n\nlast without newline"),
                              std::nullopt, 1);
  std::vector<std::string> all;
  for (std::size_t i = 0; i < keys.size(); ++i) all.emplace_back(keys.at(i));
  EXPECT_THAT(all, testing::ElementsAre("", "Zebra", "a b", "b", "last without newline",
                                        "\xc3\xa9t\xc3\xa9"));
}

TEST(key_set, takes_a_sample_where_fewer_keys_are_asked_for) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += std::to_string(i) + "\n";
  const auto file = file_with(text);
  const auto keys = read_keys(file, 100, 1);
  ASSERT_EQ(keys.size(), 100U);
  for (std::size_t i = 1; i < keys.size(); ++i) EXPECT_LT(keys.at(i - 1), keys.at(i));
  EXPECT_THROW((void)read_keys(file, 1001, 1), bad_input);
}

TEST(key_set, takes_keys_up_to_64_kib) {
  const std::string longest(key_bytes_max, 'x');
  EXPECT_EQ(read_keys(file_with(longest + "\ny\n"), std::nullopt, 1).size(), 2U);
  EXPECT_THROW((void)read_keys(file_with(longest + "x\ny\n"), std::nullopt, 1), bad_input);
  random_bits bits(1);
  const auto keys = read_keys(file_with(longest), std::nullopt, 1);
  EXPECT_LE(keys.fresh(3, 17, bits).size(), key_bytes_max);
}

std::string refusal(const std::filesystem::path& file, const key_file_limits& limits) {
  try {
    (void)read_keys(file, std::nullopt, 1, limits);
  } catch (const bad_input& error) {
    return error.what();
  }
  return "taken";
}

TEST(key_set, reads_no_more_than_its_limits) {
  const auto file = file_with("a\nb\nc\n");
  for (const std::size_t piece : {1U, 2U, 100U}) {
    EXPECT_EQ(refusal(file, {.bytes = 6, .keys = 3, .piece_bytes = piece}), "taken");
    EXPECT_THAT(refusal(file, {.bytes = 5, .keys = 3, .piece_bytes = piece}),
                testing::HasSubstr("more than 5 bytes"));
    EXPECT_THAT(refusal(file, {.bytes = 6, .keys = 2, .piece_bytes = piece}),
                testing::HasSubstr("more than 2 lines"));
  }
}

TEST(key_set, a_line_is_checked_before_it_ends) {
  const auto file = file_with(std::string(key_bytes_max + 1, 'x'));
  EXPECT_THAT(refusal(file, {.piece_bytes = 1000}),
              testing::HasSubstr("more than 65536 bytes in line 1"));
  EXPECT_THAT(refusal(file_with(std::string("a\nb\0", 4)), {.piece_bytes = 1}),
              testing::HasSubstr("NUL byte in line 2"));
}

// Words enough for URLs, the same on every machine.
std::filesystem::path some_words() {
  std::string text = "It's\n\xc3\xa9t\xc3\xa9\nX\n";  // none of which is plain
  for (int i = 0; i < 2000; ++i) {
    std::string word = "w";
    for (int rest = i; rest > 0; rest /= 26) word += static_cast<char>('a' + rest % 26);
    text += word + "x\n";
  }
  return file_with(text);
}

TEST(key_set, urls_are_distinct_and_ascending_and_of_30_to_80_bytes) {
  const auto urls = url_keys(50'000, 1, some_words());
  ASSERT_EQ(urls.size(), 50'000U);
  std::size_t shortest = url_bytes_max;
  std::size_t longest = 0;
  for (std::size_t i = 0; i < urls.size(); ++i) {
    if (i > 0) {
      ASSERT_LT(urls.at(i - 1), urls.at(i));
    }
    EXPECT_TRUE(urls.at(i).starts_with("http://") || urls.at(i).starts_with("https://"))
        << urls.at(i);
    EXPECT_EQ(urls.at(i).find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789:/.-"),
              std::string_view::npos);
    shortest = std::min(shortest, urls.at(i).size());
    longest = std::max(longest, urls.at(i).size());
  }
  EXPECT_EQ(shortest, url_bytes_min);
  EXPECT_LE(longest, url_bytes_max);
}

TEST(key_set, urls_share_hosts_of_which_some_are_popular) {
  const auto urls = url_keys(50'000, 1, some_words());
  std::map<std::string_view, std::size_t> pages;
  for (std::size_t i = 0; i < urls.size(); ++i)
    ++pages[urls.at(i).substr(0, urls.at(i).find('/', 8))];
  EXPECT_GT(pages.size(), 2000U);
  EXPECT_LE(pages.size(), 4000U);
  std::size_t most = 0;
  for (const auto& [host, count] : pages) most = std::max(most, count);
  EXPECT_GT(most, 10 * urls.size() / pages.size());
}

TEST(key_set, equal_seeds_give_equal_urls) {
  const auto words = some_words();
  const auto one = url_keys(3000, 1, words);
  const auto again = url_keys(3000, 1, words);
  const auto other = url_keys(3000, 2, words);
  std::size_t in_both = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    ASSERT_EQ(one.at(i), again.at(i));
    ASSERT_EQ(one.load_rank(i), again.load_rank(i));
    in_both += one.at(i) == other.at(i) ? 1U : 0U;
  }
  EXPECT_LT(in_both, one.size() / 10);
}

TEST(key_set, urls_need_a_word_list) {
  const auto refused = [](const std::filesystem::path& words) {
    try {
      (void)url_keys(10, 1, words);
    } catch (const bad_input& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refused("no/such/list"), testing::HasSubstr("(expected the package wamerican-huge)"));
  EXPECT_THAT(refused(file_with("one\ntwo\n")), testing::HasSubstr("has only 2 plain words"));
}

TEST(distributions, are_read_strictly) {
  EXPECT_EQ(parse_distribution("uniform")->theta, 0);
  EXPECT_EQ(parse_distribution("zipf:0.99")->theta, 0.99);
  EXPECT_FALSE(parse_distribution("zipf:0.99")->scrambled);
  EXPECT_TRUE(parse_distribution("zipf:1.2:scrambled")->scrambled);
  EXPECT_FALSE(parse_distribution("zipf:0.99")->region);
  EXPECT_TRUE(parse_distribution("hot:1")->region);
  EXPECT_EQ(parse_distribution("hot:0.7")->theta, 0.7);
  for (const char* wrong : {"", "zipf", "zipf:", "zipf:x", "zipf:-0.1", "zipf:1.3", "zipf:nan",
                            "zipf:inf", "zipf:0.5x", "zipf:0.5:", "uniform:scrambled", "Uniform",
                            "zipf: 0.5", "hot:", "hot:1.01", "hot:-1", "hot:0.5:scrambled"}) {
    EXPECT_FALSE(parse_distribution(wrong)) << wrong;
  }
}

TEST(streams, equal_seeds_give_equal_streams_whatever_the_number_of_threads) {
  const auto keys = random_keys(5000, 1);
  for (const char* what : {"a", "b", "c", "d", "e", "f", "mix:80"}) {
    const auto two = make_streams(keys, shape(what, "zipf:0.9"), 2);
    const auto eight = make_streams(keys, shape(what, "zipf:0.9"), 8);
    EXPECT_EQ(two[0], eight[0]) << what;
    EXPECT_EQ(two[1], eight[1]) << what;
    EXPECT_NE(two[0], two[1]) << what;
    auto other = shape(what, "zipf:0.9");
    other.seed = 2;
    EXPECT_NE(two[0], make_stream(keys, other, 0, 2)) << what;
  }
}

TEST(streams, hold_the_workload_s_mixture) {
  const auto keys = random_keys(5000, 1);
  const std::map<std::string, std::map<request_kind, double>> mixtures{
      {"a", {{request_kind::read, 0.5}, {request_kind::put, 0.5}}},
      {"b", {{request_kind::read, 0.95}, {request_kind::put, 0.05}}},
      {"c", {{request_kind::read, 1.0}}},
      {"d", {{request_kind::read, 0.95}, {request_kind::insert, 0.05}}},
      {"e", {{request_kind::scan, 0.95}, {request_kind::insert, 0.05}}},
      {"f", {{request_kind::read, 0.5}, {request_kind::modify, 0.5}}},
      {"mix:20", {{request_kind::read, 0.2}, {request_kind::put, 0.8}}},
      {"mix:100", {{request_kind::read, 1.0}}},
      {"multi-get", {{request_kind::read_many, 1.0}}},
      {"multi-upsert:16", {{request_kind::insert_many, 1.0}}},
      {"bulk-load", {{request_kind::insert_all, 1.0}}},
  };
  for (const auto& [what, mixture] : mixtures) {
    std::map<request_kind, double> seen;
    const auto requests = requests_of(make_stream(keys, shape(what), 0, 1));
    for (const auto& one : requests) seen[one.kind] += 1 / static_cast<double>(requests.size());
    ASSERT_EQ(seen.size(), mixture.size()) << what;
    for (const auto& [kind, share] : mixture) EXPECT_NEAR(seen[kind], share, 0.02) << what;
  }
}

TEST(streams, hot_keys_are_the_smallest_unless_scrambled) {
  const auto keys = random_keys(10'000, 1);
  const auto counts = [&](std::string_view where) {
    std::map<std::uint64_t, int> count;
    for (const auto& one : requests_of(make_stream(keys, shape("c", where, 200'000), 0, 1)))
      ++count[one.key];
    std::vector<std::pair<int, std::uint64_t>> hottest;
    for (const auto& [key, times] : count) hottest.emplace_back(times, key);
    std::sort(hottest.rbegin(), hottest.rend());
    return hottest;
  };
  const auto adjacent = counts("zipf:0.99");
  for (std::size_t rank = 0; rank < 4; ++rank) EXPECT_EQ(adjacent[rank].second, keys.at(rank));
  const auto scattered = counts("zipf:0.99:scrambled");
  EXPECT_NEAR(scattered[0].first, adjacent[0].first, 800);
  std::vector<std::uint64_t> hot;
  for (std::size_t rank = 0; rank < 16; ++rank) hot.push_back(scattered[rank].second);
  const auto [low, high] = std::minmax_element(hot.begin(), hot.end());
  EXPECT_GT(*high - *low, UINT64_MAX / 2)
      << "sixteen scattered keys should span most of the key space";
}

TEST(streams, load_and_delete_name_every_key_once) {
  const auto keys = random_keys(9973, 1);
  for (const char* what : {"load", "delete"}) {
    for (const unsigned threads : {1U, 3U, 8U}) {
      std::set<std::uint64_t> seen;
      for (const auto& stream : make_streams(keys, shape(what), threads)) {
        for (const auto& one : requests_of(stream)) EXPECT_TRUE(seen.insert(one.key).second);
      }
      EXPECT_EQ(seen.size(), keys.size());
    }
  }
  auto ascending = shape("load");
  ascending.order = key_order::ascending;
  const auto requests = requests_of(make_stream(keys, ascending, 0, 1));
  EXPECT_TRUE(std::is_sorted(requests.begin(), requests.end(),
                             [](auto& l, auto& r) { return l.key < r.key; }));
}

TEST(streams, churn_replaces_every_key_by_a_new_one) {
  const auto keys = random_keys(997, 1);
  std::set<std::uint64_t> there;
  for (std::size_t i = 0; i < keys.size(); ++i) there.insert(keys.at(i));
  for (const auto& stream : make_streams(keys, shape("churn"), 3)) {
    for (const auto& one : requests_of(stream)) {
      if (one.kind == request_kind::insert) {
        EXPECT_TRUE(there.insert(one.key).second);
      } else {
        EXPECT_EQ(one.kind, request_kind::erase);
        EXPECT_EQ(there.erase(one.key), 1U);
      }
      EXPECT_LE(there.size(), keys.size() + 1);
    }
  }
  EXPECT_EQ(there.size(), keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_FALSE(there.contains(keys.at(i)));
}

TEST(streams, interleaved_threads_append_at_the_same_end) {
  const auto keys = random_keys(103, 1);
  for (const char* what : {"load", "delete"}) {
    for (const unsigned threads : {1U, 4U, 200U}) {
      auto interleaved = shape(what);
      interleaved.order = key_order::interleaved;
      const auto streams = make_streams(keys, interleaved, threads);
      std::size_t seen = 0;
      for (unsigned t = 0; t < threads; ++t) {
        std::size_t rank = t;
        for (const auto& one : requests_of(streams[t])) {
          EXPECT_EQ(one.key, keys.at(rank));
          rank += threads;
          ++seen;
        }
      }
      EXPECT_EQ(seen, keys.size());
    }
  }
}

TEST(orders, have_names) {
  for (const char* name : {"random", "ascending", "interleaved"})
    EXPECT_EQ(to_string(*parse_key_order(name)), name);
  EXPECT_FALSE(parse_key_order("descending"));
}

TEST(streams, a_hot_region_takes_its_share_of_adjacent_keys) {
  const auto keys = random_keys(1'000'000, 1);
  constexpr std::size_t region = 100;
  for (const double theta : {0.0, 0.5, 0.99, 1.0}) {
    std::map<std::uint64_t, double> count;
    const std::string where = "hot:" + std::to_string(theta);
    const auto requests = requests_of(make_stream(keys, shape("c", where, 100'000), 0, 1));
    for (const auto& one : requests) ++count[one.key];
    double hot = 0;
    double most = 0;
    for (std::size_t i = 0; i < region; ++i) {
      const double times = count[keys.at((keys.size() - region) / 2 + i)];
      hot += times;
      most = std::max(most, times);
    }
    EXPECT_NEAR(hot / static_cast<double>(requests.size()), theta, 0.01);
    EXPECT_LT(most, 2 * (theta * static_cast<double>(requests.size()) / region) + 5)
        << "each hot key alike";
  }
  // Few keys: sixteen of them, or all.
  const auto few = random_keys(10, 1);
  EXPECT_EQ(requests_of(make_stream(few, shape("c", "hot:1", 1000), 0, 1)).size(), 1000U);
}

TEST(streams, d_reads_only_what_is_there_and_mostly_the_latest) {
  const auto keys = random_keys(5000, 1);
  std::map<std::uint64_t, std::size_t> inserted_at;
  for (std::size_t i = 0; i < keys.size(); ++i) inserted_at[keys.at(keys.load_rank(i))] = i;
  std::size_t reads = 0;
  std::size_t recent = 0;
  for (const auto& one : requests_of(make_stream(keys, shape("d", "zipf:0.99"), 0, 1))) {
    if (one.kind == request_kind::insert) {
      EXPECT_TRUE(inserted_at.emplace(one.key, inserted_at.size()).second);
      continue;
    }
    ASSERT_TRUE(inserted_at.contains(one.key));
    ++reads;
    recent += inserted_at.size() - inserted_at[one.key] <= 100 ? 1U : 0U;
  }
  EXPECT_GT(static_cast<double>(recent), 0.45 * static_cast<double>(reads));
}

TEST(streams, scan_lengths_are_fixed_or_drawn_from_the_range) {
  const auto keys = random_keys(1000, 1);
  for (const auto& one : requests_of(make_stream(keys, shape("e"), 0, 1))) {
    if (one.kind == request_kind::scan) {
      EXPECT_EQ(one.scan_length, 100U);
    }
  }
  auto ranged = shape("e");
  ranged.scan_length_min = 1;
  std::set<std::uint32_t> lengths;
  for (const auto& one : requests_of(make_stream(keys, ranged, 0, 1))) {
    if (one.kind == request_kind::scan) lengths.insert(one.scan_length);
  }
  EXPECT_EQ(lengths.size(), 100U);
  EXPECT_EQ(*lengths.begin(), 1U);
  EXPECT_EQ(*lengths.rbegin(), 100U);
}

TEST(streams, string_keys_come_back_byte_for_byte) {
  request_stream<std::string> stream;
  const std::vector<std::string> keys{"", "a", std::string("with\0nul", 8),
                                      std::string(key_bytes_max, 'x')};
  for (const auto& key : keys) stream.append(request_kind::read, key);
  stream.append_scan("from", 7);
  const auto requests = requests_of(stream);
  ASSERT_EQ(requests.size(), 5U);
  for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(requests[i].key, keys[i]);
  EXPECT_EQ(requests[4], (unpacked<std::string>{request_kind::scan, "from", 7}));
}

}  // namespace
