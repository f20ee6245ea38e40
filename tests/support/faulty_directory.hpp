#pragma once
// A disk in memory for log_files.hpp that does what real ones may do: short writes, interruptions,
// a full disk, errors at a sync, and a power failure after which of the unsynced blocks any may be
// there and any may have what the disk had there before.
//
//   faulty_disk disk;
//   // the 17th operation and all later ones fail, and change nothing
//   disk.faults().power_off_at = 17;
//   ... use *disk.directory() ...
//   faulty_disk after = disk.after_power_failure(random);

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "elidex/internal/log/log_files.hpp"
#include "support/random_seed.hpp"

namespace elidex::testing {

using namespace internal;

using internal::log_directory;
using internal::log_file;

inline constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

struct disk_faults {
  std::uint64_t power_off_at = never;  // counts operations that change something
  std::uint64_t disk_bytes = never;    // full then, whatever is removed
  std::uint64_t room_bytes = never;    // for the files that are there
  std::uint64_t fail_sync_at = never;  // counts syncs of files: this one and all later ones
  std::uint64_t fail_one_sync = never;
  std::uint64_t fail_one_call = never;  // counts all calls, those that read too
  std::errc fail_one_with = std::errc::io_error;
  std::size_t write_bytes_max = never;
  bool interrupts = false;  // every other call
  bool sync_lies = false;   // success without effect: the canary
};

class faulty_disk {
  struct inode {
    std::string bytes;
    std::size_t synced = 0;  // so many of them are safe
  };
  using listing = std::map<std::string, std::shared_ptr<inode>>;
  // Of a directory: `from` goes, `to` comes; either may be empty.
  struct change {
    std::string from;
    std::string to;
    std::shared_ptr<inode> file;

    void apply(listing& names) const {
      if (!from.empty()) names.erase(from);
      if (!to.empty()) names[to] = file;
    }
  };

  struct state {
    std::mutex mutex;
    disk_faults faults;
    listing names;
    listing safe_names;           // at the last sync of the directory
    std::vector<change> journal;  // since then
    std::uint64_t operations = 0;
    std::uint64_t syncs = 0;
    std::uint64_t used = 0;
    std::uint64_t calls = 0;
    std::uint64_t all_calls = 0;

    // Whether the call is the one that is to fail. Otherwise clears `error`.
    bool fails_once(std::error_code& error) {
      error.clear();
      if (all_calls++ != faults.fail_one_call) return false;
      error = std::make_error_code(faults.fail_one_with);
      return true;
    }
    std::uint64_t occupied() const {
      std::uint64_t bytes = 0;
      for (const auto& [name, of] : names) bytes += of->bytes.size();
      return bytes;
    }
    // Whether the operation is to fail.
    bool fails(std::error_code& error) {
      error.clear();
      if (faults.interrupts && calls++ % 2 == 0) {
        error = std::make_error_code(std::errc::interrupted);
        return true;
      }
      if (operations++ >= faults.power_off_at) {
        error = std::make_error_code(std::errc::io_error);
        return true;
      }
      return false;
    }
  };

  class file final : public log_file {
   public:
    file(std::shared_ptr<state> disk, std::shared_ptr<inode> of)
        : disk_(std::move(disk)), inode_(std::move(of)) {}

    std::size_t write_some(std::span<const std::byte> bytes, std::error_code& error) override {
      const std::lock_guard guard(disk_->mutex);
      if (disk_->fails_once(error) || disk_->fails(error)) return 0;
      std::size_t count = std::min(bytes.size(), disk_->faults.write_bytes_max);
      const std::uint64_t room = std::min(
          disk_->faults.disk_bytes - std::min(disk_->used, disk_->faults.disk_bytes),
          disk_->faults.room_bytes - std::min(disk_->occupied(), disk_->faults.room_bytes));
      count = static_cast<std::size_t>(std::min<std::uint64_t>(count, room));
      if (count == 0 && !bytes.empty()) error = std::make_error_code(std::errc::no_space_on_device);
      inode_->bytes.append(reinterpret_cast<const char*>(bytes.data()), count);
      disk_->used += count;
      return count;
    }
    std::size_t read_some(std::uint64_t offset, std::span<std::byte> bytes,
                          std::error_code& error) override {
      const std::lock_guard guard(disk_->mutex);
      if (disk_->fails_once(error)) return 0;
      if (disk_->faults.interrupts && disk_->calls++ % 2 == 0) {
        error = std::make_error_code(std::errc::interrupted);
        return 0;
      }
      if (offset >= inode_->bytes.size()) return 0;
      const std::size_t most = std::min(bytes.size(), disk_->faults.write_bytes_max);
      return inode_->bytes.copy(reinterpret_cast<char*>(bytes.data()), most,
                                static_cast<std::size_t>(offset));
    }
    std::uint64_t size(std::error_code& error) override {
      const std::lock_guard guard(disk_->mutex);
      return disk_->fails_once(error) ? 0 : inode_->bytes.size();
    }
    void sync(std::error_code& error) override {
      const std::lock_guard guard(disk_->mutex);
      const std::uint64_t number = disk_->syncs++;
      if (disk_->fails_once(error)) return;
      if (disk_->operations++ >= disk_->faults.power_off_at ||
          number >= disk_->faults.fail_sync_at || number == disk_->faults.fail_one_sync) {
        error = std::make_error_code(std::errc::io_error);
      } else if (!disk_->faults.sync_lies) {
        inode_->synced = inode_->bytes.size();
      }
    }

