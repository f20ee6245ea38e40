#include "cli/database/stored_tables.hpp"

#include <algorithm>
#include <system_error>
#include <type_traits>

#include "bench/support/bad_input.hpp"

namespace elidex::cli {
namespace {

template <class Key>
std::string name_of_key_type() {
  if constexpr (std::is_same_v<Key, std::string>) {
    return "string";
  } else {
    return (std::is_signed_v<Key> ? "int" : "uint") + std::to_string(sizeof(Key) * 8);
  }
}

template <class Key>
stored_key widened(const Key& key) {
  if constexpr (std::is_convertible_v<Key, std::string_view>) {
    return std::string(key);
  } else if constexpr (std::is_signed_v<Key>) {
    return std::int64_t{key};
  } else {
    return std::uint64_t{key};
  }
}

template <class Key>
decltype(auto) key_of(const stored_key& key) {
  if constexpr (std::is_same_v<Key, std::string>) {
    return std::get<std::string>(key);
  } else if constexpr (std::is_signed_v<Key>) {
    return std::get<std::int64_t>(key);
  } else {
    return std::get<std::uint64_t>(key);
  }
}

}  // namespace

struct stored_tables::entry {
  table about;
  std::function<std::uint64_t(const stored_key*, const row_visitor&)> scan;
  std::function<std::optional<db::row>(const stored_key&)> get;
  std::function<bool(const stored_key&)> erase;
  std::function<void(const row_list&)> upsert;
};

template <class Table>
const stored_tables::table& stored_tables::add(Table& made) {
  using key_type = typename Table::key_type;
  auto one = std::make_unique<entry>(
      entry{{made.name(), name_of_key_type<key_type>(), made.columns(), made.row_bytes()},
            [this, &made](const stored_key* from, const row_visitor& fn) {
              std::uint64_t rows = 0;
              const auto visit = [&](const auto& key, const db::row& row) {
                ++rows;
                return fn(widened(key), row);
              };
              db_->read_only([&](auto& t) {
                if (from == nullptr) {
                  t.scan(made, elidex::all, visit);
                } else {
                  t.scan(made, key_of<key_type>(*from), visit);
                }
              });
              return rows;
            },
            [this, &made](const stored_key& key) {
              return db_->read_only([&](auto& t) { return t.get(made, key_of<key_type>(key)); });
            },
            [this, &made](const stored_key& key) {
              db_->mark_indexes_stale(made);
              return db_->transact([&](auto& t) { return t.erase(made, key_of<key_type>(key)); });
            },
            [this, &made](const row_list& rows) {
              db_->mark_indexes_stale(made);
              db_->transact([&](auto& t) {
                for (const auto& [key, row] : rows) t.upsert(made, key_of<key_type>(key), row);
              });
            }});
  return entries_.emplace_back(std::move(one))->about;
}

stored_tables::stored_tables(const std::string& directory, use as)
    : db_(std::make_unique<database>()) {
  if (as == use::write) {
    found_ = &db_->open_all(directory, {.level = db::durability::async});
  } else {
    read(directory);
  }
  db_->for_each_schema_table([&](auto& one) { add(one); });
}
stored_tables::~stored_tables() = default;

void stored_tables::read(const std::string& directory) {
  try {
    found_ = &db_->open_all(directory, {.level = db::durability::none});
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again) throw;
    db_ = std::make_unique<database>();
    found_ = &db_->follow_all(directory);
    is_in_use_ = true;
  }
}

bool stored_tables::is_key_type(std::string_view name) {
  bool found = false;
  database::for_each_key_type([&]<class Key>(std::type_identity<Key>) {
    found = found || name_of_key_type<Key>() == name;
  });
  return found;
}

std::vector<stored_tables::table> stored_tables::tables() const {
  std::vector<table> all;
  all.reserve(entries_.size());
  for (const auto& one : entries_) all.push_back(one->about);
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return all;
}

const stored_tables::table* stored_tables::find(std::string_view name) const {
  for (const auto& one : entries_) {
    if (one->about.name == name) return &one->about;
  }
  return nullptr;
}

stored_tables::entry& stored_tables::entry_of(std::string_view name) const {
  for (const auto& one : entries_) {
    if (one->about.name == name) return *one;
  }
  throw db::unknown_table(std::string(name) + ": the directory has no such table");
}

std::uint64_t stored_tables::scan(std::string_view name, const row_reader& fn) const {
  return scan_from(name, nullptr, [&](const stored_key& key, const db::row& row) {
    fn(key, row);
    return true;
  });
}
std::uint64_t stored_tables::scan_from(std::string_view name, const stored_key* from,
                                       const row_visitor& fn) const {
  return entry_of(name).scan(from, fn);
}
std::optional<db::row> stored_tables::get(std::string_view name, const stored_key& key) const {
  return entry_of(name).get(key);
}
bool stored_tables::erase(std::string_view name, const stored_key& key) {
  return entry_of(name).erase(key);
}
void stored_tables::upsert(std::string_view name, const row_list& rows) {
  entry_of(name).upsert(rows);
}
void stored_tables::close() {
  db_->close();
}

const stored_tables::table& stored_tables::create(const std::string& name,
                                                  const std::string& key_type,
                                                  const db::schema& columns) {
  const table* made = nullptr;
  database::for_each_key_type([&]<class Key>(std::type_identity<Key>) {
    if (name_of_key_type<Key>() == key_type) made = &add(db_->create_table<Key>(name, columns));
  });
  if (made == nullptr)
    throw bench::bad_input("table " + name + ": unknown key type '" + key_type +
                           "' (expected string, int8 to int64, or uint8 to uint64)");
  return *made;
}

}  // namespace elidex::cli
