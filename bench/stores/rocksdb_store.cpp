// The peer RocksDB, as its TransactionDB: increments lock rows, as they do in MyRocks. Keys are
// stored with the highest byte first. The block cache holds all rows of a usual run, and Bloom
// filters are on; other options are the defaults.

#include "bench/stores/store.hpp"

#if !defined(ELIDEX_NO_ROCKSDB)
#  include <rocksdb/db.h>
#  include <rocksdb/filter_policy.h>
#  include <rocksdb/options.h>
#  include <rocksdb/table.h>
#  include <rocksdb/utilities/transaction.h>
#  include <rocksdb/utilities/transaction_db.h>
#  include <rocksdb/version.h>
#  include <rocksdb/write_batch.h>

#  include <array>
#  include <atomic>
#  include <chrono>
#  include <memory>
#  include <stdexcept>
#  include <thread>

#  include "bench/stores/rows.hpp"
#endif

namespace elidex::bench::stores {
namespace {

constexpr level_info levels[] = {
    {durability::async, "WAL, WriteOptions::sync=false",
     "SIGKILL; a power failure may lose the last commits, without a limit in time"},
    {durability::sync, "WAL, WriteOptions::sync=true", "SIGKILL and a power failure"},
};

#if !defined(ELIDEX_NO_ROCKSDB)
constexpr std::size_t cache_bytes = std::size_t{256} << 20;
constexpr double bloom_bits_per_key = 10;

void check(const rocksdb::Status& status) {
  if (!status.ok()) throw std::runtime_error("rocksdb: " + status.ToString());
}

using key_image = std::array<char, sizeof(std::uint64_t)>;

key_image image_of(std::uint64_t key) {
  key_image image{};
  for (std::size_t i = image.size(); i-- > 0; key >>= 8U) image[i] = static_cast<char>(key & 0xFFU);
  return image;
}
std::uint64_t key_of(const rocksdb::Slice& image) {
  std::uint64_t key = 0;
  for (std::size_t i = 0; i < image.size(); ++i)
    key = key << 8U | static_cast<unsigned char>(image[i]);
  return key;
}
rocksdb::Slice slice_of(const key_image& image) {
  return {image.data(), image.size()};
}
rocksdb::Slice slice_of(row_view row) {
  return {reinterpret_cast<const char*>(row.data()), row.size()};
}
row_view view_of(const rocksdb::Slice& slice) {
  return {reinterpret_cast<const std::byte*>(slice.data()), slice.size()};
}

rocksdb::Options options_of_store() {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(cache_bytes);
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(bloom_bits_per_key));
  rocksdb::Options options;
  options.create_if_missing = true;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

class rocksdb_store final : public store {
 public:
  explicit rocksdb_store(const store_setup& setup) : value_bytes_(setup.value_bytes) {
    write_.sync = setup.level == durability::sync;
    rocksdb::TransactionDB* made = nullptr;
    check(rocksdb::TransactionDB::Open(options_of_store(), {}, setup.directory, &made));
    db_.reset(made);
  }

  std::unique_ptr<session> connect() override { return std::make_unique<client>(*this); }
  void settle() override {
    check(db_->Flush({}));
    quiesce();
  }
  void quiesce() override {
    constexpr auto pause = std::chrono::milliseconds(1);
    while (is_busy()) std::this_thread::sleep_for(pause);
  }
  [[nodiscard]] std::uint64_t retries() const override { return retries_; }

 private:
  class client final : public session {
   public:
    explicit client(rocksdb_store& of) : of_(of), db_(*of.db_), writer_(of.value_bytes_) {}

    bool get(std::uint64_t key, const row_visitor& visit) override {
      found_.Reset();
      const rocksdb::Status status =
          db_.Get({}, db_.DefaultColumnFamily(), slice_of(image_of(key)), &found_);
      if (status.IsNotFound()) return false;
      check(status);
      visit(key, view_of(found_));
      return true;
    }
    std::size_t scan(std::uint64_t from, std::size_t limit, const row_visitor& visit) override {
      const std::unique_ptr<rocksdb::Iterator> at(db_.NewIterator({}));
      std::size_t seen = 0;
      for (at->Seek(slice_of(image_of(from))); seen < limit && at->Valid(); ++seen) {
        visit(key_of(at->key()), view_of(at->value()));
        if (seen + 1 < limit) at->Next();
      }
      check(at->status());
      return seen;
    }
    void append(std::uint64_t first, std::uint64_t count) override {
      batch_.Clear();
      for (std::uint64_t key = first; key < first + count; ++key)
        check(batch_.Put(slice_of(image_of(key)), slice_of(writer_.make(key, 0))));
      check(db_.Write(of_.write_, &batch_));
    }
    void put(key_list keys, std::uint64_t version) override {
      batch_.Clear();
      for (const std::uint64_t key : keys)
        check(batch_.Put(slice_of(image_of(key)), slice_of(writer_.make(key, version))));
      check(db_.Write(of_.write_, &batch_));
    }
    void increment(key_list keys) override {
      for (;;) {
        transaction_.reset(db_.BeginTransaction(of_.write_, {}, transaction_.release()));
        const rocksdb::Status status = try_increment(keys);
        if (status.ok()) return;
        check(transaction_->Rollback());
        // A lock that another transaction held for too long, or a deadlock.
        if (!status.IsBusy() && !status.IsTimedOut() && !status.IsTryAgain()) check(status);
        ++of_.retries_;
      }
    }

   private:
    rocksdb::Status try_increment(key_list keys) {
      for (const std::uint64_t key : keys) {
        const key_image image = image_of(key);
        found_.Reset();
        rocksdb::Status status =
            transaction_->GetForUpdate({}, db_.DefaultColumnFamily(), slice_of(image), &found_);
        if (status.IsNotFound())
          throw std::logic_error("rocksdb: no row for a key that was loaded");
        if (!status.ok()) return status;
        const std::uint64_t version = next_version(view_of(found_), key);
        status = transaction_->Put(slice_of(image), slice_of(writer_.make(key, version)));
        if (!status.ok()) return status;
      }
      return transaction_->Commit();
    }

    rocksdb_store& of_;
    rocksdb::TransactionDB& db_;
    row_writer writer_;
    rocksdb::PinnableSlice found_;
    rocksdb::WriteBatch batch_;
    std::unique_ptr<rocksdb::Transaction> transaction_;
  };

  [[nodiscard]] bool is_busy() const {
    for (const std::string& property :
         {rocksdb::DB::Properties::kMemTableFlushPending,
          rocksdb::DB::Properties::kNumRunningFlushes, rocksdb::DB::Properties::kCompactionPending,
          rocksdb::DB::Properties::kNumRunningCompactions}) {
      std::uint64_t many = 0;
      if (db_->GetIntProperty(property, &many) && many != 0) return true;
    }
    return false;
  }

  const std::size_t value_bytes_;
  rocksdb::WriteOptions write_;
  std::unique_ptr<rocksdb::TransactionDB> db_;
  std::atomic<std::uint64_t> retries_{0};
};
#endif

}  // namespace

store_info rocksdb_store_info() {
  return {.name = "rocksdb",
          .description = "peer: RocksDB's TransactionDB, a log-structured merge-tree",
          .levels = levels,
#if defined(ELIDEX_NO_ROCKSDB)
          .open = {},
          .version = {},
          .not_built = ELIDEX_NO_ROCKSDB
#else
          .open = [](const store_setup& setup) { return std::make_unique<rocksdb_store>(setup); },
          .version = rocksdb::GetRocksVersionAsString()
#endif
  };
}

}  // namespace elidex::bench::stores
