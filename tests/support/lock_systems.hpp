#pragma once
// The lock systems that the tests run over: every variant of the latches.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "elidex/internal/locking/lock_system.hpp"
#include "papers/schrimpf/thesis_latches.hpp"

namespace elidex::testing {

using namespace internal;
using namespace papers;

// Shards that are never elided: inside of a region a search for cycles sees everything at one
// moment.
struct plain_shards : latches<posix_mutex, posix_mutex, 4> {};
// One latch, and wake-ups after the sections.
struct plain_latches : latches<posix_mutex, posix_mutex> {};

using latches_under_test =
    ::testing::Types<unmodified_latches, hle_latches, retried_latches, pthread_elision_latches,
                     elided_lock_mutex_latches, elided_transaction_latches, sharded_latches<>,
                     plain_shards, plain_latches>;

struct latches_name {
  template <class Latches>
  static std::string GetName(int number) {
    static const char* const names[] = {"unmodified",      "hle",          "retried",
                                        "pthread_elision", "lock_mutex",   "transaction",
                                        "sharded",         "plain_shards", "plain"};
    return names[number];
  }
};

constexpr record_address at(std::uint32_t heap, std::uint64_t page = 1, std::uint32_t space = 1) {
  return {.space = space, .heap = heap, .page = page};
}

}  // namespace elidex::testing
