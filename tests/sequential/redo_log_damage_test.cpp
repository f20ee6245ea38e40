// Every truncation and every flipped bit of a small log: a prefix of groups or an error, and never
// silently less than was durable.
#include <gtest/gtest.h>

#include <limits>

#include "elidex/internal/log/log_compression.hpp"
#include "elidex/internal/log/log_writer.hpp"
#include "elidex/internal/log/recovery.hpp"
#include "support/faulty_directory.hpp"
#include "support/logged_store.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

using namespace std::chrono_literals;

enum class outcome {
  refused,  // log_error
  all,      // every group
  prefix,   // the groups up to some earlier one
  wrong,    // something that no prefix leaves
};

// A log with its history; what it has is durable.
std::string key_of(int n) {
  return std::string("k").append(std::to_string(n));
}

struct sample_log {
  faulty_disk disk;
  std::vector<row_map> states;  // after each transaction; the first is before all of them
  std::vector<std::uint64_t> groups;

  outcome recover(faulty_disk from) const {
    try {
      const logged_store store(*from.directory());
      const row_map rows = store.rows();
      const std::uint64_t durable = store.found().durable_group;
      std::size_t count = 0;
      while (count < groups.size() && groups[count] <= durable) ++count;
      if (rows != states[count]) return outcome::wrong;
      return count == groups.size() ? outcome::all : outcome::prefix;
    } catch (const log_error&) {
      return outcome::refused;
    }
  }
};

struct sample_form {
  std::size_t segment_bytes;
  bool with_checkpoint = false;  // that is younger than a part of the groups
  compression compressed = compression::none;
};

// Some groups with two workers' transactions, over some segments.
sample_log sample(const sample_form& form) {
  sample_log made;
  // Shorter blocks are not compressed, so each row is padded.
  const bool compresses = form.compressed != compression::none && is_built_with(form.compressed);
  const std::string padding(compresses ? 600 : 0, '-');
  const auto directory = made.disk.directory();
  logged_store store(*directory);
  commit_clock clock;
  redo_log log(clock, *directory, store.found(),
               {.level = durability::async,
                .fingerprint = logged_store::fingerprint,
                .group_time = 1h,
                .segment_bytes = form.segment_bytes,
                .compressed = compresses ? form.compressed : compression::none});
  redo_log::worker first(log);
  redo_log::worker second(log);
  made.states.emplace_back();
  for (int i = 0; i < 5; ++i) {
    const std::string text = std::to_string(i);
    for (redo_log::worker* const by : {&first, &second}) {
      // Of which a change logs one word.
      const std::string long_row =
          std::string(40, '.') + (by == &first ? "by first" : "by other") + std::string(8, '.');
      const std::string row = std::string("row ").append(text).append(padding);
      made.groups.push_back(store.transact(*by, {{{0, key_of(i)}, row},
                                                 {{1, "same"}, text + (by == &first ? "a" : "b")},
                                                 {{1, "long"}, long_row},
                                                 {{0, key_of(i - 2)}, std::nullopt}}));
      made.states.push_back(store.rows());
    }
    log.wait_durable(made.groups.back());
    if (form.with_checkpoint && i == 2) store.checkpoint(log, [] {});
  }
  log.close();  // which waits for the last confirmation and adds nothing
  made.disk = made.disk.copy();
  return made;
}

