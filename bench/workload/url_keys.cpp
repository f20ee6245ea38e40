// URLs made of words: keys with long common prefixes, as string keys in practice have them.
//
//   https://www.gardener.org/meadow/ripe-tomatoes-unhurried/84213
//   scheme  host            section   words of the page's name, perhaps a number
//
// A few thousand hosts, their popularity after Zipf's law; each host has a few sections of its own,
// the first ones larger than the others. What is too short gets more words, what is too long is
// thrown away.

#include <algorithm>
#include <array>
#include <fstream>
#include <string>

#include "bench/support/bad_input.hpp"
#include "bench/workload/key_set.hpp"
#include "bench/workload/zipf.hpp"

namespace elidex::bench {
namespace {

// All chosen.
constexpr std::uint64_t hosts = 4000;
constexpr std::uint64_t sections = 40;  // of each host
constexpr double popularity = 0.8;      // theta of hosts and of sections

// Plain words of at most so many letters, so that a URL of a host, a section and a name has room.
constexpr std::size_t word_bytes_max = 14;
// Fewer could not make enough URLs that differ.
constexpr std::size_t words_min = 1000;

std::vector<std::string> read_words(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) {
    throw bad_input("--key-type: string without --key-file takes URLs made of the words in " +
                    file.string() + ", which cannot be read (expected the package wamerican-huge)");
  }
  std::vector<std::string> words;
  for (std::string word; std::getline(in, word);) {
    const bool plain =
        std::all_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
    if (plain && word.size() >= 2 && word.size() <= word_bytes_max) words.push_back(word);
  }
  if (words.size() < words_min) {
    throw bad_input("--key-type: " + file.string() + " has only " + std::to_string(words.size()) +
                    " plain words, too few for URLs (expected the package wamerican-huge)");
  }
  return words;
}

class url_maker {
 public:
  url_maker(const std::vector<std::string>& words, std::uint64_t seed)
      : words_(words), seed_(mix(seed)) {}

  // The URL of these bits, into `url`.
  void make(random_bits& bits, std::string& url) const {
    do compose(bits, url);
    while (url.size() > url_bytes_max);
  }

 private:
  void compose(random_bits& bits, std::string& url) const {
    static constexpr std::array<std::string_view, 4> domains{".com", ".org", ".net", ".co.uk"};
    const std::uint64_t host = hosts_.draw(bits);
    // What a host is called, and how it serves its pages, is the same for all of its URLs.
    random_bits of_host(seed_ ^ (host + 1));
    url = of_host.below(8) == 0 ? "http://" : "https://";
    if (of_host.below(2) == 0) url += "www.";
    url += word(of_host);
    url += domains[of_host.below(domains.size())];
    url += '/';
    random_bits of_section(seed_ ^ ((host + 1) << 20U) ^ (sections_.draw(bits) + 1));
    url += word(of_section);
    url += '/';
    url += word(bits);
    for (auto more = bits.below(3); more > 0 || url.size() < url_bytes_min;
         more -= more > 0 ? 1 : 0) {
      url += '-';
      url += word(bits);
    }
    if (bits.below(4) == 0) {
      url += '/';
      url += std::to_string(bits.below(1'000'000));
    }
  }
  const std::string& word(random_bits& bits) const { return words_[bits.below(words_.size())]; }

  const std::vector<std::string>& words_;
  std::uint64_t seed_;
  zipf_ranks hosts_{hosts, popularity};
  zipf_ranks sections_{sections, popularity};
};

}  // namespace

key_set<std::string> url_keys(std::uint64_t count, std::uint64_t seed,
                              const std::filesystem::path& words_file) {
  const std::vector<std::string> words = read_words(words_file);
  const url_maker maker(words, seed);
  random_bits bits(seed);
  std::vector<char> bytes;
  std::vector<std::size_t> ends;
  std::vector<std::string_view> keys;
  std::string url;
  while (keys.size() < count) {  // again for what was made twice
    for (std::size_t missing = count - keys.size(); missing > 0; --missing) {
      maker.make(bits, url);
      bytes.insert(bytes.end(), url.begin(), url.end());
      ends.push_back(bytes.size());
    }
    // The bytes may have moved: all views anew.
    keys.clear();
    std::size_t start = 0;
    for (const std::size_t end : ends) {
      keys.emplace_back(bytes.data() + start, end - start);
      start = end;
    }
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  }
  return {std::move(bytes), std::move(keys), seed};
}

}  // namespace elidex::bench
