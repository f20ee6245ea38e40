// A machine for tests of code above htm.hpp: begin() answers what the test wrote down, and every
// step is recorded.
//
//   scripted_htm::reset({conflict, started});
//   elidex::elided<elidex::ttas_lock, elidex::no_retry, scripted_htm> lock;
//
// It cannot roll back. What the hardware would do by going back to the outermost begin() shows up
// as follows: an abort() at the very place of the outermost begin() yields its status, which is how
// elided goes on; one deeper down throws rolled_back, and the test goes on where it catches that.
//
// Belongs to one thread, and to one test at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <utility>
#include <vector>

#include "elidex/htm.hpp"

namespace elidex::test {

using namespace internal;

struct rolled_back {
  htm::status entry;  // what the outermost begin() would yield now
};

struct scripted_state {
  std::deque<htm::status> script;
  htm::status after_script{htm::status::started_word};
  std::function<void(std::size_t)> hook;
  std::function<void()> commit_hook;
  std::vector<std::uint8_t> abort_codes;
  std::size_t begins = 0;
  std::size_t commits = 0;
  std::size_t faults = 0;
  int depth = 0;
  bool enabled = true;
};

class scripted_htm {
 public:
  static constexpr htm::status started{htm::status::started_word};
  static constexpr htm::status conflict{htm::status::conflict_bit | htm::status::retry_bit};
  static constexpr htm::status capacity{htm::status::capacity_bit};
  static constexpr htm::status interrupt{};
  static constexpr htm::status debug{htm::status::debug_bit};
  static constexpr htm::status nested_conflict{htm::status::conflict_bit | htm::status::nested_bit};
  static constexpr htm::status lock_busy = htm::status::of_abort(htm::code_lock_busy);
  static constexpr htm::status user_abort = htm::status::of_abort(7);

  // The answers of the next outermost begin() calls; when they are used up, regions start.
  static void reset(std::initializer_list<htm::status> answers = {}) {
    state_ = {};
    state_.script.assign(answers);
  }
  static void always(htm::status answer) { state_.after_script = answer; }
  static void switch_off() { state_.enabled = false; }
  // Called in each outermost begin() before it answers, with the number of earlier ones: the place
  // to let another thread's deed happen between elided's look at the lock and its region.
  static void on_begin(std::function<void(std::size_t)> hook) { state_.hook = std::move(hook); }

  // Called after each outermost commit(): the place for what another thread does before this one
  // goes on.
  static void on_commit(std::function<void()> hook) { state_.commit_hook = std::move(hook); }

  static std::size_t begins() { return state_.begins; }
  static std::size_t commits() { return state_.commits; }
  static int depth() { return state_.depth; }
  // commit() outside a region or begin() on a machine without HTM: a fault on real hardware.
  static std::size_t faults() { return state_.faults; }
  static const std::vector<std::uint8_t>& abort_codes() { return state_.abort_codes; }
  // Explicit aborts of all threads since the process began. Any thread may ask.
  static std::size_t aborts_in_process() { return aborts_in_process_.load(); }

  // The machine that `elided` sees.
  static bool enabled() noexcept { return state_.enabled; }
  static bool test() noexcept { return state_.depth > 0; }
  static htm::status begin() {
    if (!state_.enabled) ++state_.faults;
    if (state_.depth == 0) {
      const std::size_t number = state_.begins++;
      if (state_.hook) state_.hook(number);
      htm::status answer = state_.after_script;
      if (!state_.script.empty()) {
        answer = state_.script.front();
        state_.script.pop_front();
      }
      if (!answer.started()) return answer;
    }
    ++state_.depth;
    return started;
  }
  static void commit() {
    if (state_.depth == 0) {
      ++state_.faults;
      return;
    }
    if (--state_.depth != 0) return;
    ++state_.commits;
    if (state_.commit_hook) state_.commit_hook();
  }
  template <std::uint8_t Code>
  static htm::status abort() {
    const htm::status entry = htm::status::of_abort(Code);
    if (state_.depth == 0) return entry;
    state_.abort_codes.push_back(Code);
    ++aborts_in_process_;
    const bool at_outermost_begin = state_.depth == 1 && Code == htm::code_lock_busy;
    state_.depth = 0;
    if (at_outermost_begin) return entry;
    throw rolled_back{entry};
  }

 private:
  inline static scripted_state state_;
  inline static std::atomic<std::size_t> aborts_in_process_{0};
};

}  // namespace elidex::test