class Damage : public ::testing::TestWithParam<sample_form> {
 protected:
  sample_log made_ = sample(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Logs, Damage,
                         ::testing::Values(sample_form{std::size_t{1} << 20}, sample_form{600},
                                           sample_form{1000, true},
                                           sample_form{std::size_t{1} << 20, true},
                                           sample_form{1000, true, compression::zstd}));

TEST_P(Damage, NoneIsNoDamage) {
  EXPECT_EQ(made_.recover(made_.disk.copy()), outcome::all);
}

TEST_P(Damage, EveryTruncation) {
  const std::vector<std::string> names = made_.disk.names();
  std::size_t prefixes = 0;
  for (const std::string& name : names) {
    const bool newest = name == names.back();
    const std::size_t size = made_.disk.bytes(name).size();
    for (std::size_t length = 0; length < size; ++length) {
      faulty_disk cut = made_.disk.copy();
      cut.bytes(name).resize(length);
      const outcome seen = made_.recover(std::move(cut));
      ASSERT_NE(seen, outcome::wrong) << name << " cut to " << length;
      // All files but the newest are known to be whole by others.
      if (!newest) {
        ASSERT_EQ(seen, outcome::refused) << name << " cut to " << length;
      }
      prefixes += seen == outcome::prefix ? 1U : 0U;
    }
  }
  EXPECT_GT(prefixes, 0u);
}

TEST_P(Damage, EveryFlippedBitIsHarmlessOrFound) {
  std::size_t refused = 0;
  for (const std::string& name : made_.disk.names()) {
    const std::size_t size = made_.disk.bytes(name).size();
    for (std::size_t bit = 0; bit < size * 8; ++bit) {
      faulty_disk flipped = made_.disk.copy();
      char& byte = flipped.bytes(name)[bit / 8];
      byte = static_cast<char>(byte ^ (1 << (bit % 8)));
      const outcome seen = made_.recover(std::move(flipped));
      ASSERT_TRUE(seen == outcome::refused || seen == outcome::all) << name << " bit " << bit;
      refused += seen == outcome::refused ? 1U : 0U;
    }
  }
  EXPECT_GT(refused, 0u);
}

// As after a crash before the last sync was confirmed: the last group cannot be told from a torn
// one.
TEST_P(Damage, EveryFlippedBitWithoutTheLastConfirmation) {
  const std::string name = made_.disk.names().back();
  std::string& bytes = made_.disk.bytes(name);
  ASSERT_GT(bytes.size(), internal::file_header_bytes + internal::block_header_bytes);
  bytes.resize(bytes.size() - internal::block_header_bytes);
  ASSERT_EQ(made_.recover(made_.disk.copy()), outcome::all);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    faulty_disk flipped = made_.disk.copy();
    char& byte = flipped.bytes(name)[bit / 8];
    byte = static_cast<char>(byte ^ (1 << (bit % 8)));
    ASSERT_NE(made_.recover(std::move(flipped)), outcome::wrong) << name << " bit " << bit;
  }
}

// Ranges that are zero, doubled, left out, or in another place.
TEST_P(Damage, RandomOnes) {
  random_numbers random(seed_or(4));
  const std::vector<std::string> names = made_.disk.names();
  for (int round = 0; round < repetitions(3000); ++round) {
    faulty_disk damaged = made_.disk.copy();
    const std::string& name = names[random.below(names.size())];
    std::string& bytes = damaged.bytes(name);
    const std::size_t from = random.below(bytes.size());
    const std::size_t count = 1 + random.below(std::min<std::size_t>(bytes.size() - from, 300));
    const std::size_t to = random.below(bytes.size() - count + 1);
    const std::string part = bytes.substr(from, count);
    const std::string before = bytes;
    switch (random.below(4)) {
      case 0:
        bytes.replace(from, count, std::string(count, '\0'));
        break;
      case 1:
        bytes.replace(to, count, part);
        break;
      case 2:
        bytes.insert(to, part);
        break;
      default:
        bytes.erase(from, count);
        break;
    }
    const outcome seen = made_.recover(damaged.copy());
    ASSERT_NE(seen, outcome::wrong) << "round " << round << " of seed " << seed_or(4);
    // Less is there only if the block that confirms the last group is gone, too.
    if (seen == outcome::prefix) {
      ASSERT_EQ(name, names.back());
      ASSERT_EQ(bytes.find(before.substr(before.size() - internal::block_header_bytes)),
                std::string::npos)
          << "round " << round << " of seed " << seed_or(4);
    }
  }
}

// The canary: the same flips behind the checksums' back, as if nobody computed them.
TEST(DamageCanary, WithoutChecksumsTheHarnessFindsWrongRows) {
  const sample_log made = sample({std::size_t{1} << 20});
  const std::string name = faulty_disk(made.disk).names().back();
  std::size_t wrong = 0;
  faulty_disk original = made.disk.copy();
  const std::string whole = original.bytes(name);
  const auto all = std::as_bytes(std::span(whole));
  const std::uint32_t seed = internal::parse_file_header(all, internal::file_kind::segment).crc;
  const auto first = internal::parse_block_header(all.subspan(internal::file_header_bytes),
                                                  internal::file_header_bytes, seed);
  ASSERT_TRUE(first.has_value());
  for (std::size_t i = 0; i < first->payload_bytes; ++i) {
    faulty_disk flipped = made.disk.copy();
    std::string& bytes = flipped.bytes(name);
    bytes[internal::file_header_bytes + internal::block_header_bytes + i] ^= 1;
    internal::block_header header = *first;
    header.payload_crc =
        internal::crc32c(std::as_bytes(std::span(bytes))
                             .subspan(internal::file_header_bytes + internal::block_header_bytes,
                                      static_cast<std::size_t>(first->payload_bytes)));
    internal::byte_buffer sealed;
    internal::append_block_header(sealed, header, seed);
    bytes.replace(internal::file_header_bytes, sealed.size(),
                  reinterpret_cast<const char*>(sealed.data()), sealed.size());
    wrong += made.recover(std::move(flipped)) == outcome::wrong ? 1U : 0U;
  }
  EXPECT_GT(wrong, 0u);
}

