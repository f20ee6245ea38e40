// The words of a bucket of hash_map's table: fingerprints, levels.
#include "elidex/internal/hash/hash_bucket.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "support/random_seed.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

std::uint64_t hash_with(std::uint64_t print) {
  return print << 56U | 0x12'3456'789A'BCDEu;
}

// Looks for each fingerprint among those of a block. All equal ones are found, and no free slot is.
void expect_candidates(const block_tags& tags, const std::vector<std::uint8_t>& prints) {
  ASSERT_EQ(tags.count(), prints.size());
  for (std::uint64_t print = 0; print < 256; ++print) {
    const std::uint64_t hash = hash_with(print);
    std::vector<bool> found(prints.size());
    for (block_tags::slot_set left = tags.candidates(hash); left != 0; left &= left - 1) {
      const unsigned slot = block_tags::first_slot(left);
      ASSERT_LT(slot, prints.size()) << "a free slot";
      found[slot] = true;
    }
    for (std::size_t slot = 0; slot < prints.size(); ++slot) {
      if (prints[slot] == block_tags::print_of(hash)) {
        ASSERT_TRUE(found[slot]);
      }
    }
  }
}

TEST(HashBucket, FingerprintsFollowTheRecords) {
  random_numbers random(seed_or(1));
  block_tags tags;
  std::vector<std::uint8_t> prints;
  for (int i = 0; i < 20'000; ++i) {
    // Few values, so that many are equal or differ by one.
    const std::uint8_t print = block_tags::print_of(hash_with(random.below(5)));
    const unsigned slot = prints.empty() ? 0 : static_cast<unsigned>(random.below(prints.size()));
    switch (random.below(4)) {
      case 0:
        if (prints.empty()) break;
        prints.pop_back();
        tags = tags.without_last();
        break;
      case 1:
        if (prints.empty()) break;
        prints[slot] = print;
        tags = tags.with_at(slot, print);
        break;
      case 2:
        tags = tags.has_next() ? tags.without_next() : tags.with_next();
        break;
      default:
        if (prints.size() == block_tags::slots_max) break;
        prints.push_back(print);
        tags = tags.with(print);
    }
    if (i % 64 == 0) expect_candidates(tags, prints);
  }
}

TEST(HashBucket, ALevelAndItsMaskShareAWord) {
  for (unsigned level = 0; level <= packed_level::level_max; ++level) {
    const packed_level packed = packed_level::of(level);
    EXPECT_EQ(packed.level(), level);
    EXPECT_EQ(packed.mask(), (std::uint64_t{1} << level) - 1);
    bucket_lock lock;
    EXPECT_FALSE(lock.look().is_unlocked_at(packed)) << "unborn";
    lock.be_born(level, {});
    EXPECT_TRUE(lock.look().is_unlocked_at(packed));
    EXPECT_EQ(lock.look().level(), level);
    EXPECT_FALSE(lock.look().is_unlocked_at(packed_level::of(level + 1)));
    ASSERT_TRUE(lock.try_lock(lock.look()));
    EXPECT_FALSE(lock.look().is_unlocked_at(packed)) << "locked";
  }
}

}  // namespace
}  // namespace elidex::testing
