#include "elidex/internal/txn/table.hpp"

namespace elidex::internal {

void table_base::refuse(const void* database) const {
  if (owner_ != database) throw std::logic_error(name_ + ": a table of another database");
  throw schema_mismatch(
      name_ +
      ": change_table() has changed its columns (expected: the table that it returned, or " +
      "find_table(); in a snapshot that began before: the table as it was)");
}

}  // namespace elidex::internal
