// The peer LMDB: a B+tree in a memory-mapped file, copied on write. Each session keeps one read
// transaction and renews it, which is the cheapest way to read.

#include "bench/stores/store.hpp"

#if !defined(ELIDEX_NO_LMDB)
#  include <lmdb.h>

#  include <algorithm>
#  include <memory>
#  include <stdexcept>

#  include "bench/stores/rows.hpp"
#endif

namespace elidex::bench::stores {
namespace {

constexpr level_info levels[] = {
    {durability::async, "MDB_NOSYNC",
     "SIGKILL; a power failure may lose any commits, and on some file systems damages the file"},
    {durability::sync, "default flags", "SIGKILL and a power failure"},
};

#if !defined(ELIDEX_NO_LMDB)
void check(int result) {
  if (result != MDB_SUCCESS) throw std::runtime_error(std::string("lmdb: ") + mdb_strerror(result));
}

struct closing {
  void operator()(MDB_env* env) const noexcept { mdb_env_close(env); }
  void operator()(MDB_txn* txn) const noexcept { mdb_txn_abort(txn); }
  void operator()(MDB_cursor* cursor) const noexcept { mdb_cursor_close(cursor); }
};
using transaction = std::unique_ptr<MDB_txn, closing>;
using cursor = std::unique_ptr<MDB_cursor, closing>;

transaction begin(MDB_env* env, unsigned flags) {
  MDB_txn* made = nullptr;
  check(mdb_txn_begin(env, nullptr, flags, &made));
  return transaction(made);
}

MDB_val value_of(const std::uint64_t& key) {
  return {sizeof key, const_cast<std::uint64_t*>(&key)};
}
MDB_val value_of(row_view row) {
  return {row.size(), const_cast<std::byte*>(row.data())};
}
row_view view_of(const MDB_val& value) {
  return {static_cast<const std::byte*>(value.mv_data), value.mv_size};
}

// The file may grow to this size. It takes only as much of the disk as it uses.
std::size_t map_bytes(const store_setup& setup) {
  constexpr std::size_t least = std::size_t{64} << 30;
  constexpr std::size_t page_and_entry = 64;
  constexpr std::size_t room = 16;  // times the data: half-filled pages, copies, and rows that come
  return std::max(least, setup.rows * (setup.value_bytes + page_and_entry) * room);
}

constexpr unsigned sessions_max = 1'024;
constexpr int file_mode = 0644;

class lmdb_store final : public store {
 public:
  explicit lmdb_store(const store_setup& setup) : value_bytes_(setup.value_bytes) {
    MDB_env* made = nullptr;
    check(mdb_env_create(&made));
    env_.reset(made);
    check(mdb_env_set_mapsize(env_.get(), map_bytes(setup)));
    check(mdb_env_set_maxreaders(env_.get(), sessions_max));
    const unsigned lazily = setup.level == durability::sync ? 0 : MDB_NOSYNC;
    check(mdb_env_open(env_.get(), setup.directory.c_str(), MDB_NOTLS | lazily, file_mode));
    transaction t = begin(env_.get(), 0);
    check(mdb_dbi_open(t.get(), nullptr, MDB_INTEGERKEY | MDB_CREATE, &rows_));
    check(mdb_txn_commit(t.release()));
  }

  std::unique_ptr<session> connect() override { return std::make_unique<client>(*this); }
  void settle() override { check(mdb_env_sync(env_.get(), 1)); }

 private:
  class client final : public session {
   public:
    explicit client(lmdb_store& of)
        : env_(of.env_.get()),
          rows_(of.rows_),
          writer_(of.value_bytes_),
          read_(begin(env_, MDB_RDONLY)) {
      MDB_cursor* made = nullptr;
      check(mdb_cursor_open(read_.get(), rows_, &made));
      cursor_.reset(made);
      mdb_txn_reset(read_.get());
    }

    bool get(std::uint64_t key, const row_visitor& visit) override {
      const reading now(*this);
      MDB_val name = value_of(key);
      MDB_val row{};
      const int result = mdb_get(read_.get(), rows_, &name, &row);
      if (result == MDB_NOTFOUND) return false;
      check(result);
      visit(key, view_of(row));
      return true;
    }
    std::size_t scan(std::uint64_t from, std::size_t limit, const row_visitor& visit) override {
      const reading now(*this);
      check(mdb_cursor_renew(read_.get(), cursor_.get()));
      MDB_val name = value_of(from);
      MDB_val row{};
      std::size_t seen = 0;
      int result = mdb_cursor_get(cursor_.get(), &name, &row, MDB_SET_RANGE);
      while (seen < limit && result != MDB_NOTFOUND) {
        check(result);
        std::uint64_t key = 0;
        std::memcpy(&key, name.mv_data, sizeof key);
        visit(key, view_of(row));
        ++seen;
        result = mdb_cursor_get(cursor_.get(), &name, &row, MDB_NEXT);
      }
      return seen;
    }
    void append(std::uint64_t first, std::uint64_t count) override {
      transaction t = begin(env_, 0);
      for (std::uint64_t key = first; key < first + count; ++key)
        write(t.get(), key, writer_.make(key, 0), MDB_APPEND);
      check(mdb_txn_commit(t.release()));
    }
    void put(key_list keys, std::uint64_t version) override {
      transaction t = begin(env_, 0);
      for (const std::uint64_t key : keys) write(t.get(), key, writer_.make(key, version), 0);
      check(mdb_txn_commit(t.release()));
    }
    void increment(key_list keys) override {
      transaction t = begin(env_, 0);
      for (const std::uint64_t key : keys) {
        MDB_val name = value_of(key);
        MDB_val row{};
        const int result = mdb_get(t.get(), rows_, &name, &row);
        if (result == MDB_NOTFOUND)
          throw std::logic_error("lmdb: no row for a key that was loaded");
        check(result);
        write(t.get(), key, writer_.make(key, next_version(view_of(row), key)), 0);
      }
      check(mdb_txn_commit(t.release()));
    }

   private:
    // A snapshot, given back at the end.
    class reading {
     public:
      explicit reading(client& of) : of_(of) { check(mdb_txn_renew(of_.read_.get())); }
      reading(const reading&) = delete;
      reading& operator=(const reading&) = delete;
      ~reading() { mdb_txn_reset(of_.read_.get()); }

     private:
      client& of_;
    };

    void write(MDB_txn* t, std::uint64_t key, row_view row, unsigned flags) {
      MDB_val name = value_of(key);
      MDB_val value = value_of(row);
      check(mdb_put(t, rows_, &name, &value, flags));
    }

    MDB_env* env_;
    MDB_dbi rows_;
    row_writer writer_;
    transaction read_;
    cursor cursor_;
  };

  const std::size_t value_bytes_;
  std::unique_ptr<MDB_env, closing> env_;
  MDB_dbi rows_ = 0;
};
#endif

}  // namespace

store_info lmdb_store_info() {
  return {.name = "lmdb",
          .description = "peer: LMDB, a B+tree in a memory-mapped file",
          .levels = levels,
#if defined(ELIDEX_NO_LMDB)
          .open = {},
          .version = {},
          .not_built = ELIDEX_NO_LMDB
#else
          .open = [](const store_setup& setup) { return std::make_unique<lmdb_store>(setup); },
          .version = std::to_string(MDB_VERSION_MAJOR) + "." + std::to_string(MDB_VERSION_MINOR) +
                     "." + std::to_string(MDB_VERSION_PATCH)
#endif
  };
}

}  // namespace elidex::bench::stores
