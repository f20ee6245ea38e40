#include "elidex/internal/log/storage.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "elidex/internal/log/backup.hpp"
#include "elidex/internal/log/log_input.hpp"
#include "elidex/internal/log/log_writer.hpp"
#include "elidex/internal/log/space_reserve.hpp"
#include "elidex/internal/txn/errors.hpp"

namespace elidex::internal {
namespace {

// Calls fn() again while another checkpoint is being written.
template <class Fn>
void when_no_checkpoint_runs(Fn&& fn) {
  for (;;) {
    try {
      fn();
      return;
    } catch (const std::system_error& error) {
      if (error.code() != std::errc::operation_in_progress) throw;
    }
#if !defined(ELIDEX_SIMULATED)  // which has no files
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
#endif
  }
}

// On a full disk the log would fill the reserve while a checkpoint writes rows.
class log_that_is_held {
 public:
  log_that_is_held(redo_log& log, bool is_full) : log_(is_full ? &log : nullptr) {
    if (log_ != nullptr) log_->set_pace(redo_log::pace::held);
  }
  ~log_that_is_held() {
    if (log_ != nullptr) log_->set_pace(redo_log::pace::slow);
  }
  log_that_is_held(const log_that_is_held&) = delete;
  log_that_is_held& operator=(const log_that_is_held&) = delete;