   private:
    std::shared_ptr<state> disk_;
    std::shared_ptr<inode> inode_;
  };

  class directory_of final : public log_directory {
   public:
    explicit directory_of(std::shared_ptr<state> disk, bool shared = true)
        : disk_(std::move(disk)), shared_(shared) {}

    std::vector<std::string> names(std::error_code& error) override {
      const std::lock_guard guard(disk_->mutex);
      if (disk_->fails_once(error)) return {};
      std::vector<std::string> found{".", ".."};
      if (shared_) found.emplace_back("somebody else's");
      for (const auto& [name, content] : disk_->names) found.push_back(name);
      return found;
    }
    std::unique_ptr<log_file> create(const std::string& name, std::error_code& error) override {
      const std::lock_guard guard(disk_->mutex);
      if (!may_change(error)) return nullptr;
      if (disk_->names.contains(name)) {
        error = std::make_error_code(std::errc::file_exists);
        return nullptr;
      }
      const auto made = std::make_shared<inode>();
      apply({"", name, made});
      return std::make_unique<file>(disk_, made);
    }
    std::unique_ptr<log_file> open(const std::string& name, std::error_code& error) override {
      const std::lock_guard guard(disk_->mutex);
      if (disk_->fails_once(error)) return nullptr;
      const auto found = disk_->names.find(name);
      if (found == disk_->names.end()) {
        error = std::make_error_code(std::errc::no_such_file_or_directory);
        return nullptr;
      }
      return std::make_unique<file>(disk_, found->second);
    }
    void rename(const std::string& from, const std::string& to, std::error_code& error) override {
      const std::lock_guard guard(disk_->mutex);
      if (may_change(error)) apply({from, to, disk_->names.at(from)});
    }
    void remove(const std::string& name, std::error_code& error) override {
      const std::lock_guard guard(disk_->mutex);
      if (!may_change(error)) return;
      if (!disk_->names.contains(name)) {
        error = std::make_error_code(std::errc::no_such_file_or_directory);
        return;
      }
      apply({name, "", nullptr});
    }
    void sync(std::error_code& error) override {
      const std::lock_guard guard(disk_->mutex);
      if (disk_->fails_once(error)) return;
      if (disk_->operations++ >= disk_->faults.power_off_at) {
        error = std::make_error_code(std::errc::io_error);
      } else if (!disk_->faults.sync_lies) {
        disk_->safe_names = disk_->names;
        disk_->journal.clear();
      }
    }

   private:
    bool may_change(std::error_code& error) {
      if (disk_->fails_once(error)) return false;
      if (disk_->operations++ < disk_->faults.power_off_at) return true;
      error = std::make_error_code(std::errc::io_error);
      return false;
    }
    void apply(change one) {
      one.apply(disk_->names);
      disk_->journal.push_back(std::move(one));
    }

    std::shared_ptr<state> disk_;
    bool shared_;
  };

 public:
  faulty_disk() : state_(std::make_shared<state>()) {}

