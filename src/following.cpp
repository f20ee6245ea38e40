#include "elidex/internal/log/following.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "elidex/internal/txn/commit_protocols.hpp"
#include "elidex/internal/txn/errors.hpp"

namespace elidex::internal {

// The changes of one batch, as a transaction that has read nothing.
class following::batch final : public transaction_context, public row_target {
 public:
  explicit batch(memory& notes) : transaction_context(notes, isolation::serializable) {}

  std::span<const std::uint64_t> row_of(const record& row) override {
    const auto* const mine = own(row);
    return mine != nullptr ? mine->words : row.read(last_row_).words;
  }
  void write(table_base& table, record& row, std::span<const std::uint64_t> words) override {
    note(table, row, copy_of(words));
  }
  void erase(table_base& table, record& row) override {
    if (!row_of(row).empty()) note(table, row, {});
  }
  // collect() of another thread may have unlinked an absent record since this batch has found it,
  // and then the batch does not find its own row.
  struct missed {
    const table_base* of;
  };
  [[noreturn]] void miss(const table_base& table) override { throw missed{&table}; }

 private:
  void note(table_base& table, record& row, std::span<const std::uint64_t> words) {
    make_room();
    if (auto* const mine = own(row)) {
      overwrite(*mine, words);
    } else {
      note_write(table, row, words, row.stamp().absent());
    }
  }
};

following::following(std::unique_ptr<log_directory> directory, commit_clock& clock,
                     std::span<table_base* const> tables, std::span<const std::string> dropped,
                     const loading::table_maker& make)
    : directory_(std::move(directory)),
      clock_(clock),
      make_(make),
      into_(tables, {.dropped = dropped,
                     .make = make_ ? &make_ : nullptr,
                     .skips_unknown = true,
                     .converts = false}),
      reader_(*directory_, log_fingerprint, log_reader::writer::running,
              [this](const log_entry& entry) { into_(entry); }) {
  for (table_base* const one : tables) one->set_id(catalog_table);
  found_ = reader_.read_all();
  into_.check_is_complete();
  clock_.begin_at(found_.first_group);
  for (const table_base* const one : tables) {
    if (one->indexed() != nullptr) indexes_.push_back(one);
    if (one->id() == catalog_table && one->indexed() != nullptr && one->indexed()->has_rows())
      throw schema_mismatch(one->name() +
                            ": the directory does not have this index (expected: open() of its "
                            "writer makes the index)");
    if (one->is_unfinished())
      throw schema_mismatch(one->name() +
                            ": the writer is building this index (expected: follow the directory "
                            "when it is complete)");
  }
}

std::uint64_t following::catch_up(const std::function<void(std::size_t)>& absent) {
  if (failure_) std::rethrow_exception(failure_);
  std::uint64_t applied = 0;
  try {
    for (bool more = true; more;) {
      reader_.read_on();
      more = reader_.is_full();
      if (reader_.has_next()) check_catalog();
      while (reader_.has_next()) applied += apply_batch(absent);
    }
    return applied;
  } catch (...) {
    failure_ = std::current_exception();
    throw;
  }
}

// Returns the number of changed rows, or 0 if the batch must be tried again.
std::uint64_t following::apply_batch(const std::function<void(std::size_t)>& absent) {
  // Chosen: collect() cannot come between so often.
  constexpr int attempts_max = 1000;
  batch changes(notes_);
  into_.continue_in(changes);
  try {
    const bool done = reader_.apply_next([&] {
      check_indexes(changes);
      // A conflict: collect() of another thread has unlinked an absent record that the batch found.
      const bool committed =
          changes.writes().empty() || silo_commit()(changes, clock_) == commit_result::committed;
      absent(changes.note_for_collection(committed));
      return committed;
    });
    attempts_ = 0;
    return done ? changes.writes().size() : 0;
  } catch (const batch::missed& row) {
    absent(changes.note_for_collection(false));
    if (++attempts_ == attempts_max)
      throw log_error(
          log_problem::damaged,
          "elidex: the log is damaged: a change of a row that does not exist in table " +
              row.of->name());
    return 0;
  }
}

// The writer's changes of a row must come with the changes of all indexes that this program has.
void following::check_indexes(batch& changes) const {
  for (const table_base* const index : indexes_) {
    if (index->id() != catalog_table && !index->is_unfinished()) continue;
    for (const auto& write : changes.writes()) {
      if (write.of == index->indexed())
        throw schema_mismatch(index->name() +
                              ": the writer does not have this index, or is building it (expected: "
                              "follow the directory when it is complete)");
    }
  }
}

void following::check_catalog() {
  std::vector<std::uint32_t> numbers;
  std::uint64_t first_group = 0;
  const bool is_newer = reader_.visit_newer_checkpoint(
      [&](const log_entry& row) {
        if (row.table != catalog_table) return false;
        numbers.push_back(into_.check_unchanged(row, true));
        into_.skip_if_unknown(row);
        return true;
      },
      first_group);
  if (!is_newer) return;
  std::sort(numbers.begin(), numbers.end());
  into_.check_all_in(numbers, first_group);
}

}  // namespace elidex::internal