 private:
  redo_log* const log_;
};

}  // namespace

storage::storage(std::unique_ptr<log_directory> directory, const storage_options& options,
                 commit_clock& clock, std::span<table_base* const> tables,
                 std::span<const std::string> dropped, const table_maker& make)
    : limits_{.bytes = options.checkpoint_bytes, .time = options.checkpoint_time},
      directory_(std::move(directory)),
      clock_(clock) {
  if (options.level != durability::none && options.reserve_bytes != 0) {
    auto reserved =
        std::make_unique<space_reserve>(std::move(directory_), options.reserve_bytes, [this] {
          is_full_.store(true);
          if (automatic_ready_.load()) leave_full_disk();
        });
    reserve_ = reserved.get();
    directory_ = std::move(reserved);
  }
  std::vector<table_base*> all(tables.begin(), tables.end());
  const table_maker make_and_keep = [&](const table_description& said) {
    return all.emplace_back(make(said));
  };
  const bool changed = load(tables, dropped, make ? &make_and_keep : nullptr);
  clock_.begin_at(found_.first_group);
  if (options.level != durability::none) {
    log_.emplace(clock_, *directory_, found_,
                 redo_log_options{.level = options.level,
                                  .fingerprint = log_fingerprint,
                                  .group_time = options.group_time,
                                  .segment_bytes = options.segment_bytes,
                                  .compressed = options.compress,
                                  .keep_history = options.keep_history});
    catalog_.emplace(*log_);
    if (reserve_ == nullptr) space_reserve::remove_from(*directory_);
  } else {
    directory_.reset();
  }
  // Without a checkpoint the log declares new tables. With one, its catalog does: a new index that
  // the log declared would stay empty after a crash before the checkpoint has its name.
  for (table_base* const one : tables) {
    if (one->id() != catalog_table) continue;
    if (changed) {
      assign_number(*one);
      one->set_declared_in(clock_.now());
    } else {
      declare(*one);
    }
  }
  if (changed && log_) checkpoint([&] { return all; });
  // A full disk waits for the checkpoint that leaves it.
  if (reserve_ != nullptr && !is_full_.load()) reserve_->refill();
}

// The log's last writes may still ask for a checkpoint.
storage::~storage() {
  if (automatic_) automatic_->stop();
  catalog_.reset();
  log_.reset();
}

bool storage::load(std::span<table_base* const> tables, std::span<const std::string> dropped,
                   const table_maker* make) {
  for (table_base* const one : tables) one->set_id(catalog_table);
  loading into(tables, {.dropped = dropped, .make = make});
  found_ = recover_log(*directory_, log_fingerprint, std::ref(into));
  into.check_is_complete();
  bool changed = into.has_other_catalog();
  into.convert_rows();
  tables_ = into.numbers() - 1;
  for (table_base* const one : into.tables()) {
    const bool is_unfinished = one->is_unfinished();
    if (is_unfinished) loading::clear(*one);
    const bool is_filled = one->indexed() != nullptr && one->indexed()->has_rows() &&
                           (is_unfinished || one->id() == catalog_table);
    if (is_filled) one->fill();
    if (is_unfinished && std::find(tables.begin(), tables.end(), one) == tables.end())
      one->abandon();
    one->set_unfinished(false);
    changed = changed || is_unfinished || is_filled;
  }
  return changed;
}

void storage::assign_number(table_base& made) {
  if (tables_ == loading::numbers_max)
    throw std::length_error("elidex: a directory takes at most 2^20 tables");
  made.set_id(++tables_);
}

void storage::declare(table_base& made) {
  assign_number(made);
  made.set_declared_in(note_state(made));
}

std::uint64_t storage::note_state(const table_base& changed) {
  if (!catalog_) return clock_.now();
  redo_log::commit entry(*catalog_);
  entry.upsert(catalog_table, changed.catalog_name(), describe_for_catalog(changed));
  const commit_clock::commit_phase phase(clock_);
  const std::uint64_t group = clock_.now();
  entry.keep(commit_stamp(group, 0));
  return group;
}

void storage::change_places(std::span<table_base* const> former, std::span<table_base* const> next,
                            const table_list& tables) {
  const auto set_apart = [&](bool the_former) {
    for (table_base* const one : former) one->set_apart(the_former);
    for (table_base* const one : next) one->set_apart(!the_former);
  };
  if (!log_) return set_apart(true);
  // Recovery from the next checkpoint on must not see the entry that declared the table.
  log_for("change_table()").wait_durable(clock_.now());
  const auto newest = [&] {
    const std::vector<std::uint64_t> all = numbers_in(*directory_, file_kind::checkpoint);
    return all.empty() ? 0 : all.back();
  };
  std::uint64_t before = 0;
  when_no_checkpoint_runs([&] {
    const checkpoint_pause no_checkpoint(*log_);
    before = newest();
    set_apart(true);
  });
  try {
    when_no_checkpoint_runs([&] { checkpoint(tables); });
  } catch (...) {
    when_no_checkpoint_runs([&] {
      const checkpoint_pause no_checkpoint(*log_);
      if (newest() != before) return;  // a checkpoint has got its name since then, and has `next`
      set_apart(false);
    });
    throw;
  }
}

finished_checkpoint storage::checkpoint(const table_list& tables) {
  redo_log& log = log_for("checkpoint()");
  const std::shared_lock open(closing_);
  const std::uint64_t written_before = log.written_bytes();
  std::unique_lock<std::mutex> turn = turn_of_caller();
  checkpoint_writer to(log);
  turn = {};
  const finished_checkpoint finished = write(to, tables);
  if (automatic_) automatic_->note(finished, written_before);
  return finished;
}

redo_log& storage::log_for(const char* function) {
  if (log_) {
    log_->check_process();
    return *log_;
  }
  throw std::system_error(
      std::make_error_code(std::errc::operation_not_supported),
      std::string("elidex::database::") + function + ": level is none (expected async or sync)");
}

// A caller waits for the database's own checkpoint, but not for another caller's.
std::unique_lock<std::mutex> storage::turn_of_caller() {
  return automatic_ ? automatic_->wait_for_one() : std::unique_lock<std::mutex>();
}

void storage::write_all(checkpoint_writer& to, const table_list& tables) {
  std::vector<table_base*> all = tables();
  std::erase_if(all, [](const table_base* one) { return one->is_abandoned(); });
  for (const table_base* const one : all)
    to.add_row(catalog_table, one->catalog_name(), describe_for_catalog(*one),
               commit_stamp(one->declared_in(), 0).word());
  for (table_base* const one : all) {
    if (!one->is_apart()) one->write_rows(to);
  }
}

finished_checkpoint storage::backup(const std::string& directory, const table_list& tables) {
  log_for("backup()");  // before the directory is made
  return backup(open_log_directory(directory), tables);
}

finished_checkpoint storage::backup(std::unique_ptr<log_directory> to, const table_list& tables) {
  redo_log& log = log_for("backup()");
  const std::shared_lock open(closing_);
  check_is_empty(*to, "elidex::database::backup()");
  try {
    std::unique_lock<std::mutex> turn = turn_of_caller();
    checkpoint_writer copy(log, to.get());
    turn = {};
    write_all(copy, tables);
    return copy.finish();
  } catch (...) {
    remove_copy(*to);
    throw;
  }
}

std::uint64_t storage::update_backup(const std::string& directory) {
  log_for("update_backup()");  // before the directory is locked
  return update_backup(open_log_directory(directory, directory_use::extend));
}

std::uint64_t storage::update_backup(std::unique_ptr<log_directory> of) {
  redo_log& log = log_for("update_backup()");
  const std::shared_lock open(closing_);
  std::unique_lock<std::mutex> turn = turn_of_caller();
  const checkpoint_pause no_file_goes(log);
  turn = {};
  log.wait_durable(clock_.now());
  return update_copy(*directory_, log.durable_group(), log_fingerprint, *of);
}

automatic_checkpoints::found_files storage::sizes_of_files() {
  const auto size_of = [&](const std::string& name) -> std::uint64_t {
    std::error_code error;
    const std::unique_ptr<log_file> file = directory_->open(name, error);
    const std::uint64_t size = error ? 0 : file->size(error);
    return error ? 0 : size;
  };
  automatic_checkpoints::found_files found;
  for (const recovered_log::segment& one : found_.segments)
    found.segment_bytes += size_of(name_of(file_kind::segment, one.number));
  if (found_.checkpoint != 0)
    found.checkpoint_bytes = size_of(name_of(file_kind::checkpoint, found_.checkpoint));
  return found;
}

void storage::write_checkpoints_by_itself(table_list tables) {
  const bool has_limits = limits_.bytes != 0 || limits_.time.count() > 0;
  if (!log_ || (!has_limits && reserve_ == nullptr)) return;
  automatic_.emplace(*log_, limits_, sizes_of_files(), [this, tables = std::move(tables)] {
    checkpoint_writer to(*log_);
    return write(to, tables);
  });
  automatic_ready_.store(true);
  if (is_full_.load()) leave_full_disk();
}

void storage::leave_full_disk() noexcept {
  log_->set_pace(redo_log::pace::slow);
  automatic_->ask();
}

finished_checkpoint storage::write(checkpoint_writer& to, const table_list& tables) {
  {
    const log_that_is_held held(*log_, is_full_.load());
    write_all(to, tables);
  }
  const finished_checkpoint finished = to.finish();
  if (reserve_ == nullptr) return finished;
  is_full_.store(false);
  reserve_->refill();  // at the slow pace, if that is the pace: the log would take the space
  log_->set_pace(redo_log::pace::normal);
  if (is_full_.load()) log_->set_pace(redo_log::pace::slow);  // it was used in between
  return finished;
}

automatic_checkpoints_report storage::automatic() const {
  return automatic_ ? automatic_->report() : automatic_checkpoints_report{};
}

void storage::close() {
  if (!log_) return;
  log_->check_process();
  const std::unique_lock closed(closing_);
  if (automatic_) automatic_->stop();
  log_->close();
}

}  // namespace elidex::internal