  // While nobody uses the disk.
  disk_faults& faults() { return state_->faults; }
  // At any time.
  template <class Fn>
  void change_faults(Fn&& fn) {
    const std::lock_guard guard(state_->mutex);
    fn(state_->faults);
  }
  std::unique_ptr<log_directory> directory() { return std::make_unique<directory_of>(state_); }
  // The same without somebody else's file.
  std::unique_ptr<log_directory> private_directory() {
    return std::make_unique<directory_of>(state_, false);
  }
  // How often anybody has called the disk.
  std::uint64_t calls() const {
    const std::lock_guard guard(state_->mutex);
    return state_->all_calls;
  }
  std::uint64_t operations() const {
    const std::lock_guard guard(state_->mutex);
    return state_->operations;
  }
  std::uint64_t used() const {
    const std::lock_guard guard(state_->mutex);
    return state_->used;
  }
  std::uint64_t occupied() const {
    const std::lock_guard guard(state_->mutex);
    return state_->occupied();
  }
  // Bytes that a power failure may take.
  std::uint64_t unsynced() const {
    const std::lock_guard guard(state_->mutex);
    std::uint64_t sum = 0;
    for (const auto& [name, of] : state_->names) sum += of->bytes.size() - of->synced;
    return sum;
  }

  // The files' contents, to look at and to damage; nobody uses the disk meanwhile.
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& [name, content] : state_->names) found.push_back(name);
    return found;
  }
  std::string& bytes(const std::string& name) { return state_->names.at(name)->bytes; }
  void upsert(const std::string& name, std::string bytes) {
    const auto made = std::make_shared<inode>();
    made->bytes = std::move(bytes);
    made->synced = made->bytes.size();
    state_->names[name] = made;
    state_->safe_names[name] = made;
  }
  void remove(const std::string& name) {
    state_->names.erase(name);
    state_->safe_names.erase(name);
  }

  // The same files without faults: what a killed process leaves. What it had not synced is in the
  // system's cache, and not safe yet.
  faulty_disk copy() const {
    const std::lock_guard guard(state_->mutex);
    faulty_disk other;
    std::map<std::shared_ptr<inode>, std::shared_ptr<inode>> copies{{nullptr, nullptr}};
    const auto copy_of = [&copies](const std::shared_ptr<inode>& one) {
      std::shared_ptr<inode>& made = copies[one];
      if (made == nullptr && one != nullptr) made = std::make_shared<inode>(*one);
      return made;
    };
    for (const auto& [name, content] : state_->names) other.state_->names[name] = copy_of(content);
    for (const auto& [name, content] : state_->safe_names)
      other.state_->safe_names[name] = copy_of(content);
    for (const change& each : state_->journal)
      other.state_->journal.push_back({each.from, each.to, copy_of(each.file)});
    return other;
  }

  // What a power failure may leave. Of the directory's changes since its last sync any, in their
  // order; of each file what is synced, and of what lies behind it some blocks, up to a random
  // length. A block that is lost is zero, or has what the disk had there before: a block of another
  // file, or anything.
  faulty_disk after_power_failure(random_numbers& random) const {
    const std::lock_guard guard(state_->mutex);
    listing names = state_->safe_names;
    const bool a_prefix = random.below(2) == 0;
    for (const change& each : state_->journal) {
      if (random.below(3) != 0) {
        each.apply(names);
      } else if (a_prefix) {
        break;
      }
    }
    faulty_disk other;
    std::vector<const std::string*> before;
    for (const auto& [name, content] : state_->safe_names) before.push_back(&content->bytes);
    for (const auto& [name, content] : names) other.upsert(name, torn(*content, before, random));
    return other;
  }

 private:
  static std::string torn(const inode& of, const std::vector<const std::string*>& before,
                          random_numbers& random) {
    const std::size_t block = random.below(2) == 0 ? 512 : 4096;
    const std::size_t unsynced = of.bytes.size() - of.synced;
    const std::uint64_t way = random.below(4);
    if (way == 0 || unsynced == 0) return of.bytes;
    std::string bytes = of.bytes.substr(0, of.synced + random.below(unsynced + 1));
    if (way == 1) return bytes;  // a prefix
    for (std::size_t at = of.synced; at < bytes.size();) {
      const std::size_t end = std::min(bytes.size(), (at / block + 1) * block);
      if (random.below(2) == 0) lose(bytes, at, end, before, random);
      at = end;
    }
    return bytes;
  }
  static void lose(std::string& bytes, std::size_t begin, std::size_t end,
                   const std::vector<const std::string*>& before, random_numbers& random) {
    const std::string& other =
        before.empty() ? bytes : *before[static_cast<std::size_t>(random.below(before.size()))];
    const std::uint64_t what = random.below(3);
    for (std::size_t i = begin; i < end; ++i) {
      char byte = '\0';
      if (what == 1 && i < other.size()) byte = other[i];
      if (what == 2) byte = static_cast<char>(random.below(256));
      bytes[i] = byte;
    }
  }

  std::shared_ptr<state> state_;
};

}  // namespace elidex::testing
