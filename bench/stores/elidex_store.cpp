// elidex's own table store: a table with a schema, 64-bit keys and one column of bytes. A read is a
// read_only(), which sees a snapshot. At level sync it returns when what it has read is durable.

#include <array>
#include <optional>
#include <stdexcept>

#include "bench/stores/rows.hpp"
#include "bench/stores/store.hpp"
#include "elidex/database.hpp"
#include "elidex/version.hpp"

namespace elidex::bench::stores {
namespace {

constexpr std::string_view column = "row";

class elidex_store final : public store {
 public:
  explicit elidex_store(const store_setup& setup)
      : value_bytes_(setup.value_bytes), kept_(setup.level != durability::none) {
    if (kept_) db_.open(setup.directory, {.level = setup.level});
  }

  std::unique_ptr<session> connect() override { return std::make_unique<client>(*this); }
  void settle() override {
    if (kept_) db_.checkpoint();
  }
  void quiesce() override { db_.wait_durable(); }
  [[nodiscard]] std::uint64_t retries() const override { return db_.stats().conflicts; }

 private:
  class client final : public session {
   public:
    explicit client(elidex_store& of)
        : db_(of.db_), rows_(of.rows_), writer_(of.value_bytes_), row_(rows_.make_row()) {}

    bool get(std::uint64_t key, const row_visitor& visit) override {
      return db_.read_only([&](auto& t) {
        const auto found = t.get(rows_, key);
        if (found) visit(key, found->bytes(column));
        return found.has_value();
      });
    }
    std::size_t scan(std::uint64_t from, std::size_t limit, const row_visitor& visit) override {
      std::size_t seen = 0;
      if (limit == 0) return seen;
      db_.read_only([&](auto& t) {
        t.scan(rows_, from, [&](std::uint64_t key, const db::row& row) {
          visit(key, row.bytes(column));
          return ++seen < limit;
        });
      });
      return seen;
    }
    void append(std::uint64_t first, std::uint64_t count) override {
      db_.transact([&](auto& t) {
        for (std::uint64_t key = first; key < first + count; ++key)
          t.insert(rows_, key, row_.set(column, writer_.make(key, 0)));
      });
    }
    void put(key_list keys, std::uint64_t version) override {
      db_.transact([&](auto& t) {
        for (const std::uint64_t key : keys)
          t.upsert(rows_, key, row_.set(column, writer_.make(key, version)));
      });
    }
    void increment(key_list keys) override {
      db_.transact([&](auto& t) {
        for (const std::uint64_t key : keys) {
          const bool found = t.update(rows_, key, [&](db::row& row) {
            row.set(column, writer_.make(key, next_version(row.bytes(column), key)));
          });
          if (!found) throw std::logic_error("elidex: no row for a key that was loaded");
        }
      });
    }

   private:
    database& db_;
    database::schema_table<std::uint64_t>& rows_;
    row_writer writer_;
    db::row row_;
  };

  const std::size_t value_bytes_;
  const bool kept_;
  database db_;
  database::schema_table<std::uint64_t>& rows_ = db_.create_table<std::uint64_t>(
      "rows", db::schema({{.name = std::string(column), .type = db::column_type::bytes}}));
};

constexpr std::array<level_info, 3> levels{{
    {durability::none, "in memory", "nothing"},
    {durability::async, "level async",
     "SIGKILL and a power failure, except for the commits of the last 10 ms and of one fsync"},
    {durability::sync, "level sync", "SIGKILL and a power failure"},
}};

}  // namespace

store_info elidex_store_info() {
  return {.name = own_store,
          .description = "elidex::database: one table with a schema; all rows in memory",
          .levels = levels,
          .open = [](const store_setup& setup) { return std::make_unique<elidex_store>(setup); },
          .version = version};
}

}  // namespace elidex::bench::stores
