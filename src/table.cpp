#include "elidex/internal/txn/table.hpp"

namespace elidex::internal {

void table_base::refuse_other_database() const {
  throw std::logic_error(name_ + ": a table of another database");
}

}  // namespace elidex::internal