// --- Files whose checksums are right and whose contents are not what the log writes ---

using block_list = std::vector<std::pair<internal::block_header, std::string>>;

std::string record(std::uint64_t stamp, std::uint32_t entries_said, const std::string& key) {
  internal::byte_buffer bytes;
  internal::begin_record(bytes);
  internal::append_entry(bytes, 0, log_operation::upsert, key, "row");
  internal::finish_record(bytes, 0, stamp, entries_said);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string counts(std::uint64_t blocks, std::uint64_t bytes) {
  const auto encoded =
      internal::encode(internal::end_counts{.blocks = blocks, .payload_bytes = bytes});
  return {reinterpret_cast<const char*>(encoded.data()), encoded.size()};
}

std::string problem_of_segment(const block_list& blocks) {
  faulty_disk disk;
  const auto directory = disk.directory();
  {
    internal::block_file file(*directory, "redo-00000001.log",
                              {.kind = internal::file_kind::segment,
                               .salt = 1,
                               .number = 1,
                               .first_group = 1,
                               .durable_group = 0,
                               .previous_bytes = 0,
                               .first_segment = 0,
                               .fingerprint = logged_store::fingerprint,
                               .compressed = compression::none});
    for (const auto& [header, payload] : blocks)
      file.block(header, std::as_bytes(std::span(payload)));
    file.sync();
  }
  try {
    const logged_store store(*directory);
    return "read " + std::to_string(store.rows().size());
  } catch (const log_error& error) {
    return error.problem() == log_problem::damaged ? "damaged" : error.what();
  }
}

internal::block_header of(internal::block_kind kind, std::uint64_t group,
                          std::uint64_t durable = 0) {
  return {.kind = kind,
          .group = group,
          .offset = 0,
          .payload_bytes = 0,
          .durable_group = durable,
          .payload_crc = 0,
          .compressed = false};
}

TEST(LogWriter, KnowsWhichSegmentsHaveAGroup) {
  faulty_disk disk;
  const auto directory = disk.directory();
  internal::log_writer writer(*directory, logged_store(*directory).found(), 1, 1);
  const std::string row = record(make_stamp(1, 1), 1, "a");
  for (const std::uint64_t group : {3u, 5u, 7u}) {  // a segment each
    writer.begin_batch(group);
    EXPECT_FALSE(writer.end_batch());
    writer.records(std::as_bytes(std::span(row)));
    EXPECT_TRUE(writer.end_batch());
    writer.after_batch();
  }
  EXPECT_EQ(writer.last_group(), 7u);
  const std::uint64_t expected[] = {1, 1, 1, 1, 2, 2, 3, 3, 4, 4};
  for (std::uint64_t group = 0; group < std::size(expected); ++group)
    EXPECT_EQ(writer.first_segment_with(group), expected[group]) << group;
}

TEST(ImpossibleFiles, AreRefused) {
  using internal::block_kind;
  const std::string one = record(make_stamp(1, 1), 1, "a");
  const std::string two = record(make_stamp(2, 1), 1, "b");
  const auto group_1 = [&](block_list more) {
    block_list blocks{{of(block_kind::records, 1), one},
                      {of(block_kind::end, 1), counts(1, one.size())}};
    blocks.insert(blocks.end(), more.begin(), more.end());
    return problem_of_segment(blocks);
  };
  EXPECT_EQ(group_1({}), "read 1");
  EXPECT_EQ(group_1({{of(block_kind::records, 2, 1), two},
                     {of(block_kind::end, 2, 1), counts(1, two.size())}}),
            "read 2");
  EXPECT_EQ(group_1({{of(block_kind::records, 2, 1), two}}), "read 1");  // torn
  // The end counts other blocks, or bytes; or is no end.
  EXPECT_EQ(group_1({{of(block_kind::records, 2, 1), two},
                     {of(block_kind::end, 2, 1), counts(2, two.size())}}),
            "damaged");
  EXPECT_EQ(
      group_1({{of(block_kind::records, 2, 1), two}, {of(block_kind::end, 2, 1), counts(1, 7)}}),
      "damaged");
  EXPECT_EQ(group_1({{of(block_kind::records, 2, 1), two}, {of(block_kind::end, 2, 1), "short"}}),
            "damaged");
  // Batches that do not ascend, or end in one another.
  EXPECT_EQ(group_1({{of(block_kind::records, 1, 1), one},
                     {of(block_kind::end, 1, 1), counts(1, one.size())}}),
            "damaged");
  EXPECT_EQ(group_1({{of(block_kind::records, 2, 1), two},
                     {of(block_kind::end, 3, 1), counts(1, two.size())}}),
            "damaged");
  EXPECT_EQ(group_1({{of(block_kind::records, 2, 1), two}, {of(block_kind::confirmed, 2, 1), ""}}),
            "damaged");
  // A synced group that is not there.
  EXPECT_EQ(group_1({{of(block_kind::confirmed, 3, 3), ""}}), "damaged");
  // Another kind of block; entries of another batch; records that are none.
  EXPECT_EQ(group_1({{of(static_cast<block_kind>(9), 2, 1), two}}), "damaged");
  EXPECT_EQ(group_1({{of(block_kind::records, 2, 1), one},
                     {of(block_kind::end, 2, 1), counts(1, one.size())}}),
            "damaged");
  for (const std::string& bad :
       {two.substr(0, 10), two.substr(0, 20), two.substr(0, two.size() - 1), two + "x",
        record(make_stamp(2, 1), 2, "b"), record(make_stamp(2, 1), 0, "b")}) {
    EXPECT_EQ(group_1({{of(block_kind::records, 2, 1), bad},
                       {of(block_kind::end, 2, 1), counts(1, bad.size())}}),
              "damaged");
  }
}

// A checkpoint with one row, whose checksums are right.
std::string problem_of_checkpoint(std::uint64_t stamp, std::uint64_t last_group,
                                  bool says_compressed = false) {
  faulty_disk disk;
  const auto directory = disk.directory();
  const auto header = [](internal::file_kind kind) {
    return internal::file_header{.kind = kind,
                                 .salt = 1,
                                 .number = 1,
                                 .first_group = 1,
                                 .durable_group = 0,
                                 .previous_bytes = 0,
                                 .first_segment = 1,
                                 .fingerprint = logged_store::fingerprint,
                                 .compressed = compression::none};
  };
  internal::byte_buffer rows;
  internal::row_writer().append(rows, 1, "key", std::string(2000, 'x'), stamp);
  internal::block_compressor packer;
  internal::block_header block = of(internal::block_kind::rows, 1);
  block.compressed = says_compressed;
  const auto packed = packer.compress(rows.bytes());
  const auto payload = says_compressed && !packed.empty() ? packed : rows.bytes();
  {
    internal::block_file file(*directory, "checkpoint-00000001.ckpt",
                              header(internal::file_kind::checkpoint));
    const std::uint64_t bytes = file.block(block, payload);
    file.block(
        of(internal::block_kind::end, 1),
        internal::encode(internal::end_counts{
            .blocks = 1, .payload_bytes = bytes, .durable_group = 0, .last_group = last_group}));
    file.sync();
    internal::block_file segment(*directory, "redo-00000001.log",
                                 header(internal::file_kind::segment));
    segment.sync();
  }
  try {
    const logged_store store(*directory);
    return "read " + std::to_string(store.rows().size());
  } catch (const log_error& error) {
    return error.problem() == log_problem::damaged ? "damaged" : error.what();
  }
}

TEST(ImpossibleFiles, ACheckpointOfImpossibleGroupsIsRefused) {
  constexpr std::uint64_t last = std::numeric_limits<std::uint64_t>::max() >> 15U;
  EXPECT_EQ(problem_of_checkpoint(make_stamp(3, 1), 3), "read 1");
  EXPECT_EQ(problem_of_checkpoint(make_stamp(4, 0), 3), "damaged");
  EXPECT_EQ(problem_of_checkpoint(make_stamp(last, 4095), 3), "damaged");
  EXPECT_EQ(problem_of_checkpoint(make_stamp(3, 1), last), "damaged");
  EXPECT_EQ(problem_of_checkpoint(make_stamp(3, 1), ~std::uint64_t{0}), "damaged");
}

TEST(ImpossibleFiles, ACompressedBlockInAFileWithoutCompressionIsRefused) {
  EXPECT_EQ(problem_of_checkpoint(make_stamp(3, 1), 3, true), "damaged");
}

}  // namespace
}  // namespace elidex::testing
